"""Requests to Google's REST APIs: access tokens, deadlines, retries, bounds of answers, and errors."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import anyio

from denizen import __version__
from denizen.adapters.google.consent import CONNECT, HttpGoogleConsent
from denizen.domain.clock import Clock
from denizen.domain.errors import (
    Conflict,
    DenizenError,
    InvalidInput,
    NeedsAttention,
    NotAllowed,
    NotFound,
    Unavailable,
)
from denizen.domain.record import record
from denizen.domain.words import truncate
from denizen.ports.google import GoogleLogin

DEADLINE_S = 40.0
"""The deadline of one request with its retries."""
RESPONSE_TIMEOUT_S = 15.0
TRIES = 3
RETRY_S = 0.5
MAX_BYTES = 5_000_000
"""How much of an answer is read; a larger one is refused."""
TOKEN_MARGIN_S = 60.0
GMAIL, CALENDAR, DRIVE, UPLOAD = "/gmail/v1", "/calendar/v3", "/drive/v3", "/upload/drive/v3"

_HOSTS = {
    GMAIL: "https://gmail.googleapis.com",
    CALENDAR: "https://www.googleapis.com",
    DRIVE: "https://www.googleapis.com",
    UPLOAD: "https://www.googleapis.com",
}
_SWITCHED_OFF = frozenset({"accessNotConfigured", "SERVICE_DISABLED"})
_SCOPES_MISSING = frozenset({"insufficientPermissions", "ACCESS_TOKEN_SCOPE_INSUFFICIENT"})
_TOO_OFTEN = frozenset({"rateLimitExceeded", "userRateLimitExceeded", "dailyLimitExceeded", "quotaExceeded"})
_log = logging.getLogger("denizen.google")

Row = Mapping[str, Any]


@record(kw_only=True)
class GoogleRequest:
    """A request to one API. `doing` completes "Google did not let Denizen ..."; `content` is a body with its media
    type, in place of `json`.
    """

    method: str = "GET"
    api: str
    path: str
    doing: str
    params: Mapping[str, str | Sequence[str]] | None = None
    json: Row | None = None
    content: tuple[bytes, str] | None = None


class GoogleClient:
    """Requests in the name of one account. Holds nothing open between them; an access token is kept while it is valid.

    Raises NeedsAttention for a consent that is missing or ended, NotFound, Conflict, NotAllowed, InvalidInput, and
    Unavailable.
    """

    def __init__(self, login: GoogleLogin, clock: Clock) -> None:
        self._base = login.api_url.rstrip("/")
        self._consent = HttpGoogleConsent(login)
        self._clock = clock
        self._token = ""
        self._valid_until_s = -math.inf
        self._lock = anyio.Lock()

    async def ask(self, request: GoogleRequest) -> Row:
        """Returns the object that the API answers with; an empty one for an answer without a body."""
        data = await self.read(request)
        try:
            found: Any = json.loads(data) if data.strip() else {}
        except (ValueError, RecursionError) as error:
            raise _unreachable(request, "Its answer is not JSON.") from error
        return cast("Row", found) if isinstance(found, dict) else {}

    async def read(self, request: GoogleRequest) -> bytes:
        """Returns the body of the answer. What only reads is tried again after a fault that may pass."""
        with anyio.move_on_after(DEADLINE_S):
            for left in reversed(range(TRIES)):
                try:
                    return await self._send(request)
                except Unavailable as error:
                    if not left or request.method != "GET":
                        raise
                    _log.info("asking Google again", extra={"doing": request.doing, **error.fields})
                    await anyio.sleep(RETRY_S * (TRIES - left))
        raise _unreachable(request, "There was no answer in time.")

    async def _send(self, request: GoogleRequest) -> bytes:
        status, body = await self._try(request, await self._find_token())
        if status == 401:  # a token that was taken back before its time
            self._token = ""
            status, body = await self._try(request, await self._find_token())
        if status >= 300:
            raise explain_error(request, status, body)
        return body

    async def _find_token(self) -> str:
        async with self._lock:
            if not self._token or self._clock.monotonic_s() >= self._valid_until_s:
                token = await self._consent.renew()
                self._token = token.text
                self._valid_until_s = self._clock.monotonic_s() + token.valid_s - TOKEN_MARGIN_S
            return self._token

    async def _try(self, request: GoogleRequest, token: str) -> tuple[int, bytes]:
        import httpx2

        headers = {"authorization": f"Bearer {token}", "user-agent": f"Denizen/{__version__}"}
        body: dict[str, Any] = {"json": dict(request.json)} if request.json is not None else {}
        if request.content is not None:
            headers["content-type"] = request.content[1]
            body = {"content": request.content[0]}
        url = f"{self._base or _HOSTS[request.api]}{request.api}{request.path}"
        params: Any = dict(request.params or {})
        data = bytearray()
        try:
            async with (
                httpx2.AsyncClient(timeout=RESPONSE_TIMEOUT_S) as http,
                http.stream(request.method, url, params=params, headers=headers, **body) as response,
            ):
                async for part in response.aiter_bytes():
                    data += part
                    if len(data) > MAX_BYTES:
                        raise InvalidInput(
                            f"What Google has is larger than {MAX_BYTES // 1_000_000} MB.", code="google_large"
                        )
                return response.status_code, bytes(data)
        except httpx2.HTTPError as error:
            raise _unreachable(request, type(error).__name__) from error


def explain_error(request: GoogleRequest, status: int, body: bytes) -> DenizenError:
    """Returns what an error answer means. https://cloud.google.com/apis/design/errors"""
    error = _read_error(body)
    reasons = {str(row.get("reason", "")) for key in ("errors", "details") for row in list_rows(error, key)}
    said = truncate(" ".join(str(error.get("message", "")).split()), 300) or f"HTTP {status}"
    if reasons & _TOO_OFTEN or status == 429:
        return Unavailable(
            f"Google does not let Denizen {request.doing} so often.", code="google_quota", why=said, fix="Wait."
        )
    if reasons & _SWITCHED_OFF:
        return NeedsAttention(
            f"Google did not let Denizen {request.doing}.",
            code="google_api_off",
            why=said,
            fix="Switch the API on in the Google Cloud project of google.client_id, under APIs & Services.",
        )
    if status == 401 or reasons & _SCOPES_MISSING:
        return NeedsAttention(
            f"Google did not let Denizen {request.doing}.",
            code="google_sign_in",
            why=said,
            fix=f"{CONNECT} Tick everything that it asks for.",
        )
    if status == 403:
        return NotAllowed(f"Google did not let Denizen {request.doing}.", code="google_forbidden", why=said)
    if status in (404, 410):
        return NotFound("There is no such thing in the Google account.", code="google_not_found", why=said)
    if status == 409:
        return Conflict("It is there already.", code="google_conflict", why=said)
    if status < 500:
        return InvalidInput(f"Google did not let Denizen {request.doing}.", code="google_rejected", why=said)
    return _unreachable(request, f"HTTP {status}")


def _read_error(body: bytes) -> Row:
    try:
        found: Any = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return get_row(cast("Row", found), "error") if isinstance(found, dict) else {}


def _unreachable(request: GoogleRequest, why: str) -> Unavailable:
    return Unavailable(
        f"Google could not be reached to {request.doing}.",
        code="google_unavailable",
        why=why,
        fix="Check the network, and try again later.",
    )


def list_rows(row: Row, key: str) -> list[Row]:
    """Returns the objects of a list; none where there is no list."""
    found: Any = row.get(key)
    rows = cast("list[Any]", found) if isinstance(found, list) else []
    return [cast("Row", each) for each in rows if isinstance(each, dict)]


def get_text(row: Row, *path: str) -> str:
    """Returns the text at that path; empty for anything else."""
    found: Any = row
    for key in path:
        found = cast("Row", found).get(key) if isinstance(found, dict) else None
    return found if isinstance(found, str) else ""


def get_row(row: Row, key: str) -> Row:
    """Returns the object of that key; an empty one for anything else."""
    found: Any = row.get(key)
    return cast("Row", found) if isinstance(found, dict) else {}
