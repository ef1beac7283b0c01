"""One configured provider: its HTTP client, made at first use, and the vendor's models that go over it, with tools in
the vendor's form.

`catalog` builds connections, `model` uses them. Nothing is imported or opened before the first request.
"""

from __future__ import annotations

import functools
import ssl
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from denizen.adapters.models.failures import FailureContext
from denizen.adapters.models.providers import EndpointSource, ProviderSpec, cut_to_origin
from denizen.adapters.models.request import build_tools
from denizen.adapters.models.vendors import NO_KEY, ProviderAccess, build_vendor_model, load_vendor
from denizen.domain.errors import DenizenError, NeedsAttention, Unavailable
from denizen.domain.tool import ToolSpec
from denizen.ports.model import Capabilities

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.models import Model as VendorModel
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

_KEPT = 32


@dataclass(frozen=True, slots=True)
class _Form:
    tools: tuple[ToolSpec, ...]
    definitions: list[ToolDefinition]


class ToolDefinitionCache:
    """The tools of agents in the form that a vendor sends, worked out once for each set of tools.

    The vendor's layer checks, copies and rewrites the schema of every tool for every request, which takes 20 to 50 us a
    tool, though the same few sets come again and again. The cache replaces the hook in which `vendor` rewrites request
    parameters: tools that come from `get` pass it as they are, everything else is rewritten as before.
    """

    def __init__(self, vendor: VendorModel) -> None:
        self._rewrite = vendor.customize_request_parameters
        self._forms: dict[tuple[str, ...], _Form] = {}
        vendor.customize_request_parameters = self._customize

    def get(self, tools: tuple[ToolSpec, ...]) -> list[ToolDefinition]:
        """Returns the tools, rewritten; the same list for the same tools."""
        from pydantic_ai.models import ModelRequestParameters

        names = tuple(tool.name for tool in tools)
        form = self._forms.get(names)
        if form is None or form.tools != tools:
            parameters = ModelRequestParameters(function_tools=build_tools(tools))
            form = _Form(tools, self._rewrite(parameters).function_tools)
            self._forms.pop(names, None)
            if len(self._forms) >= _KEPT:
                self._forms.pop(next(iter(self._forms)))
            self._forms[names] = form
        return form.definitions

    def _customize(self, model_request_parameters: ModelRequestParameters) -> ModelRequestParameters:
        tools = model_request_parameters.function_tools
        if not any(form.definitions is tools for form in self._forms.values()):
            return self._rewrite(model_request_parameters)
        return replace(self._rewrite(replace(model_request_parameters, function_tools=[])), function_tools=tools)


_CONNECTIONS = 256
_KEPT_MODELS = 64
_POOL_WAIT_S = 30.0
_LEAST_SECRET_CHARS = 6


@dataclass(frozen=True, slots=True)
class VendorHandle:
    """The vendor's model, with the cache of tools in its form."""

    model: VendorModel
    forms: ToolDefinitionCache


class ProviderConnection:
    """A connection to a provider. `source` gives the address of one that is started here (kind `embedded`)."""

    def __init__(self, spec: ProviderSpec, source: EndpointSource | None = None) -> None:
        self.spec = spec
        self._source = source
        self._source_ready = False
        self._http: httpx2.AsyncClient | None = None
        self._models: dict[str, tuple[ProviderAccess, VendorHandle]] = {}
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

    async def vendor(self, access: ProviderAccess, capabilities: Capabilities, name: str) -> VendorHandle:
        """Returns the vendor's model, kept until address or key change, so that connections stay warm."""
        kept = self._models.get(name)
        if kept is not None and kept[0] == access:  # as nearly always: without the lock's detour over the event loop
            return kept[1]
        async with self._lock:
            if self.closed:
                raise closed_error()
            kept = self._models.get(name)
            if kept is not None and kept[0] == access:
                return kept[1]
            # In a thread: the first import of a vendor takes seconds, and nobody else should wait for it.
            self._http = self._http or await to_thread.run_sync(self._open)
            build = partial(build_vendor_model, self.spec, access, capabilities, self._http)
            model = await to_thread.run_sync(build)
            built = VendorHandle(model, ToolDefinitionCache(model))
            self._models.pop(name, None)
            if len(self._models) >= _KEPT_MODELS:
                self._models.pop(next(iter(self._models)))
            self._models[name] = (access, built)
            return built

    async def warm(self) -> None:
        """Imports the vendor in a worker thread, so that the first request need not."""
        await to_thread.run_sync(load_vendor, self.spec)

    def target(self, access: ProviderAccess, name: str) -> FailureContext:
        """Returns the names that errors use, and the secrets that they must not show."""
        secrets = (access.api_key, *self.spec.headers.values())
        kept = tuple(secret for secret in secrets if len(secret) >= _LEAST_SECRET_CHARS)
        origin = cut_to_origin(access.base_url)
        return FailureContext(name, self.spec.name, origin, key_name=self.spec.key_name, secrets=kept)

    async def aclose(self) -> None:
        """Closes the connections. The provider must not be used afterwards."""
        self.closed = True
        http, self._http = self._http, None
        self._models.clear()
        if http is not None:
            await http.aclose()

    def _open(self) -> httpx2.AsyncClient:
        import httpx2

        idle_s = self.spec.idle_s
        # Only TLS makes a new connection dear. And llama.cpp promises to keep one but closes it after each stream, so
        # that the next request can go into a connection that is about to end.
        kept = _CONNECTIONS if self.spec.address.startswith("https:") else 0
        return httpx2.AsyncClient(
            timeout=httpx2.Timeout(connect=self.spec.connect_timeout_s, read=idle_s, write=idle_s, pool=_POOL_WAIT_S),
            verify=_load_tls(),
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
