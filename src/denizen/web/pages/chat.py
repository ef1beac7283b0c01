"""The chat at `/` and `/c/ID`, and chats that people share at `/shared/TOKEN`. Scripts get the rest from `/api`."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from denizen.domain.record import record
from denizen.web.http.auth import get_principal, may_see_all
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.routing import Access, AccessRoute, SitePageRoute
from denizen.web.pages.page import Frame, build_frame, render


@record
class ChatPage:
    """The context of `chat.html`. `shows_sources` tells the page to watch the sources, which owners and admins may
    see.
    """

    frame: Frame
    shows_sources: bool = False


@record
class SharedChatPage:
    """The context of `shared.html`."""

    version: str


class ChatPages:
    """The routes of the chat."""

    def __init__(self, deps: WebDependencies) -> None:
        self._deps = deps

    @property
    def routes(self) -> list[AccessRoute]:
        return [
            SitePageRoute("GET", "/", self.chat, Access.MEMBER),
            SitePageRoute("GET", "/c/{chat_id}", self.chat, Access.MEMBER),
            SitePageRoute("GET", "/admin/ask", self.ask, Access.ADMIN),
            AccessRoute("GET", "/shared/{token}", self.shared, Access.PUBLIC),
        ]

    async def chat(self, request: Request) -> Response:
        shows_sources = self._deps.knowledge is not None and may_see_all(get_principal(request))
        return render("chat.html", ChatPage(build_frame(request, self._deps, path="/"), shows_sources))

    async def ask(self, request: Request) -> Response:
        """Shows the page of chats, whose script begins a chat about the administration there."""
        return await self.chat(request)

    async def shared(self, _: Request) -> Response:
        """Answers alike for every token: the page asks for the chat itself."""
        return render("shared.html", SharedChatPage(self._deps.version))
