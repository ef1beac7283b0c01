"""One configured provider: its HTTP connections, opened at first use, and the clients of its models that go over them.

`catalog` builds connections, `model` uses them. Nothing is imported or opened before the first request.
"""

from __future__ import annotations

import functools
import ssl
from typing import TYPE_CHECKING
from urllib.request import getproxies

import anyio
from anyio import to_thread

from denizen.adapters.models.client import NO_KEY, ModelClient, ModelTarget, ProviderAccess
from denizen.adapters.models.providers import EndpointSource, ProviderSpec
from denizen.adapters.models.vendors import build_client, load_vendor
from denizen.domain.errors import DenizenError, NeedsAttention, Unavailable
from denizen.ports.model import Capabilities

if TYPE_CHECKING:
    import httpx2

_CONNECTIONS = 256
_KEPT_CLIENTS = 64
_POOL_WAIT_S = 30.0


class ProviderConnection:
    """A connection to a provider. `source` gives the address of one that is started here (kind `embedded`)."""

    def __init__(self, spec: ProviderSpec, source: EndpointSource | None = None) -> None:
        self.spec = spec
        self._source = source
        self._source_ready = False
        self._http: httpx2.AsyncClient | None = None
        self._clients: dict[str, tuple[ProviderAccess, ModelClient]] = {}
        self._lock = anyio.Lock()
        self.closed = False
        self.unpriced: set[str] = set()
        """Models without a known price that the log was told of."""

    @property
    def may_have_to_start(self) -> bool:
        """Whether the server may not run yet, so that `access` can take minutes."""
        return self._source is not None and not self._source_ready

    async def access(self, model: str) -> ProviderAccess:
        """Returns address and key as of now. Raises NeedsAttention without a key, and what the source raises."""
        if self._source is not None:
            endpoint = await self._source.endpoint()
            self._source_ready = True
            return ProviderAccess(endpoint.base_url, endpoint.api_key, endpoint.model)
        if self.spec.api_key is None and self.spec.facts.needs_key and not self.spec.base_url:
            raise NeedsAttention(
                f"The provider '{self.spec.name}' has no key.",
                code="model_key_missing",
                fix=f"Set {self.spec.key_name or 'its api_key'}, or run `denizen setup`.",
            )
        key = self.spec.api_key() if self.spec.api_key is not None else ""
        return ProviderAccess(self.spec.address, key or NO_KEY, model)

    def note_unreachable(self) -> None:
        """Notes that the server did not answer: it may have to be started again."""
        self._source_ready = False

    async def client(self, name: str, access: ProviderAccess, capabilities: Capabilities) -> ModelClient:
        """Returns the client of a model, kept until address or key change, so that connections stay warm."""
        kept = self._clients.get(name)
        if kept is not None and kept[0] == access:  # as nearly always: without the lock's detour over the event loop
            return kept[1]
        async with self._lock:
            if self.closed:
                raise closed_error()
            kept = self._clients.get(name)
            if kept is not None and kept[0] == access:
                return kept[1]
            # In a thread: the first import of a vendor takes seconds, and nobody else should wait for it.
            self._http = self._http or await to_thread.run_sync(self._open)
            target = ModelTarget(name=name, spec=self.spec, access=access, capabilities=capabilities)
            client = await to_thread.run_sync(build_client, target, self._http)
            self._clients.pop(name, None)
            if len(self._clients) >= _KEPT_CLIENTS:
                self._clients.pop(next(iter(self._clients)))
            self._clients[name] = (access, client)
            return client

    async def warm(self) -> None:
        """Imports the vendor in a worker thread, so that the first request need not."""
        await to_thread.run_sync(load_vendor, self.spec)

    async def aclose(self) -> None:
        """Closes the connections. The provider must not be used afterwards."""
        self.closed = True
        http, self._http = self._http, None
        self._clients.clear()
        if http is not None:
            await http.aclose()

    @property
    def _may_need_tls(self) -> bool:
        """Whether to read certificates, which takes longer than all else here. Without them every handshake fails."""
        return self._source is None and (not self.spec.address.startswith("http:") or bool(getproxies()))

    def _open(self) -> httpx2.AsyncClient:
        import httpx2

        idle_s = self.spec.idle_s
        # Only TLS makes a new connection dear. And llama.cpp promises to keep one but closes it after each stream, so
        # that the next request can go into a connection that is about to end.
        kept = _CONNECTIONS if self.spec.address.startswith("https:") else 0
        return httpx2.AsyncClient(
            timeout=httpx2.Timeout(connect=self.spec.connect_timeout_s, read=idle_s, write=idle_s, pool=_POOL_WAIT_S),
            verify=_load_tls() if self._may_need_tls else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            limits=httpx2.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=kept),
            # A proxy for the outside world has no business between us and our own child process.
            trust_env=self._source is None,
        )


@functools.cache
def _load_tls() -> ssl.SSLContext:
    """Loads the certificates once for all providers: reading them takes longer than making a client."""
    import httpx2

    return httpx2.create_ssl_context()


def closed_error() -> DenizenError:
    """Returns the error of a request that met the end of its generation of the configuration."""
    return Unavailable("The models are being replaced.", code="models_closed", fix="Try again.")
