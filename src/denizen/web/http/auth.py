"""Who may come in: API keys, sign-ins of the page, and the guard that every request passes before its route.

With keys, everything needs one except the answers about health and readiness, the page's own files and the sign-in.
Without keys the server listens on loopback only (`check_exposure`) and trusts this machine. The danger there is a web
page in the user's browser that talks to the server, so the `Host` must be a loopback name (against DNS rebinding), and
a request that changes something, and every one to the API, must come from the server's own pages or from no browser at
all (against request forgery).
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection, Request, cookie_parser
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from denizen.domain.clock import Clock
from denizen.domain.errors import NeedsAttention, NotAllowed
from denizen.domain.principal import Principal, PrincipalKind, RoleName
from denizen.domain.record import record

MIN_KEY_CHARS = 16
"""The length from which a key holds against guessing by others than this machine."""
LOGIN_LIFETIME = timedelta(days=7)
MAX_LOGINS = 1000
OPEN_LOOPBACK = Principal(PrincipalKind.LOCAL, "local", "local", frozenset({RoleName.OWNER}))
"""The principal of every request to a server that listens on loopback and has no keys: somebody on this machine."""

LOGIN_COOKIE = "denizen_login"
LOGIN_PATH = "/login"
PAGES = frozenset({"/"})
"""The paths that redirect to the sign-in instead of answering with an error."""

SYNC_WEBHOOKS = "/api/sync/webhook/"
"""The guard lets requests below this path pass: the route itself checks the secret of the webhook."""
WEBHOOKS = "/api/webhooks/"
"""The guard lets requests below this path pass: the route itself checks the platform's signature."""

HEALTH_PATH = "/health"
READY_PATH = "/ready"
_PUBLIC = frozenset({HEALTH_PATH, READY_PATH, LOGIN_PATH})
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
_API = "/api/"

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


@record
class ApiKey:
    """A key, stored as the sha256 of its text."""

    name: str
    digest: bytes
    roles: frozenset[str] = field(default_factory=frozenset[str])
    is_short: bool = False

    @classmethod
    def from_text(cls, name: str, text: str, roles: Iterable[str] = ()) -> ApiKey:
        digest = hashlib.sha256(text.encode()).digest()
        return cls(name, digest, frozenset(roles), is_short=len(text) < MIN_KEY_CHARS)

    @property
    def principal(self) -> Principal:
        return Principal(PrincipalKind.API_KEY, self.name, self.name, self.roles)


def find_key(keys: Iterable[ApiKey], text: str) -> ApiKey | None:
    """Returns the first key with that text. Takes the same time wherever the key is, or if there is none."""
    digest = hashlib.sha256(text.encode()).digest()
    found: ApiKey | None = None
    for key in keys:  # all of them, without an early exit: the duration must not tell which key came close
        if hmac.compare_digest(key.digest, digest) and found is None:
            found = key
    return found


def read_credentials(headers: Mapping[str, str]) -> str:
    """Returns the key's text from `Authorization: Bearer` or `x-api-key`; empty if there is none."""
    scheme, _, text = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and text.strip():
        return text.strip()
    return headers.get("x-api-key", "").strip()


@record
class _LoginSession:
    digest: bytes
    ends_at: datetime


class LoginSessions:
    """The sign-ins of the page: random tokens, each of which stands for a key. Kept in memory, so a restart signs
    everybody out. The oldest makes room for a new one when there are `MAX_LOGINS`.
    """

    def __init__(self) -> None:
        self._by_token: dict[bytes, _LoginSession] = {}

    def open(self, key: ApiKey, *, now: datetime) -> str:
        """Opens a session and returns its token, for the cookie."""
        token = secrets.token_urlsafe(32)
        if len(self._by_token) >= MAX_LOGINS:
            del self._by_token[next(iter(self._by_token))]
        self._by_token[_digest(token)] = _LoginSession(key.digest, now + LOGIN_LIFETIME)
        return token

    def find(self, token: str, keys: Iterable[ApiKey], *, now: datetime) -> ApiKey | None:
        """Returns the key behind the token, if it is still configured and the session has not ended."""
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


@record
class Exposure:
    """Who can reach the server. `allowed_hosts` are names besides the loopback names that a loopback server answers to;
    `allowed_origins` are origins (`https://host`) of other pages whose scripts may use the API.
    """

    listens_beyond_loopback: bool = False
    allowed_hosts: frozenset[str] = frozenset()
    allowed_origins: frozenset[str] = frozenset()


@record
class AccessRules:
    """The keys, the sign-ins and the reach of the server. `keys` is called at every request, so that a key that was
    taken out of the configuration ends at once.
    """

    keys: Callable[[], Sequence[ApiKey]]
    exposure: Exposure = field(default_factory=Exposure)
    logins: LoginSessions = field(default_factory=LoginSessions)


def is_loopback(host: str) -> bool:
    """Tells whether a host name or address, without port, is this machine only. An empty host is every interface."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def find_client_network(host: str) -> str:
    """Returns the name under which a client's address counts: all addresses of an IPv6 network of 64 bits have one,
    since one client may have them all.
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    address = getattr(address, "ipv4_mapped", None) or address
    return str(address) if address.version == 4 else f"{int(address) >> 64:x}"


def check_exposure(host: str, keys: Sequence[ApiKey]) -> None:
    """Raises NeedsAttention if the server would listen beyond loopback without keys, or with a short one."""
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

    def __init__(self, app: ASGIApp, rules: AccessRules, clock: Clock) -> None:
        self._app = app
        self._rules = rules
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                principal = self._identify(scope)
            except NotAllowed as error:
                if error.code != "credentials_missing" or scope["path"] not in PAGES:
                    raise
                await RedirectResponse(LOGIN_PATH, status_code=303)(scope, receive, send)
                return
            scope.setdefault("state", {})["principal"] = principal
        await self._app(scope, receive, send)

    def _identify(self, scope: Scope) -> Principal | None:
        """Returns the caller; None for an unknown one whose path is public."""
        rules, headers, path = self._rules, Headers(scope=scope), scope["path"]
        if path.startswith((SYNC_WEBHOOKS, WEBHOOKS)):
            return None
        changes = scope["method"] not in _READING
        keys = rules.keys()
        if not keys and not rules.exposure.listens_beyond_loopback:
            check_direct(headers)
            check_host(headers, rules.exposure)
            if changes or (
                path.startswith(_API) and scope["method"] != "OPTIONS"
            ):  # a search writes a log line and takes from the budget, too
                check_origin(headers, rules.exposure)
            return OPEN_LOOPBACK
        if text := read_credentials(headers):
            key = find_key(keys, text)
            if key is None:
                raise NotAllowed("This API key is not known.", code="credentials_wrong", fix="Check the key.")
            return key.principal
        # From here on a browser may have sent the cookie by itself. A request with a key needs no such check: no
        # foreign page can add the header.
        if changes:
            check_origin(headers, rules.exposure)
        token = login_token(headers)
        key = rules.logins.find(token, keys, now=self._clock.now()) if token else None
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
    """Returns the caller. Only for routes behind the guard that are not public."""
    principal = find_principal(connection)
    if principal is None:
        raise TypeError("a public route has no principal")
    return principal


def find_principal(connection: HTTPConnection) -> Principal | None:
    """Returns the caller; None for an unknown one of a public route."""
    principal = connection.state.principal
    return principal if isinstance(principal, Principal) else None


def may_see_all(principal: Principal) -> bool:
    """Tells whether somebody is an owner or an admin."""
    return bool(principal.roles & {RoleName.OWNER, RoleName.ADMIN})


def require_admin(request: Request) -> None:
    """Raises NotAllowed for everybody but owners and admins."""
    if not may_see_all(get_principal(request)):
        raise NotAllowed("This is for owners and admins.", code="admin_only", fix="Use a key with the role admin.")


def login_token(headers: Headers) -> str:
    """Returns the token of the sign-in from the cookie; empty if there is none."""
    cookie = headers.get("cookie")
    return cookie_parser(cookie).get(LOGIN_COOKIE, "") if cookie else ""


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
