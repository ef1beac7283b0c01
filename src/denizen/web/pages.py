"""The pages for people: `/` with the chat, `/login` with the sign-in, and `/logout`.

Signing in exchanges an API key for a random token in a cookie that scripts cannot read and other sites cannot send.
Templates are in `templates`, scripts and styles in `static`.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from denizen.domain.rate_limit import RateLimit
from denizen.domain.record import record
from denizen.web.http.auth import (
    LOGIN_COOKIE,
    LOGIN_LIFETIME,
    LOGIN_PATH,
    find_client_network,
    find_key,
    get_principal,
    login_token,
    may_see_all,
)
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.request import read_bytes

if TYPE_CHECKING:
    from jinja2 import Environment

MAX_FORM_BYTES = 8192
WRONG_KEYS = RateLimit(calls=10, window_s=900.0)
"""How many wrong keys one address may send; after that it has to wait, even with the right key."""

_WEB = Path(__file__).parent


@record
class ChatPage:
    """The context of `chat.html`, which gets everything else from `/api`. `can_sign_out` tells that the caller signed
    in; `simulator` is the address of the simulator's page, or empty; `shows_sources` tells the page to watch the
    sources, which owners and admins may see.
    """

    version: str
    can_sign_out: bool
    simulator: str = ""
    shows_sources: bool = False


@record
class LoginPage:
    """The context of `login.html`. `problem` is a sentence, or empty."""

    version: str
    problem: str = ""


Page = ChatPage | LoginPage

_TEMPLATES: dict[type[Page], str] = {ChatPage: "chat.html", LoginPage: "login.html"}


def render(page: Page, *, status: int = 200) -> Response:
    template = _environment().get_template(_TEMPLATES[type(page)])
    return HTMLResponse(template.render(page=page), status, {"Cache-Control": "no-store"})


@lru_cache(maxsize=1)
def _environment() -> Environment:
    # Imported with the first page, so that servers which only programs use never pay for it.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(loader=FileSystemLoader(_WEB / "templates"), autoescape=True, undefined=StrictUndefined)


class StaticPageFiles(StaticFiles):
    """The page's own files. Browsers check each time whether they changed, so an upgrade never mixes old and new."""

    def __init__(self) -> None:
        super().__init__(directory=_WEB / "static")

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "no-cache"
        return response


class PageRoutes:
    """The routes of the pages."""

    def __init__(self, deps: WebDependencies) -> None:
        self._deps = deps

    @property
    def routes(self) -> list[Route | Mount]:
        return [
            Route("/", self.chat, methods=["GET"]),
            Route(LOGIN_PATH, self.show_login, methods=["GET"]),
            Route(LOGIN_PATH, self.sign_in, methods=["POST"]),
            Route("/logout", self.sign_out, methods=["POST"]),
            Mount("/static", StaticPageFiles()),
        ]

    async def chat(self, request: Request) -> Response:
        can_sign_out = bool(login_token(request.headers))
        shows_sources = self._deps.knowledge is not None and may_see_all(get_principal(request))
        return render(ChatPage(self._deps.version, can_sign_out, self._deps.simulator, shows_sources))

    async def show_login(self, _: Request) -> Response:
        if not self._deps.access.keys():
            return RedirectResponse("/", status_code=303)
        return render(LoginPage(self._deps.version))

    async def sign_in(self, request: Request) -> Response:
        body = await read_bytes(request, limit=MAX_FORM_BYTES)
        address = f"sign-in\x00{find_client_network(request.client.host if request.client else '')}"
        limiter = self._deps.engine.limiter
        excess = await limiter.take(address, (WRONG_KEYS,))
        if excess is not None:
            problem = f"Too many wrong keys came from your address. Try again in {excess.wait_s / 60:.0f} min."
            return render(LoginPage(self._deps.version, problem), status=429)
        fields = parse_qs(body.decode(errors="replace"))
        key = find_key(self._deps.access.keys(), fields.get("key", [""])[0].strip())
        if key is None:
            return render(LoginPage(self._deps.version, "This key is not known."), status=401)
        await limiter.give_back(address)
        token = self._deps.access.logins.open(key, now=self._deps.clock.now())
        response = RedirectResponse("/", status_code=303)
        response.set_cookie(
            LOGIN_COOKIE,
            token,
            max_age=int(LOGIN_LIFETIME.total_seconds()),
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )
        return response

    async def sign_out(self, request: Request) -> Response:
        self._deps.access.logins.close(login_token(request.headers))
        response = RedirectResponse(LOGIN_PATH, status_code=303)
        response.delete_cookie(LOGIN_COOKIE, httponly=True, samesite="strict")
        return response
