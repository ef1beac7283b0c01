"""`WebFetcher`: the deadline, the tries and the parts that a fetch is made of."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, cast

import anyio

from denizen.adapters.fetch.addresses import AllowList
from denizen.domain.errors import Unavailable
from denizen.ports.fetch import Downloaded, Fetched

if TYPE_CHECKING:
    import httpcore2

    from denizen.adapters.fetch.exchange import Answer
    from denizen.adapters.fetch.network import Resolve

RETRIED_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
"""The server was busy or broken. After other errors the same request would fail the same way (inventory TW16)."""


class WebFetcher:
    """Implements `ports.fetch.Fetcher` and `Downloader`. Holds nothing open between fetches.

    `allow_private` opens networks and `host:port` pairs that the operator named (`addresses.AllowList`). `resolve`
    and `network` stand in for the machine's own; `backoff_s` are the pauses before the second and third try.
    """

    def __init__(
        self,
        *,
        allow_private: Sequence[str] = (),
        resolve: Resolve | None = None,
        network: httpcore2.AsyncNetworkBackend | None = None,
        ssl_context: ssl.SSLContext | None = None,
        backoff_s: Sequence[float] = (0.5, 1.5),
    ) -> None:
        self._allowed = AllowList(allow_private)
        self._resolve = resolve
        self._network = network
        self._ssl_context = ssl_context
        self._backoff_s = tuple(backoff_s)

    async def fetch(self, url: str, *, timeout_s: float = 15.0, max_bytes: int = 2_000_000) -> Fetched:
        """See the port. Faults that may pass (network, 408, 429, 5xx) are tried again while there is time."""
        with anyio.move_on_after(timeout_s):
            return (await self._fetch(url, max_bytes)).fetched
        raise Unavailable(f"there was no answer within {timeout_s:g} s", code="timed_out")

    async def download(self, url: str, *, timeout_s: float = 60.0, max_bytes: int = 25_000_000) -> Downloaded:
        """See the port."""
        with anyio.move_on_after(timeout_s):
            answer = await self._fetch(url, max_bytes, raw=True)
            got = answer.fetched
            return Downloaded(got.url, got.status, got.media_type, answer.data, got.truncated)
        raise Unavailable(f"the file was not there within {timeout_s:g} s", code="timed_out")

    async def aclose(self) -> None:
        """Each fetch closes what it opened."""

    async def _fetch(self, url: str, max_bytes: int, *, raw: bool = False) -> Answer:
        import httpcore2

        from denizen.adapters.fetch.exchange import follow, parse_url
        from denizen.adapters.fetch.network import CheckedNetwork, resolve_with_system

        target = parse_url(url)
        plain = self._network or cast("httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend())
        network = CheckedNetwork(self._allowed, self._resolve or resolve_with_system, plain)
        tls = self._ssl_context or machine_tls()
        for pause_s in self._backoff_s:
            wait_s = pause_s
            try:
                answer = await follow(target, network, tls, max_bytes=max_bytes, raw=raw)
            except Unavailable as error:
                if error.code != "network_fault" or not _there_is_time(wait_s):
                    raise
            else:
                wait_s = max(pause_s, answer.retry_after_s)
                if answer.fetched.status not in RETRIED_STATUSES or not _there_is_time(wait_s):
                    return answer
            await anyio.sleep(wait_s)
        return await follow(target, network, tls, max_bytes=max_bytes, raw=raw)


@cache
def machine_tls() -> ssl.SSLContext:
    """Trusts the certificates of the machine, or those that SSL_CERT_FILE names. Reading them takes 30 ms: once."""
    import httpx2

    return httpx2.create_ssl_context()


def _there_is_time(pause_s: float) -> bool:
    return anyio.current_time() + pause_s < anyio.current_effective_deadline()
