"""Implements `denizen.ports.browser.PageBrowser` with Chromium and Playwright: a browser of its own for each turn.

Nothing is shared between turns, no cookie and no cache, and a page that goes wild takes no other one with it. A browser
that nobody has used for a while is closed when another turn wants one.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING

import anyio

from denizen.domain.clock import Clock
from denizen.domain.errors import InvalidInput, LimitExceeded, NotAllowed, Unavailable
from denizen.domain.ids import TurnId
from denizen.domain.installation import build_install_command
from denizen.domain.web_origin import WebOrigin, find_origin, parse_origin
from denizen.ports.browser import BrowserAction, BrowserActionKind, BrowserRules, BrowserView

if TYPE_CHECKING:
    from playwright.async_api import Page

    from denizen.adapters.browser.proxy import OriginProxy
    from denizen.ports.fetch import HostCheck

MAX_PAGES = 3
IDLE_S = 600.0
ACTION_TIMEOUT_S = 10.0
LOAD_TIMEOUT_S = 20.0
READ_TIMEOUT_S = 10.0
"""How long what a page shows may take to be read: its scripts can keep it busy for ever."""
STEP_TIMEOUT_S = LOAD_TIMEOUT_S + ACTION_TIMEOUT_S
MAX_TEXT_CHARS = 200_000
"""How much of a page's text is taken out of the browser."""
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_ARGS = (
    "--proxy-bypass-list=<-loopback>",  # loopback goes through the proxy, too
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)

_SAME_PAGE = """
(() => {
  const opensWindow = (target) => target === '_blank' || (target && target[0] !== '_' && !window.top.frames[target]);
  const baseTarget = () => document.querySelector('base[target]')?.target ?? '';
  window.addEventListener('click', (event) => {
    const link = event.composedPath().find((each) => each.matches?.('a[href], area[href]'));
    if (link && opensWindow(link.target || baseTarget())) link.target = '_top';
  }, true);
  window.addEventListener('submit', (event) => {
    const target = event.submitter?.formTarget || event.target.target || baseTarget();
    if (!opensWindow(target)) return;
    event.target.target = '_top';
    event.submitter?.removeAttribute('formtarget');
  }, true);
  const open = window.open;
  window.open = (url, ...more) => {
    const address = url && URL.canParse(url, document.baseURI) ? new URL(url, document.baseURI) : null;
    if (!navigator.userActivation.isActive || !address?.protocol.startsWith('http')) return open(url, ...more);
    window.top.location.href = address.href;
    return null;
  };
})();
"""
"""Leads on in the same page where a link, a form or a click's script would open a new window, which a turn has not.
What may be reached stays with the proxy.
"""

MakeCheck = Callable[[Sequence[str]], "HostCheck"]
"""Returns a check of hosts that also admits these pairs of `host:port`, which may be private."""

_log = logging.getLogger("denizen.browser")


@dataclass
class _OpenPage:
    """The browser of one turn."""

    page: Page
    proxy: OriginProxy
    stack: AsyncExitStack
    used_s: float
    lock: anyio.Lock = field(default_factory=anyio.Lock)


class ChromiumBrowser:
    """One for a process. Nothing runs until a turn acts on a page."""

    def __init__(self, clock: Clock, make_check: MakeCheck) -> None:
        self._clock = clock
        self._make_check = make_check
        self._pages: dict[TurnId, _OpenPage] = {}
        self._opening = anyio.Lock()

    async def act(self, turn: TurnId, action: BrowserAction, rules: BrowserRules) -> BrowserView:
        origins = [parse_origin(each) for each in rules.origins]
        if action.kind is BrowserActionKind.NAVIGATE:
            _check_address(action.url, origins)
        async with self._opening:
            opened = self._pages.get(turn)
            if opened is None:
                if action.kind is not BrowserActionKind.NAVIGATE:
                    raise InvalidInput("No page is open.", code="browser_no_page", fix="Navigate to one first.")
                opened = await self._open(turn, origins, rules)
        async with opened.lock:
            opened.used_s = self._clock.monotonic_s()
            try:
                return await _act(opened, action)
            except TimeoutError as error:
                await self.close(turn)
                raise Unavailable(
                    "The page does not answer, and was closed.",
                    code="browser_hangs",
                    why="its scripts keep it busy",
                    fix="Navigate to another page.",
                ) from error

    async def close(self, turn: TurnId) -> None:
        opened = self._pages.pop(turn, None)
        if opened is not None:
            with anyio.CancelScope(shield=True):
                await opened.stack.aclose()

    async def aclose(self) -> None:
        """Closes all pages."""
        for turn in list(self._pages):
            await self.close(turn)

    async def _open(self, turn: TurnId, origins: Sequence[WebOrigin], rules: BrowserRules) -> _OpenPage:
        until_s = self._clock.monotonic_s() - IDLE_S
        for other in [each for each, opened in self._pages.items() if opened.used_s < until_s]:
            await self.close(other)
        if len(self._pages) >= MAX_PAGES:
            raise LimitExceeded(
                f"{MAX_PAGES} pages are open already.", code="browser_full", fix="Try again in a little while."
            )
        program = rules.program or next(filter(None, map(shutil.which, PROGRAMS)), "")
        if find_spec("playwright") is None or not program:
            raise Unavailable(
                "There is no browser.",
                code="browser_missing",
                why="Playwright is not installed" if program else "no Chromium was found",
                fix=f"Run `{build_install_command('browser')}` and install Chromium, or set tools.browser.program.",
            )
        from playwright.async_api import Error, async_playwright

        from denizen.adapters.browser.proxy import OriginProxy

        # An address that the owner wrote may be private; a name always has to be public.
        named = [f"{each.host}:{each.port}" for each in origins if each.is_address]
        proxy = OriginProxy(origins, self._make_check(named))
        async with AsyncExitStack() as stack:
            address = await proxy.start()
            stack.push_async_callback(proxy.aclose)
            driver = await stack.enter_async_context(async_playwright())
            try:
                browser = await driver.chromium.launch(
                    executable_path=program,
                    args=list(_ARGS),
                    chromium_sandbox=rules.sandboxed,
                    proxy={"server": address},
                    timeout=LOAD_TIMEOUT_S * 1000,
                )
                stack.push_async_callback(browser.close)
                context = await browser.new_context(accept_downloads=False, service_workers="block")
                await context.add_init_script(_SAME_PAGE)
                page = await context.new_page()
                context.on("page", _close)
            except Error as error:
                raise Unavailable(
                    "The browser does not start.",
                    code="browser_start",
                    why=error.message.splitlines()[0][:300],
                    fix="In a container, tools.browser.sandbox: false may be needed.",
                ) from error
            page.set_default_timeout(ACTION_TIMEOUT_S * 1000)
            opened = _OpenPage(page, proxy, stack.pop_all(), self._clock.monotonic_s())
        self._pages[turn] = opened
        _log.info("a page was opened", extra={"turn": turn})
        return opened


async def _close(page: Page) -> None:
    """Closes a page that another one opened: a turn has one, and a page could open others without end."""
    from playwright.async_api import Error

    with suppress(Error):  # it has gone already
        await page.close()


async def _act(opened: _OpenPage, action: BrowserAction) -> BrowserView:
    from playwright.async_api import Error
    from playwright.async_api import TimeoutError as Late

    page, kind = opened.page, action.kind
    opened.proxy.blocked.clear()
    try:
        with anyio.fail_after(STEP_TIMEOUT_S):
            picture = await _perform(page, action)
        with anyio.fail_after(READ_TIMEOUT_S):
            text = await page.evaluate(f"(document.body?.innerText ?? '').slice(0, {MAX_TEXT_CHARS})")
            title = await page.title()
    except Late as error:
        if kind in (BrowserActionKind.CLICK, BrowserActionKind.TYPE, BrowserActionKind.WAIT):
            raise InvalidInput(
                f"Nothing on the page fits '{action.selector[:100]}' and can be used.",
                code="browser_nothing_there",
                fix="Look at the text of the page, and name another element.",
            ) from error
        raise Unavailable("The page does not load in time.", code="browser_timeout") from error
    except Error as error:
        first = error.message.splitlines()[0][:300]
        if kind in (BrowserActionKind.CLICK, BrowserActionKind.TYPE, BrowserActionKind.WAIT):
            raise InvalidInput("This cannot be done on the page.", code="browser_action", why=first) from error
        if opened.proxy.blocked:
            raise NotAllowed(
                f"This leads to {', '.join(opened.proxy.blocked)}, which may not be opened.",
                code="browser_origin",
                why="pages reach listed origins at public addresses only",
                fix="The owner lists origins under tools.browser.origins.",
            ) from error
        raise Unavailable("The page does not load.", code="browser_load", why=first) from error
    return BrowserView(url=page.url, title=title, text=str(text), picture=picture, blocked=tuple(opened.proxy.blocked))


async def _perform(page: Page, action: BrowserAction) -> bytes:
    """Does the action. Returns the picture of a screenshot, and nothing for other actions."""
    element = page.locator(action.selector).first if action.selector else None
    match action.kind:
        case BrowserActionKind.NAVIGATE:
            await page.goto(action.url, timeout=LOAD_TIMEOUT_S * 1000)
        case BrowserActionKind.BACK:
            await page.go_back(timeout=LOAD_TIMEOUT_S * 1000)
        case BrowserActionKind.SCREENSHOT:
            with anyio.fail_after(READ_TIMEOUT_S):
                return await page.screenshot(type="png")
        case BrowserActionKind.CLICK if element is not None:
            await element.click()
            await page.wait_for_load_state()
        case BrowserActionKind.WAIT if element is not None:
            await element.wait_for()
        case BrowserActionKind.TYPE if element is not None:
            await element.fill(action.text.rstrip("\n"))
            if action.text.endswith("\n"):
                await element.press("Enter")
                await page.wait_for_load_state()
        case _:
            pass
    return b""


def _check_address(url: str, origins: Sequence[WebOrigin]) -> None:
    wanted = find_origin(url)
    if wanted is None or not url.strip().startswith(("http://", "https://")):
        raise InvalidInput("This is no address of a page.", code="browser_url", fix="Begin with http:// or https://.")
    if not any(origin.admits(wanted.host, wanted.port) for origin in origins):
        raise NotAllowed(
            f"{wanted.host}:{wanted.port} is not among the pages that may be opened.",
            code="browser_origin",
            fix="The owner lists origins under tools.browser.origins.",
        )
