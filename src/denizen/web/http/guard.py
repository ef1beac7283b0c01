"""The guard that every request passes before its route, and the security headers of every answer.

With keys or accounts, everything needs a key or a sign-in, except routes that are public or check a signature
themselves; and a request that changes something with a cookie needs the page's token, too. Without either, a server
that listens on loopback trusts this machine, and any other lets nobody in. The danger on an open machine is a web page
in the user's browser that talks to the server, so the `Host` must be a loopback name (against DNS rebinding), and every
request that is not public must come from the server's own pages or from no browser at all (against request forgery):
reading costs something, too. Links from elsewhere still lead to pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from denizen.domain.clock import Clock
from denizen.domain.errors import NotAllowed
from denizen.domain.principal import Principal
from denizen.engine.users.credentials import Caller
from denizen.web.http.auth import (
    CSRF_FIELD,
    CSRF_HEADER,
    LOGIN_PATH,
    OPEN_LOOPBACK,
    AccessRules,
    Exposure,
    check_csrf_token,
    find_key,
    is_loopback,
    login_token,
    read_credentials,
)
from denizen.web.http.request import MAX_FORM_BYTES, parse_form, read_bytes
from denizen.web.http.routing import Access, SitePageRoute, credentials_missing, is_among, list_routes

_FORWARDING = (
    "forwarded",
    "via",
    "x-forwarded-",
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-original-",
    "x-envoy-",
    "cf-",
    "true-client-ip",
    "fastly-client-ip",
    "x-azure-",
    "x-appengine-",
    "x-vercel-",
    "fly-client-ip",
)
"""Beginnings of headers that proxies, load balancers and tunnels add."""
_READING = frozenset({"GET", "HEAD", "OPTIONS"})

SECURITY_HEADERS = {
    "Cache-Control": "no-store",  # answers belong to who asked; the page's own files say otherwise
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data:; base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'none'; object-src 'none'"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers would send our own forms with `Origin: null`
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class SecurityHeaders:
    """Adds the security headers to every answer."""

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
    """Identifies the caller and stores it in `request.state.principal`, or raises NotAllowed."""

    def __init__(self, app: ASGIApp, rules: AccessRules, clock: Clock, routes: Sequence[BaseRoute]) -> None:
        self._app = app
        self._rules = rules
        self._clock = clock
        self._public = list_routes(routes, Access.PUBLIC)
        self._signed = list_routes(routes, Access.SIGNED)
        self._pages = [route for route in routes if isinstance(route, SitePageRoute)]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            request = _CheckedRequest(scope, receive)
            try:
                principal = await self._identify(request)
            except NotAllowed as error:
                if error.code != "credentials_missing" or not is_among(self._pages, scope):
                    raise
                await RedirectResponse(_lead_to_sign_in(scope), status_code=303)(scope, receive, send)
                return
            scope.setdefault("state", {}).update(principal=principal, caller=request.caller)
            receive = request.receive
        await self._app(scope, receive, send)

    async def _identify(self, request: _CheckedRequest) -> Principal | None:
        """Returns the caller; None for an unknown one whose path is public."""
        rules, scope = self._rules, request.scope
        headers = Headers(scope=scope)
        if is_among(self._signed, scope):
            return None
        changes = scope["method"] not in _READING
        if await rules.is_open():
            check_direct(headers)
            check_host(headers, rules.exposure)
            is_read = scope["method"] == "OPTIONS" or is_among(self._public, scope) or self._is_link(scope, headers)
            if changes or not is_read:
                check_origin(headers, rules.exposure)
            return OPEN_LOOPBACK
        if text := read_credentials(headers):
            key = find_key(rules.keys(), text)
            if key is not None:
                return key.principal
            request.caller = await rules.credentials.find_by_key(text)
            if request.caller is None:
                raise NotAllowed("This API key is not known.", code="credentials_wrong", fix="Check the key.")
            return request.caller.principal
        # From here on a browser may have sent the cookie by itself. A request with a key needs no such check: no
        # foreign page can add the header.
        if changes:
            check_origin(headers, rules.exposure)
        is_public = is_among(self._public, scope)
        principal = await self._find_signed_in(request, login_token(headers))
        if principal is not None:
            if changes and not is_public:
                check_csrf_token(login_token(headers), await request.read_csrf_token())
            return principal
        if is_public:
            return None
        raise credentials_missing()

    def _is_link(self, scope: Scope, headers: Headers) -> bool:
        """Tells whether somebody followed a link to a page. One with parameters may ask for work, such as a search, so
        it does not count.
        """
        is_shown = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == ("navigate", "document")
        return is_shown and not scope["query_string"] and is_among(self._pages, scope)

    async def _find_signed_in(self, request: _CheckedRequest, token: str) -> Principal | None:
        if not token:
            return None
        key = self._rules.logins.find(token, self._rules.keys(), now=self._clock.now())
        if key is not None:
            return key.principal
        request.caller = await self._rules.credentials.find_by_token(token)
        return request.caller.principal if request.caller else None


class _CheckedRequest:
    """A request on its way through the guard. Where its form had to be read, `receive` gives the body again."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope = scope
        self.receive = receive
        self.caller: Caller | None = None

    async def read_csrf_token(self) -> str:
        """Returns the token of the page from the header, or from the field of a form."""
        headers = Headers(scope=self.scope)
        given = headers.get(CSRF_HEADER, "")
        if given or not headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
            return given
        body, receive = await read_bytes(Request(self.scope, self.receive), limit=MAX_FORM_BYTES), self.receive
        messages: list[Message] = [{"type": "http.request", "body": body}]

        async def receive_again() -> Message:
            return messages.pop() if messages else await receive()

        self.receive = receive_again
        return parse_form(body).get(CSRF_FIELD, "")


def _lead_to_sign_in(scope: Scope) -> str:
    """Returns the address of the sign-in, which leads back to a page that was read."""
    if scope["method"] not in _READING or scope["path"] == "/":
        return LOGIN_PATH
    query = scope["query_string"].decode("latin-1")
    return f"{LOGIN_PATH}?{urlencode({'next': scope['path'] + (f'?{query}' if query else '')})}"


def check_direct(headers: Headers) -> None:
    """Raises NotAllowed for a request through a proxy: without keys everybody behind it would be the owner."""
    if any(name.startswith(_FORWARDING) for name in headers):
        raise NotAllowed(
            "This server is open to its own machine only, and this request came through a proxy.",
            code="proxy_without_keys",
            fix="Configure server.api_keys before you put a proxy in front.",
        )


def check_host(headers: Headers, exposure: Exposure) -> None:
    """Raises NotAllowed unless the request names a loopback host: after DNS rebinding it names the attacker's."""
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
    """Raises NotAllowed for a request from another site's page. Programs send neither of the two headers."""
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
