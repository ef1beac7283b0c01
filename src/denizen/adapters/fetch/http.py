"""One GET over HTTP on connections that were checked: resolve, connect, follow redirects, read the body up to a limit.

`CheckedNetwork` is the only place where a fetch resolves and connects; httpcore2 calls it for every new connection. It
resolves a name once, checks every address, and connects to a checked address instead of the name. So a second answer of
the name server (DNS rebinding) is never asked for, and a redirect is checked like the first request. TLS still verifies
the name, which httpcore2 knows from the URL.

This module loads httpx2 and httpcore2, so `fetcher` imports it at the first fetch. There is no client object that could
add cookies, proxies or credentials: only a pool of connections, a request and a response.
"""

from __future__ import annotations

import codecs
import re
import socket
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from ipaddress import ip_address

import anyio
import httpcore2
import httpx2

from denizen import __version__
from denizen.adapters.fetch.addresses import Address, AllowList, find_port_refusal, find_refusal
from denizen.domain.errors import InvalidInput, NotAllowed, NotFound, Unavailable
from denizen.domain.record import record
from denizen.ports.fetch import NO_HEADERS, FetchedPage, FileValidators, WebRequest

_BYTE_ORDER_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]{1,40})", re.IGNORECASE)
_WITHOUT_TEXT = ("image/", "audio/", "video/", "font/")
_NOT_FOR_THE_WEB = frozenset({"idna", "punycode", "unicode-escape", "unicode_escape", "raw-unicode-escape", "utf-7"})
_SNIFFED_BYTES = 1024


def parse_media_type(content_type: str) -> str:
    """Returns `text/html` for `Text/HTML; charset=utf-8`; empty when there is none."""
    return content_type.partition(";")[0].strip().lower()


def has_text(media_type: str) -> bool:
    """Returns False for pictures, sound and the like, whose bytes are not worth reading."""
    return media_type.endswith("+xml") or not media_type.startswith(_WITHOUT_TEXT)


def decode_text(data: bytes, content_type: str) -> str:
    """Decodes by the header's charset, the byte-order mark, the page's declaration or UTF-8, else as Western European.

    Bytes that do not fit become U+FFFD. Data that is no text (NUL bytes without a 16-bit charset) gives an empty text.
    """
    named = _find_header_charset(content_type) or _find_byte_order_mark(data) or _find_declared_charset(data)
    # Text without a 16-bit charset holds no NUL; nearly every binary format does.
    if not named and b"\0" in data[:_SNIFFED_BYTES]:
        return ""
    if named:
        return data.decode(named, errors="replace")
    try:
        # Incremental: a body that was cut within a character still decodes as UTF-8.
        return codecs.getincrementaldecoder("utf-8")().decode(data)
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")


def _find_byte_order_mark(data: bytes) -> str:
    return next((name for mark, name in _BYTE_ORDER_MARKS if data.startswith(mark)), "")


def _find_header_charset(content_type: str) -> str:
    found = re.search(r"charset\s*=\s*[\"']?\s*([\w:.-]{1,40})", content_type, re.IGNORECASE)
    return _find_codec(found[1]) if found else ""


def _find_declared_charset(data: bytes) -> str:
    found = _META_CHARSET.search(data[:_SNIFFED_BYTES])
    return _find_codec(found[1].decode("ascii")) if found else ""


def _find_codec(charset: str) -> str:
    """Returns the codec's name; empty for a charset that Python lacks, or whose codec is not for text of the web."""
    try:
        name = codecs.lookup(charset).name
        b"a".decode(name, errors="replace")
    except (LookupError, UnicodeError):
        return ""
    return "" if name in _NOT_FOR_THE_WEB else name


ResolveHost = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a host and port, best first. Raises OSError when the name is unknown."""

_MAX_ADDRESSES = 4
_PATIENCE_S = 3.0
"""How long an address may take when there is another one to try."""


async def resolve_with_system(host: str, port: int) -> Sequence[str]:
    """Asks the machine's resolver, which also understands spellings of addresses such as `0x7f.1`."""
    rows = await anyio.getaddrinfo(host.encode("ascii"), port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(row[4][0] for row in rows))


class CheckedNetwork(httpcore2.AsyncNetworkBackend):
    """Connects to addresses that passed the checks. `network` connects, and is given only literal addresses."""

    def __init__(self, allowed: AllowList, resolve: ResolveHost, network: httpcore2.AsyncNetworkBackend) -> None:
        self._allowed = allowed
        self._resolve = resolve
        self._network = network

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Tries the checked addresses in order. Raises NotAllowed, InvalidInput, NotFound or Unavailable, which
        httpcore2 lets pass, and its own ConnectError.
        """
        # The last address gets all the time that is left: after it there is nothing more to try.
        *others, last = await self.check(host, port)
        for address in others:
            with suppress(httpcore2.ConnectError, httpcore2.ConnectTimeout):
                stream = await self._network.connect_tcp(str(address), port, _PATIENCE_S, local_address, socket_options)
                return await self._kept(stream, host, port, address)
        stream = await self._network.connect_tcp(str(last), port, timeout, local_address, socket_options)
        return await self._kept(stream, host, port, last)

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)

    async def check(self, host: str, port: int) -> list[Address]:
        """Returns the addresses of the host, each allowed at that port; never empty."""
        if not self._allowed.names(host, port):
            reason = find_port_refusal(port)
            if reason is not None:
                raise NotAllowed(f"{host}:{port} may not be fetched: {reason}", code="port_refused")
        addresses = await self._lookup(host, port)
        for address in addresses:
            reason = find_refusal(address)
            if reason is not None and not self._allowed.admits(host, port, address):
                raise NotAllowed(
                    f"{host} may not be fetched: its address is {reason}",
                    code="address_refused",
                    fix="only addresses of the public internet can be fetched",
                    host=host,
                    address=str(address),
                )
        return addresses[:_MAX_ADDRESSES]

    async def _lookup(self, host: str, port: int) -> list[Address]:
        with suppress(ValueError):
            return [ip_address(host)]
        try:
            addresses = [ip_address(text) for text in await self._resolve(host, port)]
        except OSError as error:
            is_nobodys = isinstance(error, socket.gaierror) and error.errno == socket.EAI_NONAME
            family = NotFound if is_nobodys else Unavailable
            raise family(f"the name {host} could not be resolved", code="unknown_host", why=str(error)) from error
        except ValueError as error:
            raise InvalidInput(f"{host} is not a valid host name", code="bad_url") from error
        if not addresses:
            raise Unavailable(f"the name {host} has no address", code="unknown_host")
        return addresses

    def leads_back(self, own: tuple[str, int] | None, host: str, port: int, address: Address) -> bool:
        """Returns whether a connection from `own` leads back to this machine, where nobody has allowed that."""
        return is_own_address(own, address, port) and not self._allowed.admits(host, port, address)

    async def _kept(
        self, stream: httpcore2.AsyncNetworkStream, host: str, port: int, address: Address
    ) -> httpcore2.AsyncNetworkStream:
        """Returns the stream, unless it turns out to lead back to this machine. Nothing was sent over it yet."""
        if self.leads_back(stream.get_extra_info("client_addr"), host, port, address):
            await stream.aclose()
            raise NotAllowed(f"{host}:{port} may not be fetched: it is this machine", code="address_refused")
        return stream


def is_own_address(own: tuple[str, int] | None, address: Address, port: int) -> bool:
    """Returns whether a connection from `own` to `address` stays on this machine, other than at the ports of websites.

    A machine with a public address could otherwise be asked for services that a firewall hides from others.
    """
    return own is not None and port not in {80, 443} and ip_address(own[0]) == address


MAX_REDIRECTS = 5
MAX_URL_CHARS = 4000

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_CODINGS = frozenset({"identity", "gzip", "deflate"})
_HEADERS = {
    "user-agent": f"Denizen/{__version__}",
    "accept": "text/html, application/json, text/*;q=0.9, */*;q=0.1",
    "accept-encoding": "gzip, deflate",
}


@record
class FetchResponse:
    """A fetched page. `retry_after_s` is the server's Retry-After header, if it was given in seconds; `data` is the
    body where bytes were asked for, `validators` those of the file.
    """

    fetched: FetchedPage
    retry_after_s: float = 0.0
    data: bytes = b""
    validators: FileValidators = FileValidators()


def parse_url(text: str, *, base: httpx2.URL | None = None) -> httpx2.URL:
    """Returns a URL that may be tried, without its fragment. `base` completes the relative URLs of redirects.

    Raises InvalidInput for anything but http and https with a host, and for credentials in the URL.
    """
    if len(text) > MAX_URL_CHARS:
        raise _bad_url("the URL is too long")
    try:
        url = httpx2.URL(text.strip()) if base is None else base.join(text)
    except (httpx2.InvalidURL, ValueError) as error:
        raise _bad_url("that is not a URL") from error
    if url.scheme not in {"http", "https"}:
        raise _bad_url("only http and https can be fetched")
    # A % begins a zone id, which would choose a network interface of this machine.
    if not url.raw_host or b"%" in url.raw_host or not 0 < get_port(url) <= 65_535:
        raise _bad_url("the URL names no host that can be reached")
    if url.userinfo:
        raise _bad_url("a URL with a user name or password cannot be fetched")
    return url.copy_with(fragment=None)


def get_port(url: httpx2.URL) -> int:
    """Returns the port of the URL, or the default port of its scheme."""
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
    """Fetches the URL and returns the first response that is no redirect.

    Each hop is checked like the first, by `parse_url` and by `network`. With `raw`, bytes of every kind are read, and
    not only text. `headers` go to the first server only, not to another scheme, host or port that it leads to.

    Raises Unavailable (`network_fault`, `tls_failed`, `too_many_redirects`, `bad_answer`), and what `network` raises.
    """
    first = _get_origin(url)
    async with httpcore2.AsyncConnectionPool(ssl_context, network_backend=network) as pool:
        for hop in range(MAX_REDIRECTS + 1):
            try:
                async with _open_response(pool, url, max_bytes, headers) as response:
                    location = response.headers.get("location")
                    if response.status_code not in _REDIRECTS or not location:
                        return await _read(url, response, max_bytes, raw=raw)
            except (InvalidInput, NotAllowed) as refused:
                if not hop:
                    raise
                raise _hide_target(refused) from refused
            url = parse_url(location, base=url)
            headers = headers if _get_origin(url) == first else NO_HEADERS  # for good, also when it leads back
    raise Unavailable(f"{url.host} redirects more than {MAX_REDIRECTS} times", code="too_many_redirects")


async def send_once(
    request: WebRequest, network: httpcore2.AsyncNetworkBackend, ssl_context: ssl.SSLContext, *, max_bytes: int
) -> FetchedPage:
    """Sends the request and returns the answer, a redirect too. Raises as `follow_redirects` does."""
    url, body = parse_url(request.url), request.body.encode()
    async with (
        httpcore2.AsyncConnectionPool(ssl_context, network_backend=network) as pool,
        _open_response(pool, url, max_bytes, request.headers, method=request.method, body=body) as response,
    ):
        return (await _read(url, response, max_bytes, raw=False)).fetched


class _Body(httpx2.AsyncByteStream):
    """The bytes as they come over the wire, cut at a limit: a huge body could unpack to nothing."""

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
    pool: httpcore2.AsyncConnectionPool,
    url: httpx2.URL,
    max_bytes: int,
    headers: Mapping[str, str],
    *,
    method: str = "GET",
    body: bytes = b"",
) -> AsyncGenerator[httpx2.Response]:
    """Sends one request and gives the response, its body not read yet. Faults of the network become Unavailable, also
    while the caller reads.
    """
    request = httpx2.Request(method, url, headers={**_HEADERS, **headers}, content=body or None)
    target = httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
    try:
        async with pool.stream(method, target, headers=request.headers.raw, content=body or None) as answer:
            yield httpx2.Response(answer.status, headers=answer.headers, stream=_Body(answer, max_bytes))
    except (httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.ProtocolError) as error:
        if _is_tls_fault(error):
            raise Unavailable(f"{url.host} has no valid certificate", code="tls_failed", why=str(error)) from error
        raise Unavailable(f"{url.host} could not be reached", code="network_fault", why=str(error)) from error
    except httpx2.DecodingError as error:
        raise _bad_answer(url, str(error)) from error


async def _read(url: httpx2.URL, response: httpx2.Response, max_bytes: int, *, raw: bool) -> FetchResponse:
    """Unpacks piece by piece and stops at the limit, so that a small response cannot become a large one."""
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
    validators = FileValidators(
        etag=response.headers.get("etag", ""), last_modified=response.headers.get("last-modified", "")
    )
    return FetchResponse(fetched, retry_after_s=wait_s, data=bytes(data) if raw else b"", validators=validators)


def _is_tls_fault(error: BaseException) -> bool:
    """Returns whether TLS failed underneath: the layers between wrap each other's errors."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    return cause is not None


def _hide_target(refused: InvalidInput | NotAllowed) -> InvalidInput | NotAllowed:
    """Returns the refusal without the host, which the server chose that redirects to it."""
    return type(refused)("it redirects to an address that may not be fetched", code=refused.code, fix=refused.fix)


def _bad_url(message: str) -> InvalidInput:
    return InvalidInput(message, code="bad_url", fix="give a full URL such as https://example.org/page")


def _bad_answer(url: httpx2.URL, why: str) -> Unavailable:
    return Unavailable(f"the response of {url.host} cannot be read", code="bad_answer", why=why)
