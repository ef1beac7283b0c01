"""The pages: `/` with the chat, `/login` with the sign-in, and `/logout`.

Signing in exchanges an API key for a random token in a cookie that scripts cannot read and other sites cannot send.
"""

from __future__ import annotations

from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route

from denizen.engine.gate.limits import SlidingWindow
from denizen.engine.gate.policy import RateLimit
from denizen.web.api.chat import may_see_all
from denizen.web.http.auth import LOGIN_LIFETIME, find_key
from denizen.web.http.request import read_bytes
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.auth import LOGIN_COOKIE, LOGIN_PATH, get_principal, login_token
from denizen.web.pages.render import ChatPage, LoginPage, StaticPageFiles, render

MAX_FORM_BYTES = 8192
WRONG_KEYS = RateLimit(calls=10, window_s=900.0)
"""From one address; after that it has to wait, even with the right key."""


class PageRoutes:
    """The routes."""

    def __init__(self, deps: WebDependencies) -> None:
        self._deps = deps
        self._wrong_keys = SlidingWindow(deps.clock)

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
        if not self._deps.keys():
            return RedirectResponse("/", status_code=303)
        return render(LoginPage(self._deps.version))

    async def sign_in(self, request: Request) -> Response:
        body = await read_bytes(request, limit=MAX_FORM_BYTES)
        address = request.client.host if request.client else ""
        wait_s = self._wrong_keys.take(address, WRONG_KEYS)
        if wait_s > 0:
            problem = f"Too many wrong keys came from your address. Try again in {wait_s / 60:.0f} min."
            return render(LoginPage(self._deps.version, problem), status=429)
        fields = parse_qs(body.decode(errors="replace"))
        key = find_key(self._deps.keys(), fields.get("key", [""])[0].strip())
        if key is None:
            return render(LoginPage(self._deps.version, "This key is not known."), status=401)
        self._wrong_keys.give_back(address)
        token = self._deps.logins.open(key, now=self._deps.clock.now())
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
        self._deps.logins.close(login_token(request.headers))
        response = RedirectResponse(LOGIN_PATH, status_code=303)
        response.delete_cookie(LOGIN_COOKIE, httponly=True, samesite="strict")
        return response
