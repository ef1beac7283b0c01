"""The pages: what they are made of, and that they keep to the strict policy."""

import dataclasses
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, cast

import pytest
from jinja2 import Environment
from jinja2.nodes import Getattr, Name

import denizen.web
from denizen.web.pages.chat import ChatPage, SharedChatPage
from denizen.web.pages.navigation import list_navigation
from denizen.web.pages.page import Frame, render_text
from denizen.web.pages.settings import SettingsPage
from denizen.web.pages.sign_in import LoginPage, ProviderLink
from denizen.web.pages.sign_up import SignUpPage
from denizen_sdk.users import AccountInfo, IdentityInfo
from tests.web.knowledge_page_samples import list_knowledge_pages
from tests.web_fixture import ANN, open_web

pytestmark = pytest.mark.anyio

WEB = Path(denizen.web.__file__).parent
FRAME = Frame(
    version="1.2.3",
    path="/",
    navigation=list_navigation(may_administrate=True),
    viewer="ann",
    can_sign_out=True,
    csrf_token="x",
)
GITHUB = ProviderLink("GitHub", "/login/github")
PAGES: dict[str, object] = {
    "chat.html": ChatPage(FRAME, shows_sources=True),
    "shared.html": SharedChatPage("1.2.3"),
    **list_knowledge_pages(FRAME),
    "login.html": LoginPage(
        frame=Frame(version="1.2.3", path="/login"),
        problem="No.",
        has_accounts=True,
        may_sign_up=True,
        providers=[GITHUB],
    ),
    "sign_up.html": SignUpPage(frame=Frame(version="1.2.3", path="/sign-up"), problem="No.", providers=[GITHUB]),
    "settings.html": SettingsPage(
        frame=replace(FRAME, path="/settings"),
        account=AccountInfo(
            id="user_1",
            name="Ann",
            email="ann@example.org",
            role="member",
            is_verified=True,
            has_password=True,
            created_at="2026-11-24T12:00:00+00:00",
            identities=(IdentityInfo("discord", "ann", "2026-11-24T12:00:00+00:00"),),
        ),
        unlinked=[GITHUB],
        new_key="dz_text",
        problem="No.",
    ),
}


class PageOutline(HTMLParser):
    """The tags of a page with their attributes, and text in scripts and styles."""

    def __init__(self, name: str, page: object) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inline = ""
        self.feed(render_text(name, page))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] in {"script", "style"}:
            self.inline += data.strip()

    def all(self, *names: str) -> list[dict[str, str | None]]:
        return [attrs for tag, attrs in self.tags if tag in names]


@pytest.mark.parametrize(("name", "page"), PAGES.items())
def test_a_template_uses_exactly_what_its_context_declares(name: str, page: object) -> None:
    tree = Environment(autoescape=True).parse((WEB / "templates" / name).read_text())
    used = {node.attr for node in tree.find_all(Getattr) if isinstance(node.node, Name) and node.node.name == "page"}
    assert used | {"frame"} == {"frame"} | {field.name for field in dataclasses.fields(cast("Any", page))}


@pytest.mark.parametrize(("name", "page"), PAGES.items())
def test_a_page_has_no_inline_script_style_or_handler(name: str, page: object) -> None:
    outline = PageOutline(name, page)
    assert outline.inline == ""
    assert [attrs for _, attrs in outline.tags if any(name.startswith("on") or name == "style" for name in attrs)] == []
    sources = [attrs.get("src") or attrs.get("href") or "" for attrs in outline.all("script", "link", "img")]
    assert sources
    assert all(source.startswith("/static/") for source in sources)


@pytest.mark.parametrize(("name", "page"), PAGES.items())
def test_what_a_page_refers_to_exists_and_every_field_has_a_label(name: str, page: object) -> None:
    outline = PageOutline(name, page)
    for attrs in outline.all("script", "link"):
        source = attrs.get("src") or attrs.get("href") or ""
        assert (WEB / source.removeprefix("/")).is_file(), source
    labelled = {attrs.get("for") for attrs in outline.all("label")}
    fields = [attrs for attrs in outline.all("input", "select", "textarea") if attrs.get("type") != "hidden"]
    assert {attrs["id"] for attrs in fields} <= labelled
    ids = {attrs["id"] for _, attrs in outline.tags if "id" in attrs}
    described = [attrs["aria-describedby"] for _, attrs in outline.tags if attrs.get("aria-describedby")]
    assert {name for names in described for name in (names or "").split()} <= ids
    [html] = outline.all("html")
    assert html["lang"]


def test_the_scripts_find_what_they_look_for_in_the_page() -> None:
    ids = {attrs.get("id") for _, attrs in PageOutline("chat.html", PAGES["chat.html"]).tags}
    for name in ("chat.js", "chat_list.js", "composer.js", "share.js", "side_panel.js", "frame.js"):
        script = (WEB / "static" / name).read_text()
        wanted = set(re.findall(r'(?:find|getElementById)\("([\w-]+)"\)', script))
        if first := re.search(r"= \[(.*)\]\.map\(find\)", script):
            wanted |= set(re.findall(r'"([\w-]+)"', first.group(1)))
        assert wanted <= ids, name


def test_the_chat_leads_to_the_simulator_when_there_is_one() -> None:
    without = ChatPage(FRAME)
    beside = ChatPage(replace(FRAME, simulator="http://127.0.0.1:1/"))
    links = [[attrs.get("href") for attrs in PageOutline("chat.html", page).all("a")] for page in (without, beside)]
    assert [each for each in links[1] if each not in links[0]] == ["http://127.0.0.1:1/"]


def test_no_script_makes_html_out_of_text() -> None:
    for path in (WEB / "static").glob("*.js"):
        text = path.read_text()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), (
            path
        )


async def test_the_page_and_its_files_are_served_and_checked_again_each_time() -> None:
    async with open_web() as web, web.client() as client:
        page = await client.get("/")
        script = await client.get("/static/chat.js")
        again = await client.get("/static/chat.js", headers={"if-none-match": script.headers["etag"]})
    assert (page.status_code, page.headers["cache-control"]) == (200, "no-store")
    assert "javascript" in script.headers["content-type"]
    assert script.headers["cache-control"] == "no-cache"
    assert again.status_code == 304


@pytest.mark.parametrize(
    "path", ["/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/app.py", "/static/nothing"]
)
async def test_nothing_but_the_pages_own_files_is_served(path: str) -> None:
    async with open_web() as web, web.client() as client:
        assert (await client.get(path)).status_code == 404


async def test_signing_out_is_offered_to_whom_is_signed_in() -> None:
    async with open_web(keys=[ANN]) as web, web.client() as client:
        await client.post("/login", data={"key": "key-of-ann"})
        assert "Sign out" in (await client.get("/")).text
    async with open_web() as web, web.client() as client:
        assert "Sign out" not in (await client.get("/")).text


async def test_an_open_server_has_nothing_to_sign_in_to() -> None:
    async with open_web() as web, web.client() as client:
        response = await client.get("/login")
    assert (response.status_code, response.headers["location"]) == (303, "/")


async def test_a_form_that_is_too_large_is_refused() -> None:
    async with open_web(keys=[ANN]) as web, web.client() as client:
        assert (await client.post("/login", data={"key": "x" * 10_000})).status_code == 413
