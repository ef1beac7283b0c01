"""Vendor model classes and their builders, by protocol. No other module constructs vendor objects.

Everything heavy is imported inside the builders, which run in a worker thread (`connection`). The vendors' own retries
are off, since `model` retries. Keys, addresses and organisations in the environment that the vendors would look at are
overruled: only what the configuration names is sent.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from denizen.adapters.models.client import ModelClient, ModelTarget, ProviderAccess
from denizen.adapters.models.prices import load_prices
from denizen.adapters.models.providers import ProviderSpec, WireProtocol
from denizen.domain.errors import NeedsAttention
from denizen.domain.installation import build_install_command
from denizen.ports.model import Capabilities

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI
    from pydantic_ai.models import Model as VendorModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers import Provider

_CHAT_MODULES = ("pydantic_ai.models.openai", "denizen.adapters.models.openai_client")
_MODULES: Mapping[WireProtocol, tuple[str, ...]] = {
    "anthropic": ("pydantic_ai.models.anthropic",),
    "openai-responses": ("pydantic_ai.models.openai", "denizen.adapters.models.openai_responses"),
    "google": (),
}


def build_client(target: ModelTarget, http: httpx2.AsyncClient) -> ModelClient:
    """Builds the client of a model. Raises what `build_vendor_model` raises."""
    if target.spec.facts.protocol == "openai-compatible":
        from denizen.adapters.models.chat_client import ChatClient

        return ChatClient(target, http)
    from denizen.adapters.models.sdk_client import SdkClient

    return SdkClient(target, build_vendor_model(target.spec, target.access, target.capabilities, http))


def build_vendor_model(
    spec: ProviderSpec, access: ProviderAccess, capabilities: Capabilities, http: httpx2.AsyncClient
) -> VendorModel:
    """Builds the vendor's model. Raises NeedsAttention when the vendor is an extra that is not installed, and for a
    name that the vendor's library does not take, such as one of OpenRouter without the maker.
    """
    load_vendor(spec)
    try:
        return _build(spec, access, capabilities, http)
    except (ValueError, TypeError, LookupError, RuntimeError) as error:
        is_without_maker = spec.facts.protocol == "openrouter" and "/" not in access.model
        raise NeedsAttention(
            f"The model '{access.model}' cannot be used with '{spec.name}'.",
            code="model_unusable",
            why=f"the provider's library refuses it ({type(error).__name__})",
            fix=f"Write it with its maker, as in {spec.name}/openai/{access.model}."
            if is_without_maker
            else "Check the name of the model and the settings of the provider.",
        ) from error


def _build(
    spec: ProviderSpec, access: ProviderAccess, capabilities: Capabilities, http: httpx2.AsyncClient
) -> VendorModel:
    match spec.facts.protocol:
        case "anthropic":
            return _anthropic(spec, access, capabilities, http)
        case "openai-responses":
            return _openai_responses(spec, access, capabilities, http)
        case "google":
            return _google(spec, access, capabilities, http)
        case _:
            return _openai_chat(spec, access, capabilities, http)


def load_vendor(spec: ProviderSpec) -> None:
    """Imports what a first request would import, and reads the list of prices and usage fields, so that the first
    answer need not wait for it.
    """
    if spec.facts.protocol == "openai-compatible":
        importlib.import_module("denizen.adapters.models.chat_client")
        load_prices()
        return
    importlib.import_module("denizen.adapters.models.sdk_client")
    if spec.facts.protocol == "google":
        _load_google()
    for name in _MODULES.get(spec.facts.protocol, _CHAT_MODULES):
        importlib.import_module(name)
    load_prices()


def _anthropic(
    spec: ProviderSpec, access: ProviderAccess, capabilities: Capabilities, http: httpx2.AsyncClient
) -> VendorModel:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = AsyncAnthropic(
        api_key=access.api_key,
        base_url=access.base_url,
        http_client=http,
        timeout=http.timeout,
        max_retries=0,
        default_headers=dict(spec.headers),
    )
    return AnthropicModel(
        access.model,
        provider=AnthropicProvider(anthropic_client=client),
        profile={"supports_json_schema_output": capabilities.json_schema},
    )


def _openai_client(spec: ProviderSpec, access: ProviderAccess, http: httpx2.AsyncClient) -> AsyncOpenAI:
    if spec.facts.protocol == "openai-responses":
        from denizen.adapters.models.openai_responses import LeanResponsesOpenAI as Client
    else:
        from denizen.adapters.models.openai_client import LeanOpenAI as Client

    client = Client(
        api_key=access.api_key,
        base_url=access.base_url,
        http_client=http,
        timeout=http.timeout,
        max_retries=0,
        default_headers=dict(spec.headers),
    )
    client.organization = client.project = None
    return client


def _openai_chat(
    spec: ProviderSpec, access: ProviderAccess, capabilities: Capabilities, http: httpx2.AsyncClient
) -> VendorModel:
    client = _openai_client(spec, access, http)
    provider: Provider[AsyncOpenAI]
    if spec.facts.protocol == "openrouter":
        if capabilities.image_output:
            from denizen.adapters.models.pictures import DrawingOpenRouterModel as Model
        else:
            from pydantic_ai.models.openrouter import OpenRouterModel as Model
        from pydantic_ai.providers.openrouter import OpenRouterProvider

        provider = OpenRouterProvider(openai_client=client)
    else:
        from pydantic_ai.models.openai import OpenAIChatModel as Model
        from pydantic_ai.providers.openai import OpenAIProvider

        provider = OpenAIProvider(openai_client=client)
    # What differs from pydantic-ai's own profile.
    profile: OpenAIModelProfile = {
        "supports_json_schema_output": capabilities.json_schema,
        "openai_chat_supports_max_completion_tokens": spec.facts.wire.max_completion_tokens,
        "thinking_tags": _NEVER,
    }
    return Model(access.model, provider=provider, profile=profile)


def _openai_responses(
    spec: ProviderSpec, access: ProviderAccess, capabilities: Capabilities, http: httpx2.AsyncClient
) -> VendorModel:
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return OpenAIResponsesModel(
        access.model,
        provider=OpenAIProvider(openai_client=_openai_client(spec, access, http)),
        profile={"supports_json_schema_output": capabilities.json_schema},
    )


def _google(
    spec: ProviderSpec, access: ProviderAccess, capabilities: Capabilities, http: httpx2.AsyncClient
) -> VendorModel:
    _load_google()
    from google.genai import Client
    from google.genai.types import HttpOptions
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    options = HttpOptions(base_url=access.base_url, headers=dict(spec.headers), httpx_async_client=http)
    return GoogleModel(
        access.model,
        provider=GoogleProvider(client=Client(vertexai=False, api_key=access.api_key, http_options=options)),
        profile={
            "supports_json_schema_output": capabilities.json_schema,
            "supports_image_output": capabilities.image_output,
        },
    )


def _load_google() -> None:
    try:
        import pydantic_ai.models.google
    except ImportError as error:
        raise NeedsAttention(
            "Google models need an extra that is not installed.",
            code="model_extra_missing",
            why="The package google-genai cannot be imported.",
            fix=f"Run: {build_install_command('google')}",
        ) from error
    _ = pydantic_ai.models.google


_NEVER = ("\0<", ">\0")
"""No tags for the vendor's layer: it misses a closing tag that arrives with text. `reply.TagSplitter` does not."""
