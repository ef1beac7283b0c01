"""Makes the pictures of docs/images from a running Denizen: `python -m scripts.screenshots`, or `make screenshots`.

A server runs in a folder of its own, with documents of a harbour, a model that follows a script, and a Discord server
to try. A browser walks through its pages as a person does. It needs Chromium, which `scripts/browser` installs.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from denizen.testing.model_server import ModelAnswer, model_server_in_thread
from denizen.testing.model_wire import JsonBody, ModelCall

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "docs" / "images"
_QUALITY = 82
_DEADLINE_MS = 60_000

_FERRIES = """\
# Ferries to the island

From November to March the last ferry leaves at 18:40. From April to October it leaves at 21:15.
Bicycles travel free of charge. A dog needs a ticket of 2 euros.
"""
_OFFICE = """\
# Harbour office

The office is open from 9:00 to 16:00, Monday to Friday. Berths are booked there, a week ahead at the latest.
"""
_CONFIG = """\
models:
  providers: {{harbour: {{kind: openai-compatible, base_url: "{url}"}}}}
  aliases: {{balanced: harbour/scripted}}
agents:
  denizen:
    description: Answers what the papers of the harbour say.
    answers_from: sources
gate:
  rules: [{{tool: "*_note", action: ask, reason: somebody looks at what goes into the notes}}]
"""
_ANSWER = """\
A dog needs a ticket of **2 euros** {place}; a bicycle travels free of charge {place}.

| season | last ferry |
|---|---|
| November to March | 18:40 |
| April to October | 21:15 |
"""


class Shot(NamedTuple):
    """A picture: how a page of this address gets to what it shows."""

    name: str
    path: str
    prepare: Callable[[Page], None]
    is_dark: bool = False


def answer_as_scripted(body: JsonBody) -> ModelAnswer:
    """Searches the documents, answers from what it found, and writes a note where it is asked to."""
    last = body["messages"][-1]
    said = str(last["content"])
    if "title of a chat" in str(body):
        return ModelAnswer(text="Dogs and bicycles on the ferry")
    if last["role"] == "tool":
        places = re.findall(r"\[\S+ferries\.md:[\d-]+\]", said)
        return ModelAnswer(text=_ANSWER.format(place=places[0]) if places else "It is in the notes.")
    if "note" in said:
        text = "The crane is checked on the first Monday of March."
        return ModelAnswer(calls=[ModelCall("append_note", {"name": "crane", "text": text})])
    return ModelAnswer(calls=[ModelCall("search_docs", {"query": "dog and bicycle on the ferry"})])


def ask_for_a_source(page: Page) -> None:
    _say(page, "What do I pay for a dog and a bicycle on the ferry?")
    page.get_by_role("article", name="denizen").get_by_role("button", name="Why?").wait_for()
    page.get_by_role("link", name="Dogs and bicycles on the ferry").first.wait_for()
    page.get_by_role("article", name="denizen").get_by_role("button", name=re.compile("ferries.md")).first.click()
    page.get_by_role("complementary", name=re.compile("ferries.md")).wait_for()


def ask_for_a_note(page: Page) -> None:
    """Leaves a call that waits for a person, and shows where it is decided."""
    address = page.url
    page.goto(address.removesuffix("/admin/approvals"))
    _say(page, "Please note when the crane is checked.")
    page.get_by_text("append_note").first.wait_for()
    page.goto(address)
    page.get_by_role("heading", name="append_note").wait_for()


def examine_everything(page: Page) -> None:
    page.get_by_role("button", name="Examine everything now").click()
    page.get_by_text(re.compile(r"\d+ things work")).wait_for()
    page.get_by_role("heading", name="Overview", level=1).scroll_into_view_if_needed()


def search_documents(page: Page) -> None:
    page.get_by_role("searchbox").fill("ticket for a dog")
    page.keyboard.press("Enter")
    page.get_by_text("ferries.md").first.wait_for()


def show_at_once(page: Page) -> None:
    page.get_by_role("img").first.wait_for()


def _say(page: Page, text: str) -> None:
    page.get_by_label("Message", exact=True).fill(text)
    page.get_by_role("button", name="Send", exact=True).click()


SHOTS = (
    Shot("chat", "/", ask_for_a_source),
    Shot("chat-dark", "/", ask_for_a_source, is_dark=True),
    Shot("approvals", "/admin/approvals", ask_for_a_note),
    Shot("overview", "/admin", examine_everything),
    Shot("knowledge", "/admin/search", search_documents),
    Shot("workflow", "/admin/workflows/nightly-check", show_at_once),
)


def take_shots(url: str, out: Path) -> None:
    """Writes each picture as WebP, which takes a fifth of what PNG does."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--disable-quic"], chromium_sandbox=False)
        for shot in SHOTS:
            scheme = "dark" if shot.is_dark else "light"
            context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme=scheme)
            context.set_default_timeout(_DEADLINE_MS)
            page = context.new_page()
            page.goto(f"{url}{shot.path}")
            shot.prepare(page)
            picture = Image.open(io.BytesIO(page.screenshot(animations="disabled", caret="hide")))
            picture.save(out / f"{shot.name}.webp", quality=_QUALITY, method=6)
            context.close()
        browser.close()


@contextmanager
def run_denizen(folder: Path, model_url: str) -> Generator[str]:
    """Yields the address of a server with a harbour's documents and a workflow."""
    home, papers = folder / "home", folder / "harbour"
    for place in (home, papers):
        place.mkdir()
    (papers / "ferries.md").write_text(_FERRIES, encoding="utf-8")
    (papers / "office.md").write_text(_OFFICE, encoding="utf-8")
    (home / "denizen.yaml").write_text(_CONFIG.format(url=model_url), encoding="utf-8")
    command = (sys.executable, "-m", "denizen", "--home", str(home))
    for arguments in (
        ("sources", "add", str(papers)),
        ("sources", "sync"),
        ("workflows", "add", "nightly-check", "--example", "nightly-check"),
    ):
        subprocess.run([*command, *arguments], check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - fixed programs
    arguments = [*command, "run", "--simulate", "--port", "0"]
    with (
        (folder / "log").open("w", encoding="utf-8") as log,
        subprocess.Popen(arguments, stderr=subprocess.STDOUT, stdout=log) as server,  # noqa: S603 - fixed programs
    ):
        try:
            yield _await_address(folder / "log", server)
        finally:
            server.terminate()


def _await_address(log: Path, server: subprocess.Popen[bytes]) -> str:
    """Returns where the server listens, once its log says so."""
    while server.poll() is None:
        if found := re.search(r"^Denizen is ready: (\S+)$", log.read_text(encoding="utf-8"), re.MULTILINE):
            return found[1]
        time.sleep(0.1)
    raise RuntimeError(f"the server ended:\n{log.read_text(encoding='utf-8')}")


def main() -> int:
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, model_server_in_thread(strict=False) as model:
        model.aside = answer_as_scripted
        with run_denizen(Path(folder), model.openai_url) as url:
            take_shots(url, OUT)
    size = sum(path.stat().st_size for path in OUT.glob("*.webp"))
    sys.stdout.write(f"wrote {len(SHOTS)} pictures into {OUT.relative_to(ROOT)}, {size // 1000} kB in all\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
