"""The HTTP client for GitHub: deadlines, rate limits, retries and redirects, errors, and fields of GitHub's JSON.

The `get_` functions never raise: fields of a payload from outside may be missing or of another type.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urljoin, urlsplit

import anyio

from denizen import __version__
from denizen.domain.clock import Clock
from denizen.domain.errors import DenizenError, InvalidInput, NeedsAttention, NotAllowed, NotFound, Unavailable
from denizen.domain.record import record
from denizen.domain.words import truncate

Payload = Mapping[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NOTHING: Payload = {}


def get_object(payload: Payload, key: str) -> Payload:
    """Returns an object; an empty one if there is none."""
    value = payload.get(key)
    return cast("Payload", value) if isinstance(value, dict) else _NOTHING


def get_text(payload: Payload, key: str) -> str:
    """Returns a text with plain line ends. Browser forms send others."""
    value = payload.get(key)
    return value.replace("\r\n", "\n") if isinstance(value, str) else ""


def get_number(payload: Payload, key: str) -> int:
    """Returns a whole number; 0 if there is none."""
    value = payload.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def get_flag(payload: Payload, key: str) -> bool:
    """Returns a boolean; False if there is none."""
    return payload.get(key) is True


def get_time(payload: Payload, key: str) -> datetime:
    """Returns a time; the epoch if there is none."""
    try:
        return datetime.fromisoformat(get_text(payload, key)).astimezone(UTC)
    except ValueError:
        return _EPOCH


def format_time(time: datetime) -> str:
    """Formats a time for a parameter, in UTC and whole seconds."""
    return f"{time.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


SECONDARY_PAUSE_S = 60.0
"""GitHub asks for a pause of a minute when it does not say how long a secondary limit lasts."""
# Bounds the pause, whatever the headers say.
MAX_PAUSE_S = 3600.0
_SHOWN_CHARS = 300


def translate_error(
    status: int, headers: Mapping[str, str], body: object, doing: str, *, now: datetime
) -> DenizenError:
    """Returns our error. `headers` are in lower case; `doing` completes "GitHub would not let the account ..."."""
    said = describe_errors(body) or f"HTTP {status}"
    pause_s = parse_pause(status, headers, said, now=now)
    if pause_s is not None:
        return make_rate_limited(
            doing, said, pause_s, "Wait; where it lasts, use a GitHub App, whose limits are wider."
        )
    if status >= 500:
        return Unavailable(
            f"GitHub is not able to {doing} at the moment.",
            code="github_server_error",
            why=f"HTTP {status}",
            fix="Try again later; see https://www.githubstatus.com.",
        )
    if status == 401:
        return NeedsAttention(
            "GitHub refused the credentials.",
            code="github_credentials_refused",
            why=said,
            fix="Check the App's id and private key, or the token, and whether it has expired.",
        )
    if status == 403:
        return NotAllowed(
            f"The account may not {doing}.",
            code="github_forbidden",
            why=said,
            fix="Give the App or token read and write access to issues, pull requests and discussions there, and "
            "accept the new permissions for the installation.",
        )
    if status in (404, 410):
        return NotFound(
            f"What the account wanted to {doing} is not on GitHub, or it may not see it.", code="github_gone", why=said
        )
    return InvalidInput(f"GitHub would not let the account {doing}.", code="github_rejected", why=said)


def parse_pause(status: int, headers: Mapping[str, str], said: str, *, now: datetime) -> float | None:
    """Returns for how many seconds to pause; None when the response is not about limits."""
    if status not in (403, 429):
        return None
    after = headers.get("retry-after", "")
    if after.isdecimal():
        return min(float(after), MAX_PAUSE_S)
    reset = headers.get("x-ratelimit-reset", "")
    if headers.get("x-ratelimit-remaining") == "0" and reset.isdecimal():
        return min(max(float(reset) - now.timestamp(), 1.0), MAX_PAUSE_S)
    if status == 429 or "rate limit" in said.lower():
        return SECONDARY_PAUSE_S
    return None


def make_rate_limited(doing: str, why: str, retry_after_s: float, fix: str = "") -> Unavailable:
    text = f"GitHub does not let the account {doing} so often."
    return Unavailable(text, code="github_rate_limited", why=why, fix=fix, retry_after_s=retry_after_s)


def make_unreachable(doing: str, why: str) -> Unavailable:
    return Unavailable(
        f"GitHub could not be reached to {doing}.",
        code="github_unreachable",
        why=why,
        fix="Check the network, and https://www.githubstatus.com.",
    )


def describe_errors(body: object) -> str:
    """Returns GitHub's own sentence, with its notes on single fields."""
    if not isinstance(body, dict):
        return ""
    told = cast("dict[str, Any]", body)
    errors: Any = told.get("errors")
    parts = [str(told.get("message", ""))]
    if isinstance(errors, list):
        parts += [
            str(cast("dict[str, Any]", e).get("message", "")) if isinstance(e, dict) else str(e)
            for e in cast("list[Any]", errors)
        ]
    return truncate(" ".join(" ".join(part for part in parts if part).split()), _SHOWN_CHARS)


if TYPE_CHECKING:
    import httpx2

DEADLINE_S = 30.0
"""The deadline of one request with its retries."""
RESPONSE_TIMEOUT_S = 10.0
TRIES = 3
RETRY_S = 0.5
MAX_REDIRECTS = 3
PAGE = 100

# Only reads are repeated after a lost answer: a write may have been applied.
_READING = frozenset({"GET"})
# A renamed repository redirects. 303 is missing, since it would turn a write into a read.
_REDIRECTS = frozenset({301, 302, 307, 308})
_REPOSITORY = re.compile(r"/repos/[^/]+/[^/]+")
_NOT_MODIFIED = 304
_LAST = re.compile(r'<(?P<url>[^>]+)>;\s*rel="last"')
_NEXT = re.compile(r'<(?P<url>[^>]+)>;\s*rel="next"')
_HEADERS = {
    "accept": "application/vnd.github+json",
    "user-agent": f"Denizen/{__version__}",
    "x-github-api-version": "2022-11-28",
}

_log = logging.getLogger("denizen.github")


@record
class GitHubRequest:
    """One request. `doing` completes "GitHub would not let the account ..."; `path` may be a full URL of GitHub's. With
    the `version` of an earlier response, one that has not changed since is a 304, which costs nothing.
    """

    method: str
    path: str
    doing: str
    json: Mapping[str, Any] | None = None
    params: Mapping[str, str] | None = None
    version: str = ""


@record
class GitHubResponse:
    """One response. `body` is the JSON, or None; `next_url` and `last_url` are those of further pages; `version` is its
    ETag.
    """

    status: int
    body: Any
    next_url: str = ""
    last_url: str = ""
    version: str = ""


class GitHubClient:
    """The HTTP client of one account. `aclose` closes its connections."""

    def __init__(self, api_url: str, clock: Clock) -> None:
        self.api_url = api_url.rstrip("/")
        self._clock = clock
        self._http: httpx2.AsyncClient | None = None
        self._blocked_until_s = -math.inf

    async def send(self, call: GitHubRequest, authorization: str) -> GitHubResponse:
        """Sends a request. `authorization` is the header's value, empty for none. Raises the errors of this module."""
        try:
            with anyio.fail_after(DEADLINE_S):
                return await self._send(call, authorization)
        except TimeoutError:
            raise make_unreachable(call.doing, "There was no answer in time.") from None

    async def aclose(self) -> None:
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    async def _send(self, call: GitHubRequest, authorization: str) -> GitHubResponse:
        for left in reversed(range(TRIES)):
            self._check_limit(call.doing)
            try:
                return await self._try(call, authorization)
            except Unavailable as error:
                self._note_limit(error)
                if not left or error.code == "github_rate_limited" or call.method not in _READING:
                    raise
                _log.info("asking GitHub again", extra={"doing": call.doing, **error.fields})
                await anyio.sleep(RETRY_S * (TRIES - left))
        raise AssertionError("the last try returns or raises")

    def _check_limit(self, doing: str) -> None:
        left_s = self._blocked_until_s - self._clock.monotonic_s()
        if left_s > 0:
            raise make_rate_limited(doing, "A limit that it set has not ended.", left_s, "Wait.")

    def _note_limit(self, error: Unavailable) -> None:
        if error.code == "github_rate_limited" and error.retry_after_s:
            self._blocked_until_s = max(self._blocked_until_s, self._clock.monotonic_s() + error.retry_after_s)

    async def _try(self, call: GitHubRequest, authorization: str) -> GitHubResponse:
        import httpx2

        if self._http is None:
            self._http = httpx2.AsyncClient(timeout=RESPONSE_TIMEOUT_S)
        headers = {**_HEADERS, **({"authorization": authorization} if authorization else {})}
        headers |= {"if-none-match": call.version} if call.version else {}
        url = call.path if call.path.startswith(("http://", "https://")) else f"{self.api_url}{call.path}"
        params = dict(call.params or {})
        for _ in range(MAX_REDIRECTS + 1):
            try:
                response = await self._http.request(
                    call.method, url, json=call.json, params=params or None, headers=headers
                )
            except httpx2.HTTPError as error:
                raise make_unreachable(call.doing, type(error).__name__) from None
            location = response.headers.get("location")
            if response.status_code not in _REDIRECTS or not location:
                return self._read(response, call)
            url, params = self._checked(urljoin(url, location), call), {}
            if call.method not in _READING:
                await self._check_target(url, call, authorization)
        raise make_unreachable(call.doing, "It redirects too often.")

    def _checked(self, url: str, call: GitHubRequest) -> str:
        there, own = urlsplit(url), urlsplit(self.api_url)
        if (there.scheme, there.netloc) != (own.scheme, own.netloc):
            raise make_unreachable(call.doing, "It redirects to another server.")
        return url

    async def _check_target(self, url: str, call: GitHubRequest, authorization: str) -> None:
        """A repository that was renamed is still the one that is meant; an issue that was transferred is in another,
        where the account may not be meant to write. Raises NotFound.
        """
        named = _REPOSITORY.match(call.path)
        if named is not None:
            meant = await self._try(GitHubRequest("GET", named[0], call.doing), authorization)
            if f"{url}/".startswith(f"{self.api_url}/repositories/{get_number(meant.body, 'id')}/"):
                return
        raise NotFound(
            "This has moved to another repository on GitHub.",
            code="github_moved",
            why=f"GitHub redirects the account, which would {call.doing}, to where nobody asked it to write.",
            fix="Go on in the other repository.",
        )

    def _read(self, response: httpx2.Response, call: GitHubRequest) -> GitHubResponse:
        try:
            body = response.json() if response.content else None
        except ValueError:
            body = None
        if not response.is_success and not (response.status_code == _NOT_MODIFIED and call.version):
            raise translate_error(response.status_code, response.headers, body, call.doing, now=self._clock.now())
        links = response.headers.get("link", "")
        next_url, last_url = (self._link(pattern, links, call) for pattern in (_NEXT, _LAST))
        version = response.headers.get("etag", "")
        return GitHubResponse(response.status_code, body, next_url, last_url, version)

    def _link(self, pattern: re.Pattern[str], links: str, call: GitHubRequest) -> str:
        found = pattern.search(links)
        return self._checked(found["url"], call) if found else ""


def list_items(body: object, key: str = "") -> list[dict[str, Any]]:
    """Returns the objects of a list, or of the list in that field."""
    rows: Any = cast("dict[str, Any]", body).get(key) if key and isinstance(body, dict) else body
    if not isinstance(rows, list):
        return []
    return [cast("dict[str, Any]", row) for row in cast("list[Any]", rows) if isinstance(row, dict)]
