"""The pages about knowledge and set-up in a browser: from nothing to a source, a search, a second agent, by clicks."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from denizen.app.configuration import HomeConfiguration
from denizen.app.reload import Reloader
from denizen.engine.knowledge.coverage import GapReport
from denizen.ports.model import Capabilities
from denizen.testing.memory_durable import MemoryDurable
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from denizen.testing.temporary_store import TemporaryStore
from denizen.web.http.dependencies import GapServices, KnowledgeServices
from tests.app.home_folder import LAB, Home, open_home
from tests.clock import ManualClock
from tests.engine.knowledge.knowledge_fixture import KnowledgeFixture, build_learning, write
from tests.timing import HANG_LIMIT_S
from tests.web.browser.accessibility import find_violations
from tests.web.browser.browser import DESKTOP, PHONE, open_browser
from tests.web.full_web_fixture import EchoShell
from tests.web.gap_fixture import GAP, PROPOSAL
from tests.web.knowledge_web_fixture import OWNER, build_knowledge_services
from tests.web_fixture import WebFixture, make_hello_model, open_web

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("browser")]
expect.set_options(timeout=HANG_LIMIT_S * 1000)

TEXT = f"# Ours.\n{LAB}\nagents:\n  denizen:\n    description: The first\n"


@asynccontextmanager
async def open_administration(
    root: Path, model: ScriptedModel | None = None
) -> AsyncGenerator[tuple[WebFixture, KnowledgeFixture, Home]]:
    """A server with a real home folder and a library, and an owner."""
    home, engines = Home(root / "home"), list[KnowledgeFixture]()
    home.path.mkdir()

    def make(store: TemporaryStore, durable: MemoryDurable, _: ManualClock) -> KnowledgeServices:
        engines.append(KnowledgeFixture(root, store=store, durable=durable))
        return build_knowledge_services(engines[0], {})

    def make_gaps(store: TemporaryStore, _: MemoryDurable, clock: ManualClock) -> GapServices:
        return GapServices(GapReport(store, clock), build_learning(engines[0]))

    async with open_home(home, TEXT) as denizen:
        files = HomeConfiguration(denizen, Reloader(denizen))
        async with open_web(
            model or make_hello_model(),
            keys=[OWNER],
            make_knowledge=make,
            make_gaps=make_gaps,
            more=[EchoShell()],
            configuration=files,
        ) as web:
            yield web, engines[0], home


async def sign_in(page: Page, url: str) -> None:
    await page.goto(f"{url}/login")
    await page.get_by_label("API key").fill("key-of-olga")
    await page.get_by_role("button", name="Sign in").click()
    await page.wait_for_url(f"{url}/")


async def test_an_owner_adds_a_source_watches_it_being_read_and_searches_it(tmp_path: Path) -> None:
    notes = write(tmp_path / "notes", {"harbour.md": "# Harbour\n\nA berth is ten euros.\n"})
    async with open_administration(tmp_path) as (web, engine, _), web.serve() as url, open_browser() as browser:
        page = await browser.new_page()
        await sign_in(page, url)
        await page.goto(f"{url}/admin/sources")
        await page.get_by_role("link", name="Add a source").click()
        await page.get_by_role("link", name="Folder of this machine").click()
        await page.get_by_label("Place").fill(str(notes))
        await page.get_by_label("Name to show").fill("Notes of the harbour")
        await page.get_by_role("button", name="Add").click()
        await expect(page.get_by_role("status").filter(has_text="The sync has begun")).to_be_visible()
        await expect(page.locator("table").first.get_by_text("fine")).to_be_visible()  # without a reload
        assert await find_violations(page) == []
        await engine.indexing.catch_up()
        await page.get_by_role("link", name="Search", exact=True).click()
        await page.get_by_label("Question or words").fill("berth")
        await page.get_by_label("Question or words").press("Enter")
        await expect(page.get_by_text("docs/notes/harbour.md:1-3")).to_be_visible()
        assert await find_violations(page) == []
        await page.goto(f"{url}/admin/sources/notes")
        page.once("dialog", lambda dialog: dialog.accept())
        await page.get_by_role("button", name="Remove").click()
        await expect(page.get_by_text("Nothing to read yet")).to_be_visible()
        assert await engine.catalog.list_known() == []


@pytest.mark.proves("S-admin-new-source")
async def test_an_owner_imports_what_a_screenshot_shows(tmp_path: Path) -> None:
    told = '{"sources": [{"location": "lab/guide"}]}'
    model = ScriptedModel(ScriptedReply(told), capabilities=Capabilities(images=True))
    async with open_administration(tmp_path, model) as (web, engine, _), web.serve() as url, open_browser() as browser:
        page = await browser.new_page()
        await sign_in(page, url)
        await page.goto(f"{url}/admin/sources")
        await page.get_by_role("link", name="Import").click()
        shot = await page.screenshot()
        await page.get_by_label("a screenshot of a list").set_input_files(
            {"name": "shot.png", "mimeType": "image/png", "buffer": shot}
        )
        await page.get_by_role("button", name="Add").click()
        await expect(page.get_by_role("link", name="guide")).to_be_visible()
        assert [each.source.id for each in await engine.catalog.list_known()] == ["guide"]
        assert "image/png" in str(model.requests[0].messages[0].parts)


async def test_an_owner_is_led_to_a_wrong_line_of_the_configuration_and_adds_an_agent(tmp_path: Path) -> None:
    async with open_administration(tmp_path) as (web, _, home), web.serve() as url, open_browser() as browser:
        page = await browser.new_page()
        await sign_in(page, url)
        await page.goto(f"{url}/admin/config")
        editor = page.get_by_label("denizen.yaml")
        await editor.fill(TEXT.replace("The first", "The first\n    modle: x"))
        await page.get_by_role("button", name="Save").click()
        line = TEXT.splitlines().index("    description: The first") + 2
        await page.get_by_role("link", name=f"line {line}").click()
        await expect(page.get_by_text(f"Line {line}, column 1")).to_be_visible()
        assert (
            await editor.evaluate("each => each.value.slice(each.selectionStart, each.selectionEnd)") == "    modle: x"
        )
        assert home.config.read_text() == TEXT
        assert await find_violations(page) == []
        await editor.fill(TEXT.replace("The first", "The best"))
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_text("The configuration is saved, and holds now.")).to_be_visible()
        await page.goto(f"{url}/admin/add-agent")
        await page.get_by_label("Name", exact=True).fill("bea")
        await page.get_by_label("Persona").fill("You are Bea.")
        assert await find_violations(page) == []
        await page.get_by_role("button", name="Add").click()
        await page.wait_for_load_state()
        text = home.config.read_text()
        assert ("# Ours." in text, "The best" in text, "bea:" in text) == (True, True, True)
        assert (home.path / "agents" / "bea" / "IDENTITY.md").read_text() == "You are Bea.\n"


PLACES = {
    "^": ("", ""),
    "mo^": ("", "mo"),
    "agents:\n  ada:  # ours\n    sty^": ("agents.ada", "sty"),
    "agents:\n  ada:\n    style:\n      response: x\n    ^": ("agents.ada", ""),
    "a: 1\ngate:\n  rules:\n    - tool: x\n      action: deny\n    - to^": ("gate.rules[0]", "to"),
    "gate:\n  rules:\n  - tool: x\n    ac^": ("gate.rules[0]", "ac"),
    "models:\n  overrides:\n    'lab/a.b':\n      im^": ('models.overrides."lab/a.b"', "im"),
    "agents:\n  ada: {}\n    sty^": None,
    "agents: x^": None,
}


async def test_the_editor_of_the_configuration_offers_the_keys_that_may_stand_at_the_cursor(tmp_path: Path) -> None:
    async with open_administration(tmp_path) as (web, _, home), web.serve() as url, open_browser() as browser:
        page = await browser.new_page()
        await sign_in(page, url)
        await page.goto(f"{url}/admin/config")
        for text, place in PLACES.items():
            read = "async ([text, at]) => (await import('/static/config-keys.js')).readPlace(text, at)"
            found = await page.evaluate(read, [text.replace("^", ""), text.index("^")])
            assert found == (place and {"path": place[0], "typed": place[1]}), text
        editor, keys = page.get_by_label("denizen.yaml"), page.get_by_role("listbox", name="Keys that may stand here")
        await editor.fill(TEXT)
        await editor.press("Control+End")
        await editor.press_sequentially("log")
        await expect(keys.get_by_role("option")).to_have_text([re.compile("^logging")])
        assert await find_violations(page) == []
        await editor.press("Enter")  # nothing is chosen yet, so it is a line break
        await expect(keys).to_be_hidden()
        await editor.press_sequentially("logg")
        await expect(keys).to_be_visible()
        await editor.press("ArrowDown")
        await expect(keys.get_by_role("option", selected=True)).to_have_count(1)
        await editor.press("Enter")
        await expect(editor).to_have_value(f"{TEXT}log\nlogging: ")
        await editor.press_sequentially("\n  ")
        await editor.press("Control+Space")
        await expect(keys.get_by_role("option", name="level")).to_be_visible()
        assert await find_violations(page) == []
        await editor.press("Escape")
        await expect(keys).to_be_hidden()
        assert home.config.read_text() == TEXT


PAGES = (
    *("/admin/add-source?kind=youtube", "/admin/import-sources", "/admin/snapshots", "/admin/shell", "/admin/gaps"),
    *("/admin/gaps/proposals/prop_1", "/admin/assistant", "/admin/agents", "/admin/agents/denizen?file=RULES.md"),
    *("/admin/config", "/admin/work", "/help", "/help/add-documents"),
)


@pytest.mark.parametrize(("viewport", "is_dark"), [(PHONE, False), (DESKTOP, True)])
async def test_every_page_is_accessible_and_fits_on_a_phone_and_in_the_dark(
    viewport: object, is_dark: bool, tmp_path: Path
) -> None:
    async with (
        open_administration(tmp_path) as (web, engine, _),
        web.serve() as url,
        open_browser(viewport=viewport, is_dark=is_dark) as browser,  # pyright: ignore[reportArgumentType]
    ):
        await engine.add(write(tmp_path / "notes", {"a.md": "A"}))
        async with web.store.work() as work:
            await work.gaps.add(GAP)
            await work.proposals.add(PROPOSAL)
        page = await browser.new_page()
        await sign_in(page, url)
        for path in PAGES:
            await page.goto(f"{url}{path}")
            assert (path, await find_violations(page)) == (path, [])
            width = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            assert (path, await page.evaluate(width)) == (path, 0)
