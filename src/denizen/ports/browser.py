"""The port of the browser: pages of the web as people see them, one for each turn.

Implemented by `adapters/browser`. A page is opened by its first action and closed at the end of its turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from denizen.domain.ids import TurnId
from denizen.domain.record import record


class BrowserActionKind(StrEnum):
    """The kind of an action on a page."""

    NAVIGATE = "navigate"
    CLICK = "click"
    TYPE = "type"
    WAIT = "wait"
    BACK = "back"
    TEXT = "text"
    SCREENSHOT = "screenshot"


@record(kw_only=True)
class BrowserAction:
    """One action: NAVIGATE needs `url`; CLICK, TYPE and WAIT need `selector`, a CSS selector or `text=` with words;
    TYPE puts `text` into a field, and a line break at its end presses Enter.
    """

    kind: BrowserActionKind
    url: str = ""
    selector: str = ""
    text: str = ""


@record(kw_only=True)
class BrowserRules:
    """The bounds of a page. `origins` are the only ones that it and its scripts may reach, such as
    `https://docs.example` or `https://*.example`. `program` is the path of Chromium, empty to look for it; `sandboxed`
    keeps Chromium's own sandbox on.
    """

    origins: Sequence[str]
    program: str = ""
    sandboxed: bool = True


@record(kw_only=True)
class BrowserView:
    """The page after an action: its visible text, a picture (PNG) if that was asked for, and the hosts that it wanted
    to reach and might not.
    """

    url: str
    title: str
    text: str
    picture: bytes = b""
    blocked: Sequence[str] = ()


class PageBrowser(Protocol):
    """Pages of turns."""

    async def act(self, turn: TurnId, action: BrowserAction, rules: BrowserRules) -> BrowserView:
        """Acts on the turn's page. Raises NotAllowed for an address beyond the origins, InvalidInput for an action that
        this page does not have, such as a click on nothing, LimitExceeded when too many pages are open, and Unavailable
        where there is no Chromium or a page does not load.
        """
        ...

    async def close(self, turn: TurnId) -> None:
        """Closes the turn's page, if it has one."""
        ...
