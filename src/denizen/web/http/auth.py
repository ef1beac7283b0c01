"""Who callers are: API keys, sign-ins of the page, and how far the server can be reached."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection, cookie_parser

from denizen.domain.errors import NeedsAttention
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
HEALTH_PATH = "/health"
READY_PATH = "/ready"


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


def login_token(headers: Headers) -> str:
    """Returns the token of the sign-in from the cookie; empty if there is none."""
    cookie = headers.get("cookie")
    return cookie_parser(cookie).get(LOGIN_COOKIE, "") if cookie else ""
