"""Who callers are: API keys, sign-ins of the page, people with accounts, and how far the server can be reached."""

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

from denizen.domain.errors import NeedsAttention, NotAllowed
from denizen.domain.principal import Principal, PrincipalKind, RoleName
from denizen.domain.record import record
from denizen.domain.user import SignIn, User
from denizen.engine.users.credentials import Caller, UserCredentials

MIN_KEY_CHARS = 16
"""The length from which a key holds against guessing by others than this machine."""
LOGIN_LIFETIME = timedelta(days=7)
MAX_LOGINS = 1000
OPEN_LOOPBACK = Principal(PrincipalKind.LOCAL, "local", "local", frozenset({RoleName.OWNER}))
"""The principal of every request to a server that listens on loopback and has no keys: somebody on this machine."""

LOGIN_COOKIE = "denizen_login"
LOGIN_PATH = "/login"
CSRF_HEADER = "x-csrf-token"
CSRF_FIELD = "csrf_token"
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
    """The sign-ins with a configured key: random tokens, each of which stands for a key. Kept in memory, so a restart
    ends them. The oldest makes room for a new one when there are `MAX_LOGINS`.
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
    """The configured keys, the people with accounts, the sign-ins with keys, and the reach of the server. `keys` is
    called at every request, so that a key that was taken out of the configuration ends at once.
    """

    keys: Callable[[], Sequence[ApiKey]]
    credentials: UserCredentials
    exposure: Exposure = field(default_factory=Exposure)
    logins: LoginSessions = field(default_factory=LoginSessions)

    async def is_open(self) -> bool:
        """Tells whether everybody on this machine is the owner: nobody has an account or a key, and nobody else can
        reach the server.
        """
        return not (self.exposure.listens_beyond_loopback or self.keys() or await self.credentials.any_user())


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


def check_exposure(host: str, keys: Sequence[ApiKey], *, has_pages: bool) -> None:
    """Raises NeedsAttention if the server would listen beyond loopback with a short key, or with neither keys nor
    pages where people sign in. Without keys it starts closed: whoever has the link that is printed makes the first
    account.
    """
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
    if keys or has_pages:
        return
    raise NeedsAttention(
        f"The server will not listen on '{host}' without an API key.",
        code="server_exposed",
        why="everything would need a sign-in, and channels.web.enabled: false leaves no page to sign in on",
        fix="Add a key under server.api_keys, switch the page on, or listen on 127.0.0.1.",
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


def find_caller(connection: HTTPConnection) -> Caller | None:
    """Returns the caller with account, sign-in or key, if it has one that is kept in the store."""
    caller = getattr(connection.state, "caller", None)
    return caller if isinstance(caller, Caller) else None


def get_user(connection: HTTPConnection) -> User:
    """Returns the person that calls. Raises NotAllowed for callers without an account."""
    caller = find_caller(connection)
    if caller is None or caller.user is None:
        raise NotAllowed(
            "This is for people with an account.",
            code="account_missing",
            why="the caller is a key of a program, or somebody at a machine that is open",
            fix="Make an account at /sign-up and sign in.",
        )
    return caller.user


def get_sign_in(connection: HTTPConnection) -> tuple[User, SignIn]:
    """Returns the person that calls and the sign-in. Raises NotAllowed for an API key: whoever finds one must not make
    others with it or take the account over.
    """
    user, caller = get_user(connection), find_caller(connection)
    if caller is None or caller.sign_in is None:
        raise NotAllowed(
            "An API key may not do this.",
            code="sign_in_needed",
            why="whoever finds a key must not be able to take the account over",
            fix="Sign in on the page.",
        )
    return user, caller.sign_in


def make_csrf_token(token: str) -> str:
    """Returns the text that a request with the cookie of that sign-in has to carry besides, which pages of other sites
    cannot know.
    """
    return hmac.new(token.encode(errors="surrogatepass"), b"csrf", hashlib.sha256).hexdigest()


def check_csrf_token(token: str, given: str) -> None:
    """Raises NotAllowed unless the text belongs to the sign-in."""
    if not hmac.compare_digest(make_csrf_token(token).encode(), given.encode(errors="surrogatepass")):
        raise NotAllowed(
            "This request lacks the token of the page.",
            code="csrf_token",
            why="with a cookie alone another site could have made it",
            fix="Load the page again; programs send an API key, or the page's token as X-CSRF-Token.",
        )


def may_see_all(principal: Principal) -> bool:
    """Tells whether somebody is an owner or an admin."""
    return bool(principal.roles & {RoleName.OWNER, RoleName.ADMIN})


def login_token(headers: Headers) -> str:
    """Returns the token of the sign-in from the cookie; empty if there is none."""
    cookie = headers.get("cookie")
    return cookie_parser(cookie).get(LOGIN_COOKIE, "") if cookie else ""
