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
