"""The sign-in at `/login`, and `/logout`.

People sign in with e-mail and password, or at another site (`oauth.py`); whoever has an API key may sign in with that.
Either way the browser gets a random token in a cookie that scripts cannot read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from starlette.requests import Request, cookie_parser
from starlette.responses import RedirectResponse, Response

from denizen.domain.errors import LimitExceeded
from denizen.domain.rate_limit import RateLimit
from denizen.domain.record import record
from denizen.engine.users.accounts import make_browser_token
from denizen.web.http.auth import LOGIN_COOKIE, LOGIN_PATH, OPEN_LOOPBACK, find_key, find_principal, login_token
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.request import read_form
from denizen.web.http.routing import Access, AccessRoute
from denizen.web.pages.login_cookie import (
    BROWSER_COOKIE,
    find_network,
    read_next,
    set_browser_cookie,
    set_login_cookie,
    start_sign_in,
)
from denizen.web.pages.page import Frame, build_frame, render

MAX_LOGIN_BYTES = 8192
MAX_TOKEN_CHARS = 200
WRONG_KEYS = RateLimit(calls=10, window_s=900.0)
"""How many wrong keys and passwords one address may send; after that it has to wait, even with the right one, unless
somebody signed in to that account in the same browser before.
"""


@record
class ProviderLink:
    """Another site to sign in with: its name, and the address where that begins."""

    label: str
    href: str


@record(kw_only=True)
class LoginPage:
    """The context of `login.html`. `problem` is a sentence, or empty; `email` is what was filled in, `next` the page to
    go on to, and `browser` the token of a link that makes the browser a known one. Without accounts there is no
    `has_accounts`, and only keys are asked for; `may_sign_up` tells that everybody may make an account.
    """

    frame: Frame
    problem: str = ""
    email: str = ""
    next: str = "/"
    browser: str = ""
    has_accounts: bool = False
    may_sign_up: bool = False
    providers: Sequence[ProviderLink] = ()


def list_provider_links(deps: WebDependencies, query: str) -> Sequence[ProviderLink]:
    """Returns the sites that people may sign in with."""
    return [ProviderLink(each.label, f"/login/{name}{query}") for name, each in deps.users.providers().items()]


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
        if find_principal(request) == OPEN_LOOPBACK:
            return RedirectResponse("/", status_code=303)
        return await self._render(request, dict(request.query_params))

    async def sign_in(self, request: Request) -> Response:
        fields = await read_form(request, limit=MAX_LOGIN_BYTES)
        address = f"sign-in\x00{find_network(request)}"
        limiter, known = self._deps.engine.limiter, await self._find_known_browser(request, fields)
        excess = None if known else await limiter.take(address, (WRONG_KEYS,))
        if excess is not None:
            problem = (
                f"Too many wrong keys or passwords came from your address. Try again in {excess.wait_s / 60:.0f} min."
            )
            return await self._render(request, fields, problem, status=429)
        try:
            response = await self._try(request, fields, known)
        except LimitExceeded as error:
            return await self._render(request, fields, error.message, status=429)
        if response is None:
            problem = (
                "This key is not known." if "key" in fields else "There is no account with this e-mail and password."
            )
            return await self._render(request, fields, problem, status=401)
        if not known:
            await limiter.give_back(address)
        return response

    async def _find_known_browser(self, request: Request, fields: Mapping[str, str]) -> str:
        """Returns the token of a browser in which somebody signed in to that account before, or that came by a link of
        `denizen users let-in`; else an empty text.
        """
        if "key" in fields:
            return ""
        cookie = cookie_parser(request.headers.get("cookie", "")).get(BROWSER_COOKIE, "")
        for token in (cookie, fields.get("browser", "")):
            if await self._deps.users.accounts.is_known_browser(fields.get("email", ""), token):
                return token
        return ""

    async def _try(self, request: Request, fields: Mapping[str, str], known: str) -> Response | None:
        deps, path = self._deps, read_next(fields)
        if "key" not in fields:
            email, password = fields.get("email", ""), fields.get("password", "")
            user = await deps.users.accounts.check_sign_in(email, password, known_browser=known)
            if user is None:
                return None
            response = await start_sign_in(request, deps, user, path)
            set_browser_cookie(request, response, deps, make_browser_token(user))
            return response
        # The key of a person signs nobody in: whoever finds one must not get more than it may do.
        key = find_key(deps.access.keys(), fields["key"].strip())
        if key is None:
            return None
        token = deps.access.logins.open(key, now=deps.clock.now())
        await self._end(login_token(request.headers))
        response = RedirectResponse(path, status_code=303)
        set_login_cookie(request, response, deps, token)
        return response

    async def sign_out(self, request: Request) -> Response:
        await self._end(login_token(request.headers))
        response = RedirectResponse(LOGIN_PATH, status_code=303)
        response.delete_cookie(LOGIN_COOKIE, httponly=True, samesite="lax")
        return response

    async def _end(self, token: str) -> None:
        if token:
            self._deps.access.logins.close(token)
            await self._deps.users.credentials.close(token)

    async def _render(
        self, request: Request, fields: Mapping[str, str], problem: str = "", *, status: int = 200
    ) -> Response:
        deps, path = self._deps, read_next(fields)
        has_accounts = await deps.users.credentials.any_user()
        page = LoginPage(
            frame=build_frame(request, deps),
            problem=problem,
            email=fields.get("email", "")[:254],
            next=path,
            browser=fields.get("browser", "")[:MAX_TOKEN_CHARS],
            has_accounts=has_accounts,
            may_sign_up=has_accounts and deps.users.is_registration_open(),
            providers=list_provider_links(deps, f"?next={quote(path)}"),
        )
        return render("login.html", page, status=status)
