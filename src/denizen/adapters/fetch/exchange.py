"""One GET over HTTP: checking the URL, following redirects, reading the body up to a limit.

Loads httpx2 and httpcore2, so `fetcher` loads this module at the first fetch. There is no client object that could
bring cookies, proxies or credentials: a pool of connections, a request, an answer.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

import httpcore2
import httpx2

from denizen import __version__
from denizen.adapters.fetch.text import decode_text, has_text, parse_media_type
from denizen.domain.errors import InvalidInput, Unavailable
from denizen.ports.fetch import NO_HEADERS, FetchedPage

MAX_REDIRECTS = 5
MAX_URL_CHARS = 4000

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_CODINGS = frozenset({"identity", "gzip", "deflate"})
_HEADERS = {
    "user-agent": f"Denizen/{__version__}",
    "accept": "text/html, application/json, text/*;q=0.9, */*;q=0.1",
    "accept-encoding": "gzip, deflate",
}


@dataclass(frozen=True, slots=True)
class FetchResponse:
    """`retry_after_s` is what the server asked for, if it did so in seconds."""

    fetched: FetchedPage
    retry_after_s: float = 0.0
    data: bytes = b""


def parse_url(text: str, *, base: httpx2.URL | None = None) -> httpx2.URL:
    """A URL that may be tried, without its fragment. `base` completes the relative ones of redirects.

    Raises InvalidInput for anything but http and https with a host, and for credentials in the URL.
    """
    if len(text) > MAX_URL_CHARS:
        raise _bad_url("the URL is too long")
    try:
        url = httpx2.URL(text.strip()) if base is None else base.join(text)
    except (httpx2.InvalidURL, ValueError) as error:
        raise _bad_url("that is no URL") from error
    if url.scheme not in {"http", "https"}:
        raise _bad_url("only http and https can be fetched")
    if not url.raw_host or b"%" in url.raw_host or not 0 < get_port(url) <= 65_535:
        raise _bad_url("the URL names no host that can be reached")
    if url.userinfo:
        raise _bad_url("a URL with a user name or password is not fetched")
    return url.copy_with(fragment=None)


def get_port(url: httpx2.URL) -> int:
    if url.port is not None:
        return url.port
    return 443 if url.scheme == "https" else 80


def _get_origin(url: httpx2.URL) -> tuple[str, str, int]:
    return url.scheme, url.host, get_port(url)


async def follow_redirects(
    url: httpx2.URL,
    network: httpcore2.AsyncNetworkBackend,
    ssl_context: ssl.SSLContext,
    *,
    max_bytes: int,
    raw: bool = False,
    headers: Mapping[str, str] = NO_HEADERS,
) -> FetchResponse:
    """The first answer that is no redirect. Each hop is checked like the first, by `parse_url` and by `network`. With
    `raw` bytes of every kind are read, and not only text. `headers` go to the first server only, not to another scheme,
    host or port that it leads to.

    Raises Unavailable (`network_fault`, `tls_failed`, `too_many_redirects`, `bad_answer`), and what `network` raises.
    """
    first = _get_origin(url)
    async with httpcore2.AsyncConnectionPool(ssl_context, network_backend=network) as pool:
        for _ in range(MAX_REDIRECTS + 1):
            async with _open_response(pool, url, max_bytes, headers) as response:
                location = response.headers.get("location")
                if response.status_code not in _REDIRECTS or not location:
                    return await _read(url, response, max_bytes, raw=raw)
            url = parse_url(location, base=url)
            headers = headers if _get_origin(url) == first else NO_HEADERS  # for good, also when it leads back
    raise Unavailable(f"{url.host} redirects more than {MAX_REDIRECTS} times", code="too_many_redirects")


class _Body(httpx2.AsyncByteStream):
    """The bytes as they come over the wire, cut at a limit: they could be many and unpack to nothing."""

    def __init__(self, answer: httpcore2.Response, max_bytes: int) -> None:
        self._answer = answer
        self._left = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._answer.aiter_stream():
            yield chunk
            self._left -= len(chunk)
            if self._left < 0:
                return


@asynccontextmanager
async def _open_response(
    pool: httpcore2.AsyncConnectionPool, url: httpx2.URL, max_bytes: int, headers: Mapping[str, str]
) -> AsyncGenerator[httpx2.Response]:
    """The answer to one GET, its body not read yet. Faults of the network become Unavailable, also while reading."""
    request = httpx2.Request("GET", url, headers={**_HEADERS, **headers})
    target = httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
    try:
        async with pool.stream("GET", target, headers=request.headers.raw) as answer:
            yield httpx2.Response(answer.status, headers=answer.headers, stream=_Body(answer, max_bytes))
    except (httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.ProtocolError) as error:
        if _is_tls_fault(error):
            raise Unavailable(f"{url.host} has no valid certificate", code="tls_failed", why=str(error)) from error
        raise Unavailable(f"{url.host} could not be reached", code="network_fault", why=str(error)) from error
    except httpx2.DecodingError as error:
        raise _bad_answer(url, str(error)) from error


async def _read(url: httpx2.URL, response: httpx2.Response, max_bytes: int, *, raw: bool) -> FetchResponse:
    """Unpacks piece by piece and stops at the limit, so that a small answer cannot become a large one."""
    content_type = response.headers.get("content-type", "")
    media_type = parse_media_type(content_type)
    # One coding: a packed packing grows a thousandfold once more, and unpacking it is work that no deadline ends.
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    if coding not in _CODINGS:
        raise _bad_answer(url, f"it is packed as {coding[:40]}")
    data, truncated = bytearray(), False
    if raw or has_text(media_type):
        async with aclosing(response.aiter_bytes()) as chunks:
            async for chunk in chunks:
                room = max_bytes - len(data)
                data += chunk[:room]
                if len(chunk) > room:
                    truncated = True
                    break
    truncated = truncated or response.num_bytes_downloaded > max_bytes
    wait = response.headers.get("retry-after", "")
    fetched = FetchedPage(
        url=str(url),
        status=response.status_code,
        media_type=media_type,
        text="" if raw else decode_text(bytes(data), content_type),
        size_bytes=len(data),
        truncated=truncated,
    )
    wait_s = float(wait) if wait.isdecimal() and len(wait) < 6 else 0.0
    return FetchResponse(fetched, retry_after_s=wait_s, data=bytes(data) if raw else b"")


def _is_tls_fault(error: BaseException) -> bool:
    """Whether TLS failed at the bottom of it: the layers between wrap each other's errors."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    return cause is not None


def _bad_url(message: str) -> InvalidInput:
    return InvalidInput(message, code="bad_url", fix="give a full URL such as https://example.org/page")


def _bad_answer(url: httpx2.URL, why: str) -> Unavailable:
    return Unavailable(f"the answer of {url.host} cannot be read", code="bad_answer", why=why)
