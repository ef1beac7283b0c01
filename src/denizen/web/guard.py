"""Who may come in: every request passes here before a route sees it (inventory 2.7, TW3).

With keys, everything needs one but the health answer, the page's own files and the sign-in. Without keys the server
listens on loopback only (`auth.check_exposure`) and is open to this machine; there the danger is a web page in the
user's browser that talks to it. So the `Host` must be a loopback name (against DNS rebinding), and what changes
something must come from the server's own pages or from no browser at all (against request forgery).
"""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection, cookie_parser
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from denizen.domain.errors import NotAllowed
from denizen.domain.principal import Principal
from denizen.web.auth import OPEN_LOOPBACK, find_key, is_loopback, read_credentials
from denizen.web.dependencies import Exposure, WebDependencies

LOGIN_COOKIE = "denizen_login"
LOGIN_PATH = "/login"
PAGES = frozenset({"/"})
"""Where somebody who is not signed in is led to the sign-in instead of getting an error."""

SYNC_WEBHOOKS = "/api/sync/webhook/"
"""Whoever calls what is below it is told apart by the route, by a secret for that alone. Proxies pass it on."""
WEBHOOKS = "/api/webhooks/"
"""Below it platforms speak, from anywhere: their signatures are the credentials, which the route checks."""

_PUBLIC = frozenset({"/health", LOGIN_PATH})
_READING = frozenset({"GET", "HEAD", "OPTIONS"})

SECURITY_HEADERS = {
    "Cache-Control": "no-store",  # answers belong to who asked; the page's own files say otherwise
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers would send our own forms with `Origin: null`
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class SecurityHeaders:
    """Puts the headers on every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, with_headers if scope["type"] == "http" else send)


class AccessGuard:
    """Finds out who asks and leaves it in `request.state.principal`, or raises NotAllowed."""

    def __init__(self, app: ASGIApp, deps: WebDependencies) -> None:
        self._app = app
        self._deps = deps

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                principal = self._admit(scope)
            except NotAllowed as error:
                if error.code != "credentials_missing" or scope["path"] not in PAGES:
                    raise
                await RedirectResponse(LOGIN_PATH, status_code=303)(scope, receive, send)
                return
            scope.setdefault("state", {})["principal"] = principal
        await self._app(scope, receive, send)

    def _admit(self, scope: Scope) -> Principal | None:
        """None for somebody unknown who wants what is public."""
        deps, headers, path = self._deps, Headers(scope=scope), scope["path"]
        if path.startswith((SYNC_WEBHOOKS, WEBHOOKS)):
            return None
        changes = scope["method"] not in _READING
        keys = deps.keys()
        if not keys and not deps.exposure.listens_beyond_loopback:
            check_direct(headers)
            check_host(headers, deps.exposure)
            if changes:
                check_origin(headers, deps.exposure)
            return OPEN_LOOPBACK
        if text := read_credentials(headers):
            key = find_key(keys, text)
            if key is None:
                raise NotAllowed("This API key is not known.", code="credentials_wrong", fix="Check the key.")
            return key.principal
        if changes:
            check_origin(headers, deps.exposure)
        token = login_token(headers)
        key = deps.logins.find(token, keys, now=deps.clock.now()) if token else None
        if key is not None:
            return key.principal
        if path in _PUBLIC or path.startswith("/static/"):
            return None
        raise NotAllowed(
            "This needs an API key.",
            code="credentials_missing",
            fix="Send it as `Authorization: Bearer KEY` or `x-api-key: KEY`, or sign in on the page.",
        )


def get_principal(connection: HTTPConnection) -> Principal:
    """Who asks. Only for routes behind the guard that are not public."""
    principal = connection.state.principal
    if not isinstance(principal, Principal):
        raise TypeError("a public route must not ask who is asking")
    return principal


def login_token(headers: Headers) -> str:
    """The sign-in's token from the cookie; empty when there is none."""
    cookie = headers.get("cookie")
    return cookie_parser(cookie).get(LOGIN_COOKIE, "") if cookie else ""


def check_direct(headers: Headers) -> None:
    """Raises NotAllowed for a request that a proxy passed on: without keys everybody behind it would be the owner."""
    if any(name in headers for name in ("forwarded", "x-forwarded-for", "x-real-ip")):
        raise NotAllowed(
            "This server is open to its own machine only, and this request came through a proxy.",
            code="proxy_without_keys",
            fix="Configure server.api_keys before you put a proxy in front.",
        )


def check_host(headers: Headers, exposure: Exposure) -> None:
    """Raises NotAllowed unless the request was addressed to a loopback name."""
    host = headers.get("host", "").lower()
    name = host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host
    if is_loopback(name) or name.endswith(".localhost") or name in exposure.allowed_hosts:
        return
    raise NotAllowed(
        "This server does not answer to that host name.",
        code="host_refused",
        why="it has no API keys and answers to loopback names only, so that web pages cannot reach it by a trick",
        fix="Use http://127.0.0.1, or add an API key under server.api_keys.",
    )


def check_origin(headers: Headers, exposure: Exposure) -> None:
    """Raises NotAllowed for a request that a page of somebody else made. Programs send neither header."""
    origin = headers.get("origin")
    if origin is not None and origin in exposure.allowed_origins:
        return
    site = headers.get("sec-fetch-site")
    if site is not None:
        foreign = site not in {"same-origin", "none"}
    else:  # an old browser, or one that reads the page over plain http from another machine
        foreign = origin is not None and origin.partition("://")[2] != headers.get("host")
    if foreign:
        raise NotAllowed(
            "A page of another site made this request.",
            code="origin_refused",
            fix="Use the server's own page, an API key, or add the origin under server.cors_origins.",
        )
