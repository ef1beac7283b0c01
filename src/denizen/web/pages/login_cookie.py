"""The cookie of a sign-in, and where the browser goes after it."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from denizen.domain.user import SIGN_IN_LIFETIME, User
from denizen.engine.users.credentials import Browser
from denizen.web.http.auth import LOGIN_COOKIE, LOGIN_PATH, find_client_network, login_token
from denizen.web.http.dependencies import WebDependencies

BROWSER_COOKIE = "denizen_browser"
BROWSER_LIFETIME_S = 365 * 24 * 3600


def read_next(fields: Mapping[str, str]) -> str:
    """Returns the page of this server to go on to, from the field `next`; `/` for anything else, since a link to the
    sign-in must not lead to another site.
    """
    path = fields.get("next", "")
    is_local = path.startswith("/") and not path.startswith("//") and "\\" not in path and path.isprintable()
    return path if is_local and path.isascii() else "/"


def is_secure(request: Request, deps: WebDependencies) -> bool:
    """Tells whether the browser speaks TLS, be it to a proxy."""
    return request.url.scheme == "https" or deps.users.public_url.startswith("https:")


def set_login_cookie(request: Request, response: Response, deps: WebDependencies, token: str) -> None:
    """Sets the cookie. Scripts cannot read it. Other sites may link here with it (who comes back from the sign-in of
    another site is still signed in), but a form of theirs does not carry it.
    """
    response.set_cookie(
        LOGIN_COOKIE,
        token,
        max_age=int(SIGN_IN_LIFETIME.total_seconds()),
        secure=is_secure(request, deps),
        httponly=True,
        samesite="lax",
    )


def set_browser_cookie(request: Request, response: Response, deps: WebDependencies, token: str) -> None:
    """Sets the cookie by which the sign-in knows the browser again. It lets nobody in."""
    response.set_cookie(
        BROWSER_COOKIE,
        token,
        max_age=BROWSER_LIFETIME_S,
        path=LOGIN_PATH,
        secure=is_secure(request, deps),
        httponly=True,
        samesite="strict",
    )


async def start_sign_in(request: Request, deps: WebDependencies, user: User, path: str = "/") -> Response:
    """Opens a sign-in with a new token, ends the one that the browser had, and leads to a page."""
    browser = Browser(request.headers.get("user-agent", ""), find_network(request))
    token = await deps.users.credentials.open(user, browser, replaces=login_token(request.headers))
    response = RedirectResponse(path, status_code=303)
    set_login_cookie(request, response, deps, token)
    return response


def find_network(request: Request) -> str:
    """Returns the name under which the address of the browser counts."""
    return find_client_network(request.client.host if request.client else "")
