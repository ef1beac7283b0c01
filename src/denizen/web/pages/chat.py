"""The chat at `/`. Its script gets everything else from `/api`."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from denizen.domain.record import record
from denizen.web.http.auth import get_principal, may_see_all
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
        shows_sources = self._deps.knowledge is not None and may_see_all(get_principal(request))
        return render("chat.html", ChatPage(build_frame(request, self._deps), shows_sources))
