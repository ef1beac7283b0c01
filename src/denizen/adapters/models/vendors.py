"""Vendor model classes, one small builder for each way to talk. The only module that constructs vendor objects.

Everything heavy is imported inside the builders, which run in a worker thread (`connection`). The vendors' own retries
are off: `model` retries. Keys, addresses and organisations in the environment that the vendors would look at are
overruled: what is not in the configuration is sent to nobody.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from denizen.adapters.models.settings import Kind, ProviderSpec
from denizen.domain.errors import NeedsAttention
from denizen.ports.model import Capabilities

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI
    from pydantic_ai.models import Model as VendorModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile

NO_KEY = "none"
"""What is sent as a key to servers that need none; the SDKs insist on one."""


_CHAT_MODULES = ("pydantic_ai.models.openai", "denizen.adapters.models.openai_client")
_MODULES: Mapping[Kind, tuple[str, ...]] = {
    "anthropic": ("pydantic_ai.models.anthropic",),
    "openai-responses": ("pydantic_ai.models.openai", "denizen.adapters.models.openai_responses"),
    "google": (),
}


@dataclass(frozen=True, slots=True)
class Access:
    """Where to send requests, and as whom."""

    base_url: str
    api_key: str = field(repr=False)
    model: str


def build_vendor_model(
    spec: ProviderSpec, access: Access, capabilities: Capabilities, http: httpx2.AsyncClient
) -> VendorModel:
    """The vendor's model. Raises NeedsAttention when the vendor is an extra that is not installed."""
    load_vendor(spec)
    match spec.kind:
        case "anthropic":
            return _anthropic(spec, access, capabilities, http)
        case "openai":
            return _openai_chat(spec, access, capabilities, http)
        case "openai-responses":
            return _openai_responses(spec, access, capabilities, http)
        case "openrouter":
            return _openrouter(spec, access, capabilities, http)
        case "ollama":
            return _ollama(spec, access, capabilities, http)
        case "google":
            return _google(access, capabilities, http)
        case "xai" | "groq" | "openai-compatible" | "embedded":
            return _openai_compatible(spec, access, capabilities, http)


def load_vendor(spec: ProviderSpec) -> None:
    """Imports what a first request would import, and reads the list of prices and usage fields, for which the first
    answer would wait.
    """
    importlib.import_module("pydantic_ai.direct")
    if spec.kind == "google":
        _load_google()
    for name in _MODULES.get(spec.kind, _CHAT_MODULES):
        importlib.import_module(name)
    from genai_prices.data_snapshot import get_snapshot

    get_snapshot()


def _anthropic(spec: ProviderSpec, access: Access, capabilities: Capabilities, http: httpx2.AsyncClient) -> VendorModel:
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


def _openai_client(spec: ProviderSpec, access: Access, http: httpx2.AsyncClient) -> AsyncOpenAI:
    if spec.kind == "openai-responses":
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
    spec: ProviderSpec, access: Access, capabilities: Capabilities, http: httpx2.AsyncClient
) -> VendorModel:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return OpenAIChatModel(
        access.model,
        provider=OpenAIProvider(openai_client=_openai_client(spec, access, http)),
        profile=_chat_profile(capabilities, _OPENAI),
    )


def _openai_responses(
    spec: ProviderSpec, access: Access, capabilities: Capabilities, http: httpx2.AsyncClient
) -> VendorModel:
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return OpenAIResponsesModel(
        access.model,
        provider=OpenAIProvider(openai_client=_openai_client(spec, access, http)),
        profile={"supports_json_schema_output": capabilities.json_schema},
    )


def _openrouter(
    spec: ProviderSpec, access: Access, capabilities: Capabilities, http: httpx2.AsyncClient
) -> VendorModel:
    from pydantic_ai.providers.openrouter import OpenRouterProvider

    if capabilities.image_output:
        from denizen.adapters.models.pictures import DrawingOpenRouterModel as Model
    else:
        from pydantic_ai.models.openrouter import OpenRouterModel as Model
    return Model(
        access.model,
        provider=OpenRouterProvider(openai_client=_openai_client(spec, access, http)),
        profile=_chat_profile(capabilities, _OPENROUTER),
    )


def _ollama(spec: ProviderSpec, access: Access, capabilities: Capabilities, http: httpx2.AsyncClient) -> VendorModel:
    from pydantic_ai.models.ollama import OllamaModel
    from pydantic_ai.providers.ollama import OllamaProvider

    return OllamaModel(
        access.model,
        provider=OllamaProvider(openai_client=_openai_client(spec, access, http)),
        profile=_chat_profile(capabilities, _OWN),
    )


def _openai_compatible(
    spec: ProviderSpec, access: Access, capabilities: Capabilities, http: httpx2.AsyncClient
) -> VendorModel:
    """Any server with OpenAI's chat completions; also xAI and Groq, whose own SDKs would add nothing but weight."""
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    if capabilities.image_output:
        from denizen.adapters.models.pictures import DrawingChatModel as Model
    else:
        from pydantic_ai.models.openai import OpenAIChatModel as Model

    hosted = spec.kind in {"xai", "groq"}
    # The kind, where it says who it is, finds the prices.
    name = spec.kind if hosted else spec.name
    return Model(
        access.model,
        provider=OpenAICompatibleProvider(name, openai_client=_openai_client(spec, access, http)),
        profile=_chat_profile(capabilities, _HOSTED if hosted else _OWN),
    )


def _google(access: Access, capabilities: Capabilities, http: httpx2.AsyncClient) -> VendorModel:
    _load_google()
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    return GoogleModel(
        access.model,
        provider=GoogleProvider(api_key=access.api_key, base_url=access.base_url, http_client=http),
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
            fix="Run: pip install 'denizen[google]'",
        ) from error
    _ = pydantic_ai.models.google


@dataclass(frozen=True, slots=True, kw_only=True)
class _Server:
    """How a server of chat completions differs from OpenAI's.

    Chat templates of open weights want one system message. `max_completion_tokens` is the newer name of `max_tokens`.
    """

    one_system_message: bool = True
    max_completion_tokens: bool = False
    strict: bool = False


_OPENAI = _Server(one_system_message=False, max_completion_tokens=True, strict=True)
_OPENROUTER = _Server(one_system_message=False, strict=True)
_HOSTED = _Server(max_completion_tokens=True, strict=True)
_OWN = _Server()


_NEVER = ("\0<", ">\0")
"""No tags for the vendor's layer: it misses a closing tag that arrives together with text. `tagged` does not."""


def _chat_profile(capabilities: Capabilities, server: _Server) -> OpenAIModelProfile:
    """What differs from pydantic-ai's own profile."""
    profile: OpenAIModelProfile = {
        "supports_json_schema_output": capabilities.json_schema,
        "openai_chat_supports_multiple_system_messages": not server.one_system_message,
        "openai_chat_supports_max_completion_tokens": server.max_completion_tokens,
        "openai_supports_strict_tool_definition": server.strict,
        "thinking_tags": _NEVER,
    }
    if server is _OWN:
        # Whichever field the thinking came in, it goes back in the same one.
        profile["openai_chat_thinking_field"] = None
    return profile
