"""Who asks: API keys, sign-ins of the page, and the rule that nobody listens beyond loopback without keys.

Pure but for the sign-ins, which are kept in memory: a restart signs everybody out. `guard.py` applies all of it to
requests; `app` calls `check_exposure` before it opens a port.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from denizen.domain.errors import NeedsAttention
from denizen.domain.principal import Principal, PrincipalKind, RoleName
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection, cookie_parser
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from denizen.domain.errors import NotAllowed
from denizen.domain.principal import Principal
from denizen.web.http.dependencies import Exposure, WebDependencies

MIN_KEY_CHARS = 16
"""Of a key that must hold against guessing from elsewhere."""
LOGIN_LIFETIME = timedelta(days=7)
MAX_LOGINS = 1000
OPEN_LOOPBACK = Principal(PrincipalKind.LOCAL, "local", "local", frozenset({RoleName.OWNER}))
"""Who asks a server that listens on loopback and has no keys: somebody on this machine."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key by the sha256 of its text; the text itself is not kept."""

    name: str
    digest: bytes
    roles: frozenset[str] = field(default_factory=frozenset[str])
    is_short: bool = False

    @classmethod
    def of(cls, name: str, text: str, roles: Iterable[str] = ()) -> ApiKey:
        digest = hashlib.sha256(text.encode()).digest()
        return cls(name, digest, frozenset(roles), is_short=len(text) < MIN_KEY_CHARS)

    @property
    def principal(self) -> Principal:
        return Principal(PrincipalKind.API_KEY, self.name, self.name, self.roles)


def find_key(keys: Iterable[ApiKey], text: str) -> ApiKey | None:
    """The first key with that text, which a sign-in finds too. Takes the same time wherever, and whether, it is."""
    digest = hashlib.sha256(text.encode()).digest()
    found: ApiKey | None = None
    for key in keys:
        if hmac.compare_digest(key.digest, digest) and found is None:
            found = key
    return found


def read_credentials(headers: Mapping[str, str]) -> str:
    """The key's text of `Authorization: Bearer` or `x-api-key` (inventory 2.7); empty when there is none."""
    scheme, _, text = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and text.strip():
        return text.strip()
    return headers.get("x-api-key", "").strip()


@dataclass(frozen=True, slots=True)
class _Login:
    digest: bytes
    ends_at: datetime


class LoginSessions:
    """Who signed in to the page: random tokens, each standing for a key. The oldest makes room when there are many."""

    def __init__(self) -> None:
        self._by_token: dict[bytes, _Login] = {}

    def open(self, key: ApiKey, *, now: datetime) -> str:
        """A token for the cookie."""
        token = secrets.token_urlsafe(32)
        if len(self._by_token) >= MAX_LOGINS:
            del self._by_token[next(iter(self._by_token))]
        self._by_token[_digest(token)] = _Login(key.digest, now + LOGIN_LIFETIME)
        return token

    def find(self, token: str, keys: Iterable[ApiKey], *, now: datetime) -> ApiKey | None:
        """The key behind the token, while it is still configured and the sign-in has not ended."""
        login = self._by_token.get(_digest(token))
        if login is None:
            return None
        if login.ends_at <= now:
            self.close(token)
            return None
        return next((key for key in keys if hmac.compare_digest(key.digest, login.digest)), None)

    def close(self, token: str) -> None:
        self._by_token.pop(_digest(token), None)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def is_loopback(host: str) -> bool:
    """Whether a host name or address, without port, is this machine only. An empty host means every interface."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_exposure(host: str, keys: Sequence[ApiKey]) -> None:
    """Raises NeedsAttention when the server would listen beyond loopback and let everybody in, or whoever guesses."""
    if is_loopback(host):
        return
    short = next((key for key in keys if key.is_short), None)
    if short:
        raise NeedsAttention(
            f"The server will not listen on '{host}' with the API key '{short.name}'.",
            code="key_too_short",
            why=f"a key of fewer than {MIN_KEY_CHARS} characters can be guessed",
            fix="Make a longer one, such as with `openssl rand -hex 24`.",
            host=host,
            key=short.name,
        )
    if keys:
        return
    raise NeedsAttention(
        f"The server will not listen on '{host}' without an API key.",
        code="server_exposed",
        why="everybody who reaches this address could use the agents and their tools",
        fix="Add a key under server.api_keys, or listen on 127.0.0.1.",
        host=host,
    )


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
