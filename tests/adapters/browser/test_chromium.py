"""A real Chromium behind its proxy: what a page can do, what it cannot reach, and that each turn has its own."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from denizen.adapters.browser import ChromiumBrowser, chromium
from denizen.adapters.fetch import WebFetcher
from denizen.domain.errors import DenizenError, InvalidInput, LimitExceeded, NotAllowed
from denizen.domain.ids import TurnId
from denizen.ports.browser import BrowserAction, BrowserActionKind, BrowserRules, BrowserView
from denizen.ports.fetch import HostCheck
from tests.clock import ManualClock
from tests.local_server import Exchange, LocalServer, serve
from tests.timing import HANG_LIMIT_S
from tests.web.browser.browser import find_chromium

pytestmark = pytest.mark.anyio

ONE, TWO = TurnId("turn_1"), TurnId("turn_2")
FORM = """<title>Search</title><h1>Search the shop</h1>
<form action="/found"><input name="q"><button>Go</button></form>
<script>document.cookie = 'seen=' + (document.cookie ? 'again' : 'first')</script>"""
LATER = """<title>Later</title><script>
setTimeout(() => { document.body.innerHTML = '<p id="late">It has come.</p>' }, 50)</script><p>Not yet.</p>"""
PROBES = """<title>Probes</title><p id="said">probing</p><iframe src="http://{secret}/frame"></iframe>
<img src="http://{secret}/picture"><script>
const tries = [
  fetch('http://{secret}/fetch', {{mode: 'no-cors'}}),
  fetch('http://localhost:{port}/by-name', {{mode: 'no-cors'}}),
  fetch('http://[::ffff:127.0.0.1]:{port}/mapped', {{mode: 'no-cors'}}),
  fetch('/leads-away', {{mode: 'no-cors'}}),
  new Promise((_, no) => {{ const s = new WebSocket('ws://{secret}/socket'); s.onerror = no; s.onclose = no; }}),
]
Promise.allSettled(tries).then(() => {{ document.getElementById('said').textContent = 'done' }})</script>"""


def show_page(text: str, exchange: Exchange) -> None:
    exchange.say(text, kind="text/html")


@pytest.fixture
def secret() -> Generator[LocalServer]:
    """A server of this machine that no page may reach."""
    with serve({"/": lambda exchange: exchange.say("secret")}) as server:
        yield server


@pytest.fixture
def shop(secret: LocalServer) -> Generator[LocalServer]:
    def show_found(exchange: Exchange) -> None:
        words = exchange.local.requests[-1].query.get("q", "")
        exchange.say(f"<title>Found</title>You looked for {words}.", kind="text/html")

    probes = PROBES.format(secret=secret.address, port=secret.port)
    with serve(
        {
            "/": lambda exchange: exchange.say(FORM, kind="text/html"),
            "/found": show_found,
            "/later": lambda exchange: exchange.say(LATER, kind="text/html"),
            "/probes": lambda exchange: exchange.say(probes, kind="text/html"),
            "/leads-away": lambda exchange: exchange.redirect(f"http://{secret.address}/redirected"),
            "/long": lambda exchange: exchange.say("word " * 100_000, kind="text/plain"),
        }
    ) as server:
        yield server


class PublicShop(WebFetcher):
    """As the product checks, on a net in which `shop.example` is a machine of the public internet, for once here.
    `own.example` is the public address of this machine.
    """

    async def check(self, host: str, port: int) -> tuple[str, ...]:
        return ("127.0.0.1",) if host in ("shop.example", "own.example") else await super().check(host, port)

    def leads_back(self, own: tuple[str, int] | None, host: str, port: int, address: str) -> bool:
        return host != "shop.example" and super().leads_back(own, host, port, address)


def make_check(named: Sequence[str]) -> HostCheck:
    return PublicShop(allow_private=named)


class Pages:
    """A browser with the rules of a test."""

    def __init__(self, browser: ChromiumBrowser, rules: BrowserRules) -> None:
        self.browser = browser
        self.rules = rules

    async def act(self, kind: str, turn: TurnId = ONE, **more: str) -> BrowserView:
        return await self.browser.act(turn, BrowserAction(kind=BrowserActionKind(kind), **more), self.rules)

    async def fails(self, kind: str, turn: TurnId = ONE, **more: str) -> DenizenError:
        with pytest.raises(DenizenError) as failure:
            await self.act(kind, turn, **more)
        return failure.value


@asynccontextmanager
async def pages(*origins: str, clock: ManualClock | None = None, program: str = "") -> AsyncGenerator[Pages]:
    browser = ChromiumBrowser(clock or ManualClock(), make_check)
    rules = BrowserRules(origins=origins, program=program or find_chromium(), sandboxed=False)
    try:
        yield Pages(browser, rules)
    finally:
        await browser.aclose()


async def test_a_page_is_opened_used_and_left_as_people_do(shop: LocalServer) -> None:
    site = f"http://shop.example:{shop.port}"
    async with pages(site) as browser:
        opened = await browser.act("navigate", url=f"{site}/")
        assert (opened.title, opened.url, opened.text.strip().splitlines()[0]) == (
            "Search",
            f"{site}/",
            "Search the shop",
        )
        await browser.act("type", selector="[name=q]", text="tea")
        assert (await browser.act("click", selector="text=Go")).text == "You looked for tea."
        assert (await browser.act("back")).title == "Search"
        assert (await browser.act("type", selector="input", text="coffee\n")).text == "You looked for coffee."
        await browser.act("navigate", url=f"{site}/later")
        assert (await browser.act("wait", selector="#late")).text == "It has come."
        shot = await browser.act("screenshot")
        assert shot.picture.startswith(b"\x89PNG")
        assert (await browser.act("text")).text == "It has come."


async def test_a_page_and_its_scripts_reach_nothing_but_the_listed_origins(
    shop: LocalServer, secret: LocalServer
) -> None:
    site = f"http://shop.example:{shop.port}"
    async with pages(site) as browser:
        await browser.act("navigate", url=f"{site}/probes")
        assert "done" in (await browser.act("wait", selector="text=done")).text
        assert isinstance(await browser.fails("navigate", url=f"{site}/leads-away"), NotAllowed)
        for url in (f"http://{secret.address}/", f"http://localhost:{secret.port}/", "http://169.254.169.254/"):
            assert isinstance(await browser.fails("navigate", url=url), NotAllowed)
        for url in ("file:///etc/hostname", "javascript:1", "view-source:http://shop.example", "chrome://version", ""):
            assert isinstance(await browser.fails("navigate", url=url), InvalidInput)
    assert secret.requests == []


async def test_what_a_page_wanted_to_load_from_elsewhere_is_named(shop: LocalServer, secret: LocalServer) -> None:
    site = f"http://shop.example:{shop.port}"
    async with pages(site) as browser:
        await browser.act("navigate", url=f"{site}/probes")
        view = await browser.act("navigate", url=f"{site}/probes")
    assert secret.address in view.blocked


@pytest.mark.proves("VW5")
async def test_a_listed_name_that_leads_to_a_private_address_is_not_reached(secret: LocalServer) -> None:
    async with pages(f"http://localhost:{secret.port}") as browser:
        assert isinstance(await browser.fails("navigate", url=f"http://localhost:{secret.port}/"), NotAllowed)
    assert secret.requests == []


async def test_an_address_that_the_owner_wrote_may_be_private(secret: LocalServer) -> None:
    async with pages(f"http://{secret.address}") as browser:
        assert (await browser.act("navigate", url=f"http://{secret.address}/")).text == "secret"


@pytest.mark.proves("VW5")
async def test_a_name_that_leads_back_to_this_machine_is_not_reached(secret: LocalServer) -> None:
    async with pages(f"http://own.example:{secret.port}") as browser:
        assert isinstance(await browser.fails("navigate", url=f"http://own.example:{secret.port}/"), NotAllowed)
    assert secret.requests == []


async def test_pages_that_a_page_opens_are_closed() -> None:
    opens = "<title>Opens</title><script>for (let i = 0; i < 20; i++) window.open('about:blank')</script>"
    with serve({"/": lambda exchange: exchange.say(opens, kind="text/html")}) as server:
        site = f"http://shop.example:{server.port}"
        async with pages(site) as browser:
            await browser.act("navigate", url=f"{site}/")
            [context] = {each.page.context for each in browser.browser._pages.values()}
            with anyio.fail_after(HANG_LIMIT_S):
                while len(context.pages) > 1:
                    await anyio.lowlevel.checkpoint()
            assert (await browser.act("text")).title == "Opens"


@pytest.mark.parametrize(
    "opener",
    [
        '<a id=go href="/next" target=_blank rel=noopener>Go</a>',
        '<base target=_blank><a id=go href="/next"><b>Go</b></a>',
        '<a id=go href="/next" target=shop>Go</a>',
        '<form action="/next" target=_blank><button id=go>Go</button></form>',
        '<form action="/next"><button id=go formtarget=_blank>Go</button></form>',
        "<button id=go onclick=\"window.open('/next')\">Go</button>",
    ],
)
async def test_what_opens_a_new_window_leads_on_in_the_same_page(opener: str) -> None:
    routes = {"/": f"<title>First</title>{opener}", "/next": "<title>Next</title><p>Here.</p>"}
    with serve({path: partial(show_page, text) for path, text in routes.items()}) as server:
        site = f"http://shop.example:{server.port}"
        async with pages(site) as browser:
            await browser.act("navigate", url=f"{site}/")
            await browser.act("click", selector="#go")
            assert (await browser.act("wait", selector="text=Here.")).title == "Next"


async def test_a_new_window_reaches_no_other_origin_than_the_page_may(secret: LocalServer) -> None:
    opener = f'<title>First</title><a id=go href="http://{secret.address}/" target=_blank>Go</a>'
    with serve({"/": partial(show_page, opener)}) as server:
        site = f"http://shop.example:{server.port}"
        async with pages(site) as browser:
            await browser.act("navigate", url=f"{site}/")
            await browser.act("click", selector="#go")
            await browser.act("text")
    assert secret.requests == []


async def test_a_page_whose_scripts_never_end_is_closed_and_the_turn_goes_on(
    shop: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chromium, "READ_TIMEOUT_S", 2.0)
    hangs = "<script>Object.defineProperty(HTMLElement.prototype, 'innerText', {get() { while (1) {} }})</script>"
    with serve({"/": lambda exchange: exchange.say(hangs, kind="text/html")}) as server:
        site, other = f"http://shop.example:{server.port}", f"http://shop.example:{shop.port}"
        async with pages(site, other) as browser:
            assert (await browser.fails("navigate", url=f"{site}/")).code == "browser_hangs"
            assert (await browser.fails("text")).code == "browser_no_page"
            assert (await browser.act("navigate", url=f"{other}/")).title == "Search"


@pytest.mark.proves("TW19-browser")
async def test_each_turn_has_a_page_of_its_own_and_shares_nothing_with_others(shop: LocalServer) -> None:
    site = f"http://shop.example:{shop.port}"
    async with pages(site) as browser:
        await browser.act("navigate", ONE, url=f"{site}/")
        await browser.act("navigate", TWO, url=f"{site}/found?q=two")
        assert [(await browser.act("text", turn)).title for turn in (ONE, TWO)] == ["Search", "Found"]
        await browser.act("navigate", TWO, url=f"{site}/")
        cookies = [request.headers.get("cookie", "") for request in shop.requests if request.path == "/"]
        assert cookies == ["", ""]
        await browser.browser.close(ONE)
        assert (await browser.fails("text", ONE)).code == "browser_no_page"
        assert (await browser.act("text", TWO)).title == "Search"


async def test_too_many_pages_are_refused_until_one_is_left_alone_for_long(shop: LocalServer) -> None:
    site, clock = f"http://shop.example:{shop.port}", ManualClock()
    async with pages(site, clock=clock) as browser:
        for turn in ("turn_1", "turn_2", "turn_3"):
            await browser.act("navigate", TurnId(turn), url=f"{site}/")
        assert isinstance(await browser.fails("navigate", TurnId("turn_4"), url=f"{site}/"), LimitExceeded)
        clock.advance(601)
        assert (await browser.act("navigate", TurnId("turn_4"), url=f"{site}/")).title == "Search"
        assert (await browser.fails("text", ONE)).code == "browser_no_page"


async def test_where_there_is_no_chromium_it_says_what_to_install(tmp_path: Path) -> None:
    async with pages("http://shop.example", program=str(tmp_path / "none")) as browser:
        error = await browser.fails("navigate", url="http://shop.example/")
        assert (error.code, error.message) == ("browser_start", "The browser does not start.")
