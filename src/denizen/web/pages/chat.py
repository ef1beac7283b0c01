"""The chat at `/` and `/c/ID`, and chats that people share at `/shared/TOKEN`. Scripts get the rest from `/api`."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from denizen.domain.principal import RoleName
from denizen.domain.record import record
from denizen.web.http.auth import get_principal, may_see_all
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.routing import Access, AccessRoute, SitePageRoute
from denizen.web.pages.page import Frame, build_frame, render
from denizen.web.pages.setup import SETUP


@record
class ChatPage:
    """The context of `chat.html`. `shows_sources` tells the page to watch the sources, which owners and admins may
    see. `setup` is the address of the first steps for who may connect a model there, else empty.
    """

    frame: Frame
    shows_sources: bool = False
    setup: str = ""


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
        principal, frame = get_principal(request), build_frame(request, self._deps, path="/")
        shows_sources = self._deps.knowledge is not None and may_see_all(principal)
        may_set_up = self._deps.setup is not None and RoleName.OWNER in principal.roles
        return render("chat.html", ChatPage(frame, shows_sources, f"{SETUP}/model" if may_set_up else ""))

    async def ask(self, request: Request) -> Response:
        """Shows the page of chats, whose script begins a chat about the administration there."""
        return await self.chat(request)

    async def shared(self, _: Request) -> Response:
        """Answers alike for every token: the page asks for the chat itself."""
        return render("shared.html", SharedChatPage(self._deps.version))
