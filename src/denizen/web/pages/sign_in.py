"""The sign-in at `/login`, and `/logout`.

Signing in exchanges an API key for a random token in a cookie that scripts cannot read and other sites cannot send.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from denizen.domain.rate_limit import RateLimit
from denizen.domain.record import record
from denizen.web.http.auth import LOGIN_COOKIE, LOGIN_LIFETIME, LOGIN_PATH, find_client_network, find_key, login_token
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.request import read_form
from denizen.web.http.routing import Access, AccessRoute
from denizen.web.pages.page import Frame, build_frame, render

MAX_LOGIN_BYTES = 8192
WRONG_KEYS = RateLimit(calls=10, window_s=900.0)
"""How many wrong keys one address may send; after that it has to wait, even with the right key."""


@record
class LoginPage:
    """The context of `login.html`. `problem` is a sentence, or empty."""

    frame: Frame
    problem: str = ""


class SignInPages:
    """The routes for signing in and out."""

    def __init__(self, deps: WebDependencies) -> None:
        self._deps = deps

    @property
    def routes(self) -> list[AccessRoute]:
        return [
            AccessRoute("GET", LOGIN_PATH, self.show_login, Access.PUBLIC),
            AccessRoute("POST", LOGIN_PATH, self.sign_in, Access.PUBLIC),
            AccessRoute("POST", "/logout", self.sign_out, Access.MEMBER),
        ]

    async def show_login(self, request: Request) -> Response:
        if not self._deps.access.keys():
            return RedirectResponse("/", status_code=303)
        return self._render(request)

    async def sign_in(self, request: Request) -> Response:
        fields = await read_form(request, limit=MAX_LOGIN_BYTES)
        address = f"sign-in\x00{find_client_network(request.client.host if request.client else '')}"
        limiter = self._deps.engine.limiter
        excess = await limiter.take(address, (WRONG_KEYS,))
        if excess is not None:
            problem = f"Too many wrong keys came from your address. Try again in {excess.wait_s / 60:.0f} min."
            return self._render(request, problem, status=429)
        key = find_key(self._deps.access.keys(), fields.get("key", "").strip())
        if key is None:
            return self._render(request, "This key is not known.", status=401)
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

    def _render(self, request: Request, problem: str = "", *, status: int = 200) -> Response:
        return render("login.html", LoginPage(build_frame(request, self._deps), problem), status=status)
