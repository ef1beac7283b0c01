"""Pages of the web in a browser, one for each turn; off unless switched on.

A page reaches the origins that the owner lists and no others, and begins without cookies. So its tool states no effect
of sending: what it sends goes to those origins. It is sensitive all the same, since what it does there may count.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Annotated, Literal

from denizen.skill import (
    BrowserAction,
    BrowserActionKind,
    BrowserRules,
    InvalidInput,
    NotAllowed,
    Param,
    Skill,
    Taint,
    Tier,
    ToolContext,
    ToolError,
    ToolOutput,
    parse_origin,
    quote_untrusted,
)

MAX_CHARS = 4000
TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class BrowserSettings:
    """`origins` are the only ones that pages reach, such as https://docs.example or https://*.example. `program` is the
    path of Chromium; empty to look for it. `sandbox` keeps Chromium's own sandbox on, which some containers do not let
    it have.
    """

    origins: tuple[str, ...] = ()
    program: str = ""
    sandbox: bool = True

    def __post_init__(self) -> None:
        """Raises ValueError for what is no origin."""
        for origin in self.origins:
            try:
                parse_origin(origin)
            except InvalidInput as error:
                raise ValueError(error.explain()) from error


skill = Skill("browser", description="Uses pages of the web in a browser.", settings=BrowserSettings)

Action = Literal["navigate", "click", "type", "wait", "back", "text", "screenshot"]


@skill.tool(tier=Tier.SENSITIVE, timeout_s=TIMEOUT_S, reads={Taint.WEB})
async def browser(
    context: ToolContext,
    action: Action,
    url: Annotated[str, Param(max_length=4000)] = "",
    selector: Annotated[str, Param("CSS, or text=Words", max_length=500)] = "",
    text: Annotated[str, Param("to type; a line break at its end presses Enter", max_length=4000)] = "",
) -> ToolOutput:
    """Uses a page in a browser and returns its text. The user sees screenshots."""
    if context.browser is None:
        raise ToolError("There is no browser here.")
    if action in ("click", "type", "wait") and not selector:
        raise ToolError(f"`{action}` needs a selector.")
    options = context.settings(BrowserSettings)
    rules = BrowserRules(origins=options.origins, program=options.program, sandboxed=options.sandbox)
    wanted = BrowserAction(kind=BrowserActionKind(action), url=url, selector=selector, text=text)
    try:
        view = await context.browser.act(context.turn_id, wanted, rules)
    except (InvalidInput, NotAllowed) as refused:
        raise ToolError(refused.explain()) from refused
    shown = view.text.strip()
    told = f"{view.title}\n\n{shown[:MAX_CHARS]}"
    lines = [quote_untrusted(told, source=view.url)]
    if len(shown) > MAX_CHARS:
        lines.append(f"The page is longer; these are its first {MAX_CHARS} characters.")
    if view.blocked:
        hosts = quote_untrusted(" ".join(view.blocked), source="page")
        lines.append(f"Not loaded, since the owner does not list it: {hosts}")
    if not view.picture:
        return ToolOutput("\n".join(lines))
    picture = f"data:image/png;base64,{base64.b64encode(view.picture).decode()}"
    return ToolOutput("\n".join(lines), {"images": [{"url": picture, "title": "Screenshot"}]})
