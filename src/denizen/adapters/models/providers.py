"""The providers of language models: one record for each kind in `PROVIDERS`, and what the configuration says of one.

Everything else derives from the table: the kinds that the configuration accepts, the list of `denizen setup`, the usual
variable of a key, addresses, prices, time-outs, and how requests have to look. A new provider that speaks a known
protocol is one more entry. The module imports no vendor, since the command line loads it at start-up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from denizen.domain.record import record
from denizen.domain.usage import TokenPrice

CacheTtl = Literal["5m", "1h"]
WireProtocol = Literal["anthropic", "openai-chat", "openai-responses", "openrouter", "google", "openai-compatible"]
"""The ways to talk. `openai-compatible` is chat completions as any server of them takes them (`chat_client`); for the
others `vendors` has a builder each.
"""


def defaults(
    context_tokens: int, max_output_tokens: int | None = None, **more: bool | frozenset[str]
) -> Mapping[str, Any]:
    """Returns fields of `Capabilities` as they are assumed for models that no row of `capabilities` knows."""
    return MappingProxyType({"context_tokens": context_tokens, "max_output_tokens": max_output_tokens, **more})


@record(kw_only=True)
class WireTraits:
    """The form of requests to a provider, and of its answers.

    `inline_system`: system messages may stand within the conversation. `user_first`: the conversation has to begin with
    a user message. `flags_errors`: failed tool results are marked. `says_when_done`: a complete stream has a finish
    reason, so one without was cut off. `thinking_tags`: the text may begin with thinking between tags.
    `prompt_cache_key`: requests of one conversation carry a key that leads them to the same cache. `cache_marks` is the
    prefix of the settings that mark what is cached; empty: the provider takes no marks. `modalities`: a model that
    answers with pictures has to be asked for them. `max_completion_tokens`: the server knows the newer name of
    `max_tokens`. `strict`: it may be told to hold the output strictly to its schema.
    """

    inline_system: bool = False
    user_first: bool = False
    flags_errors: bool = False
    says_when_done: bool = False
    thinking_tags: bool = True
    prompt_cache_key: bool = False
    cache_marks: str = ""
    modalities: bool = False
    max_completion_tokens: bool = False
    strict: bool = False


@record(kw_only=True)
class ModelTraits:
    """The abilities of models on a provider, whatever their name says.

    `defaults` holds for names that nothing is known of. `prefill`: the provider lets a model continue a begun answer.
    `seed`: it takes one. `grammar`: its runtime holds every model to a JSON schema. `draws`: models named as image
    models answer with pictures.
    """

    defaults: Mapping[str, Any]
    prefill: bool = False
    seed: bool = True
    grammar: bool = False
    draws: bool = False


@record(kw_only=True)
class ProviderFacts:
    """The facts about every provider of a kind, unless its `ProviderSpec` says otherwise.

    `label` says in a few words what it is, for `denizen setup`. `base_url` is empty where there is no usual address.
    `key_variable` is the usual variable of the key; empty: it needs none. `key_prefix` begins its keys, so that they
    are recognized in texts. `price_list` is its name in the list of prices; None: any provider may be behind it, which
    goes by its own name. `is_local`: it runs on the user's own machine, so its models are free and may read a long
    prompt for minutes before the first word. `embeds`: it has OpenAI's embeddings API.
    """

    label: str
    protocol: WireProtocol
    base_url: str = ""
    key_variable: str = ""
    key_prefix: str = ""
    price_list: str | None = None
    is_local: bool = False
    embeds: bool = False
    wire: WireTraits = field(default_factory=WireTraits)
    models: ModelTraits

    @property
    def needs_key(self) -> bool:
        return bool(self.key_variable)

    @property
    def idle_timeout_s(self) -> float:
        """The limit of the wait for the first byte and between two."""
        return 600.0 if self.is_local else 120.0

    @property
    def total_timeout_s(self) -> float:
        """The limit of one request with its retries."""
        return 1800.0 if self.is_local else 600.0


_NO_SAMPLING: frozenset[str] = frozenset()
_HOSTED_WIRE = WireTraits(inline_system=True, says_when_done=True, max_completion_tokens=True, strict=True)
# OpenAI's newest models refuse sampling, so an unknown one is taken for one of them.
_GPT = defaults(400_000, 128_000, images=True, sampling=_NO_SAMPLING)

PROVIDERS: Mapping[str, ProviderFacts] = MappingProxyType(
    {
        "anthropic": ProviderFacts(
            label="Claude",
            protocol="anthropic",
            base_url="https://api.anthropic.com",
            key_variable="ANTHROPIC_API_KEY",
            key_prefix="sk-",
            price_list="anthropic",
            wire=WireTraits(
                user_first=True, flags_errors=True, says_when_done=True, thinking_tags=False, cache_marks="anthropic"
            ),
            models=ModelTraits(
                defaults=defaults(1_000_000, 128_000, images=True, cache_marks=True, sampling=_NO_SAMPLING),
                prefill=True,
                seed=False,
            ),
        ),
        "openai": ProviderFacts(
            label="GPT over the chat API",
            protocol="openai-chat",
            base_url="https://api.openai.com/v1",
            key_variable="OPENAI_API_KEY",
            key_prefix="sk-",
            price_list="openai",
            embeds=True,
            wire=WireTraits(inline_system=True, says_when_done=True, prompt_cache_key=True, max_completion_tokens=True),
            models=ModelTraits(defaults=_GPT),
        ),
        "openai-responses": ProviderFacts(
            label="GPT over the responses API",
            protocol="openai-responses",
            base_url="https://api.openai.com/v1",
            key_variable="OPENAI_API_KEY",
            key_prefix="sk-",
            price_list="openai",
            embeds=True,
            wire=WireTraits(inline_system=True, says_when_done=True, thinking_tags=False, prompt_cache_key=True),
            models=ModelTraits(defaults=_GPT, seed=False),
        ),
        "openrouter": ProviderFacts(
            label="many models with one key",
            protocol="openrouter",
            base_url="https://openrouter.ai/api/v1",
            key_variable="OPENROUTER_API_KEY",
            key_prefix="sk-",
            price_list="openrouter",
            embeds=True,
            wire=WireTraits(inline_system=True, says_when_done=True, cache_marks="openrouter", modalities=True),
            models=ModelTraits(defaults=defaults(128_000), prefill=True, draws=True),
        ),
        "ollama": ProviderFacts(
            label="models on your own machine",
            protocol="openai-compatible",
            base_url="http://localhost:11434/v1",
            price_list="ollama",
            is_local=True,
            embeds=True,
            # Ollama cuts prompts silently to the context it was started with (4k to 256k); 32k is its middle.
            models=ModelTraits(defaults=defaults(32_768), grammar=True),
        ),
        "xai": ProviderFacts(
            label="Grok",
            protocol="openai-compatible",
            base_url="https://api.x.ai/v1",
            key_variable="XAI_API_KEY",
            key_prefix="xai-",
            price_list="xai",
            wire=_HOSTED_WIRE,
            models=ModelTraits(defaults=defaults(256_000, images=True)),
        ),
        "google": ProviderFacts(
            label="Gemini",
            protocol="google",
            base_url="https://generativelanguage.googleapis.com",
            key_variable="GEMINI_API_KEY",
            price_list="google",
            wire=WireTraits(user_first=True, thinking_tags=False),
            models=ModelTraits(defaults=defaults(1_000_000, 65_536, images=True), draws=True),
        ),
        "groq": ProviderFacts(
            label="fast open models",
            protocol="openai-compatible",
            base_url="https://api.groq.com/openai/v1",
            key_variable="GROQ_API_KEY",
            key_prefix="gsk_",
            price_list="groq",
            wire=_HOSTED_WIRE,
            models=ModelTraits(defaults=defaults(131_072)),
        ),
        "openai-compatible": ProviderFacts(
            label="any other server that speaks OpenAI's protocol",
            protocol="openai-compatible",
            embeds=True,
            wire=WireTraits(modalities=True),
            models=ModelTraits(defaults=defaults(32_768)),
        ),
        "embedded": ProviderFacts(
            label="the built-in small model: no key, no network; fetches 1.1 GB of weights once",
            protocol="openai-compatible",
            is_local=True,
            # The catalogue of weights knows better: the application overrides `context_tokens` and `native_tools`.
            models=ModelTraits(
                defaults=defaults(8192, small=True, native_tools=False, parallel_calls=False), grammar=True
            ),
        ),
    }
)


def list_key_prefixes() -> list[str]:
    """Returns what the keys of providers begin with, such as `sk-`."""
    return sorted({facts.key_prefix for facts in PROVIDERS.values() if facts.key_prefix})


if TYPE_CHECKING:
    ProviderKind: TypeAlias = str
else:
    # The configuration accepts exactly the names of the table. A type checker cannot follow that.
    ProviderKind = Literal[tuple(PROVIDERS)]


def cut_to_origin(url: str) -> str:
    """Returns scheme, host and port of an address; what else it has may be secret."""
    return re.sub(r"^(\w*://)?(?:[^/?#]*@)?([^/?#]*).*", r"\1\2", url, flags=re.DOTALL)


@record(kw_only=True)
class ProviderSpec:
    """One configured provider. `name` is what comes before the slash in a model's name.

    `api_key` is asked at each request, so that a rotated key works at once; `key_name` is the variable or setting it
    comes from, for error messages. `headers` go with every request. `cache_ttl` is how long a provider with cache
    marks keeps tools and system prompt, and the longest that it keeps a conversation. None for a time-out takes the
    one of the kind. `prices` are those of its models that count in place of the listed ones.
    """

    name: str
    kind: ProviderKind
    base_url: str = ""
    api_key: Callable[[], str] | None = field(default=None, repr=False)
    key_name: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    connect_timeout_s: float = 10.0
    idle_timeout_s: float | None = None
    total_timeout_s: float | None = None
    cache_ttl: CacheTtl = "1h"
    prices: Mapping[str, TokenPrice] = field(default_factory=dict[str, TokenPrice])

    @property
    def facts(self) -> ProviderFacts:
        return PROVIDERS[self.kind]

    @property
    def address(self) -> str:
        """The base URL in effect; empty for a server that has to be started first."""
        return self.base_url or self.facts.base_url

    @property
    def idle_s(self) -> float:
        """How long the provider may be silent, in seconds."""
        return self.facts.idle_timeout_s if self.idle_timeout_s is None else self.idle_timeout_s

    @property
    def total_s(self) -> float:
        """How long one request may take with its retries and waits, in seconds."""
        return self.facts.total_timeout_s if self.total_timeout_s is None else self.total_timeout_s


@record
class ModelSpec:
    """A model that is offered by name. `overrides` correct what is detected: fields of `Capabilities`."""

    name: str
    overrides: Mapping[str, object] = field(default_factory=dict[str, object])


@record
class AliasSpec:
    """A name that agents use, such as `balanced`. `target` and `fallbacks` are models or other aliases. Everybody may
    choose one that `is_offered`.
    """

    name: str
    target: str
    fallbacks: tuple[str, ...] = ()
    is_offered: bool = True


class ModelEndpoint(Protocol):
    """The address of an OpenAI-compatible server. `base_url` ends in `/v1`."""

    @property
    def base_url(self) -> str: ...

    @property
    def api_key(self) -> str: ...

    @property
    def model(self) -> str: ...


class EndpointSource(Protocol):
    """A server that may first have to be started (the embedded runtime)."""

    async def endpoint(self) -> ModelEndpoint:
        """Returns the running server; cheap when it runs. Raises NeedsAttention or Unavailable when it cannot run."""
        ...
