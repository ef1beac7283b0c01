"""`WebFetcher`: fetches pages and files with a deadline and retries."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping, Sequence
from functools import cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, cast

import anyio

from denizen.adapters.fetch.addresses import AllowList
from denizen.domain.errors import InvalidInput, NotAllowed, Unavailable
from denizen.ports.fetch import NO_HEADERS, DownloadedFile, FetchedPage, FileValidators, FileVersion, WebRequest

if TYPE_CHECKING:
    import httpcore2

    from denizen.adapters.fetch.http import CheckedNetwork, FetchResponse, ResolveHost

_HEADER_NAME = re.compile(r"(?!(?i:host|content-length|transfer-encoding|connection)$)[A-Za-z0-9-]{1,100}")
_HEADER_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,4000}[\x21-\x7e])?")

RETRIED_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses of a server that is busy or broken. After any other error the same request would fail the same way."""


class WebFetcher:
    """Implements `ports.fetch.Fetcher` and `Downloader`. Holds nothing open between fetches.

    `allow_private` opens networks and `host:port` pairs that the operator named (`addresses.AllowList`). `trusted` are
    the `host:port` pairs of servers that headers may be sent to. `resolve` and `network` replace the machine's own in
    tests; `backoff_s` are the pauses before the second and the third try.
    """

    def __init__(
        self,
        *,
        allow_private: Sequence[str] = (),
        trusted: Sequence[str] = (),
        resolve: ResolveHost | None = None,
        network: httpcore2.AsyncNetworkBackend | None = None,
        ssl_context: ssl.SSLContext | None = None,
        backoff_s: Sequence[float] = (0.5, 1.5),
    ) -> None:
        self._allowed = AllowList(allow_private)
        self._trusted = AllowList(trusted)
        self._resolve = resolve
        self._network = network
        self._ssl_context = ssl_context
        self._backoff_s = tuple(backoff_s)

    async def fetch(
        self, url: str, *, timeout_s: float = 15.0, max_bytes: int = 2_000_000, headers: Mapping[str, str] = NO_HEADERS
    ) -> FetchedPage:
        """Implements the port. Faults that may pass (network, 408, 429, 5xx) are retried while there is time."""
        if headers:
            self._check_headers(headers, url)
        with anyio.move_on_after(timeout_s):
            return (await self._fetch(url, max_bytes, headers=headers)).fetched
        raise Unavailable(f"there was no answer within {timeout_s:g} s", code="timed_out")

    async def download(self, url: str, *, timeout_s: float = 60.0, max_bytes: int = 25_000_000) -> DownloadedFile:
        """Implements the port; retries as `fetch` does."""
        with anyio.move_on_after(timeout_s):
            answer = await self._fetch(url, max_bytes, raw=True)
            got = answer.fetched
            return DownloadedFile(got.url, got.status, got.media_type, answer.data, got.truncated)
        raise Unavailable(f"the file was not there within {timeout_s:g} s", code="timed_out")

    async def fetch_version(
        self,
        url: str,
        known: FileValidators,
        *,
        accept: str = "",
        timeout_s: float = 60.0,
        max_bytes: int = 25_000_000,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> FileVersion:
        """Implements the port; retries as `fetch` does. What cannot stand in a header is not asked for."""
        _check_form(headers)
        asked = {"accept": accept, "if-none-match": known.etag, "if-modified-since": known.last_modified}
        sent = {name: text for name, text in asked.items() if _HEADER_VALUE.fullmatch(text)} | dict(headers)
        with anyio.move_on_after(timeout_s):
            answer = await self._fetch(url, max_bytes, raw=True, headers=sent)
            got = answer.fetched
            file = DownloadedFile(got.url, got.status, got.media_type, answer.data, got.truncated)
            return FileVersion(file, answer.validators)
        raise Unavailable(f"the file was not there within {timeout_s:g} s", code="timed_out")

    async def send(self, request: WebRequest, *, timeout_s: float = 30.0, max_bytes: int = 500_000) -> FetchedPage:
        """Implements `ports.fetch.RequestSender`. Nothing is tried again: the server may have done it."""
        import httpcore2

        from denizen.adapters.fetch.http import CheckedNetwork, resolve_with_system, send_once

        _check_form(request.headers)
        plain = self._network or cast("httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend())
        network = CheckedNetwork(self._allowed, self._resolve or resolve_with_system, plain)
        with anyio.move_on_after(timeout_s):
            return await send_once(request, network, self._ssl_context or system_tls_context(), max_bytes=max_bytes)
        raise Unavailable(f"there was no answer within {timeout_s:g} s", code="timed_out")

    async def check(self, host: str, port: int) -> tuple[str, ...]:
        """Returns the addresses of the host, for a program that connects itself. Raises what `fetch` would raise about
        them.
        """
        return tuple(map(str, await self._make_network().check(host, port)))

    def leads_back(self, own: tuple[str, int] | None, host: str, port: int, address: str) -> bool:
        """Returns whether the connection of such a program, from `own`, leads back to this machine: `fetch` would
        refuse it then, before anything is sent.
        """
        return self._make_network().leads_back(own, host, port, ip_address(address))

    def _make_network(self) -> CheckedNetwork:
        import httpcore2

        from denizen.adapters.fetch.http import CheckedNetwork, resolve_with_system

        plain = self._network or cast("httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend())
        return CheckedNetwork(self._allowed, self._resolve or resolve_with_system, plain)

    async def aclose(self) -> None:
        """Does nothing: each fetch closes what it opened."""

    def _check_headers(self, headers: Mapping[str, str], url: str) -> None:
        """Raises NotAllowed or InvalidInput. The error does not repeat the headers: they may be secret."""
        from denizen.adapters.fetch.http import get_port, parse_url

        target = parse_url(url)
        host, port = target.host, get_port(target)
        if not self._trusted.names(host, port):
            raise NotAllowed(
                f"headers may not be sent to {host}:{port}",
                code="headers_refused",
                fix="headers go only to a server whose address is in the settings of the skill",
            )
        _check_form(headers)

    async def _fetch(
        self, url: str, max_bytes: int, *, raw: bool = False, headers: Mapping[str, str] = NO_HEADERS
    ) -> FetchResponse:
        import httpcore2

        from denizen.adapters.fetch.http import CheckedNetwork, follow_redirects, parse_url, resolve_with_system

        target = parse_url(url)
        plain = self._network or cast("httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend())
        network = CheckedNetwork(self._allowed, self._resolve or resolve_with_system, plain)
        # Only here, so that a process that fetches nothing reads no certificates.
        tls = self._ssl_context or system_tls_context()
        for pause_s in self._backoff_s:
            wait_s = pause_s
            try:
                answer = await follow_redirects(target, network, tls, max_bytes=max_bytes, raw=raw, headers=headers)
            except Unavailable as error:
                # Other faults, such as a wrong certificate, are the same at the next try.
                if error.code != "network_fault" or not _there_is_time(wait_s):
                    raise
            else:
                wait_s = max(pause_s, answer.retry_after_s)
                if answer.fetched.status not in RETRIED_STATUSES or not _there_is_time(wait_s):
                    return answer
            await anyio.sleep(wait_s)
        return await follow_redirects(target, network, tls, max_bytes=max_bytes, raw=raw, headers=headers)


def _check_form(headers: Mapping[str, str]) -> None:
    """Raises InvalidInput for what would not be one header."""
    if not all(_HEADER_NAME.fullmatch(name) and _HEADER_VALUE.fullmatch(text) for name, text in headers.items()):
        raise InvalidInput(
            "a header has a plain name and one line of plain characters",
            code="bad_header",
            fix="look for a line break or a space at the end of a key",
        )


@cache
def system_tls_context() -> ssl.SSLContext:
    """Returns a context that trusts the certificates of the machine, or those that SSL_CERT_FILE names. Cached,
    since reading them takes 30 ms.
    """
    import httpx2

    return httpx2.create_ssl_context()


def _there_is_time(pause_s: float) -> bool:
    return anyio.current_time() + pause_s < anyio.current_effective_deadline()
