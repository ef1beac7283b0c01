"""The chat at `/`. Its script gets everything else from `/api`."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from denizen.domain.record import record
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.routing import Access, SitePageRoute
from denizen.web.pages.page import Frame, build_frame, render


@record
class ChatPage:
    """The context of `chat.html`. `shows_sources` tells the page to watch the sources, which owners and admins may
    see.
    """

    frame: Frame
    shows_sources: bool = False


class ChatPages:
    """The routes of the chat."""

    def __init__(self, deps: WebDependencies) -> None:
        self._deps = deps

    @property
    def routes(self) -> list[SitePageRoute]:
        return [SitePageRoute("GET", "/", self.chat, Access.MEMBER)]

    async def chat(self, request: Request) -> Response:
        frame = build_frame(request, self._deps, "chat")
        return render("chat.html", ChatPage(frame, self._deps.knowledge is not None and frame.may_administrate))
