"""What is configured about models, and what is known about each kind of provider.

Plain records that `app/settings` fills from the configuration file. No vendor and no configuration format here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

Kind = Literal[
    "anthropic",
    "openai",
    "openai-responses",
    "openrouter",
    "ollama",
    "xai",
    "google",
    "groq",
    "openai-compatible",
    "embedded",
]
CacheTtl = Literal["5m", "1h"]


@dataclass(frozen=True, slots=True)
class KindFacts:
    """What holds for every provider of a kind unless its `ProviderSpec` says otherwise.

    `free` models cost nothing per token. `idle_timeout_s` bounds the wait for the first byte and between two;
    models on the user's own processor read long prompts for minutes before they say the first word.
    """

    base_url: str
    needs_key: bool
    free: bool = False
    idle_timeout_s: float = 120.0
    total_timeout_s: float = 600.0


_OWN_MACHINE_IDLE_S = 600.0
_OWN_MACHINE_TOTAL_S = 1800.0

KINDS: Mapping[Kind, KindFacts] = {
    "anthropic": KindFacts("https://api.anthropic.com", needs_key=True),
    "openai": KindFacts("https://api.openai.com/v1", needs_key=True),
    "openai-responses": KindFacts("https://api.openai.com/v1", needs_key=True),
    "openrouter": KindFacts("https://openrouter.ai/api/v1", needs_key=True),
    "ollama": KindFacts(
        "http://localhost:11434/v1",
        needs_key=False,
        free=True,
        idle_timeout_s=_OWN_MACHINE_IDLE_S,
        total_timeout_s=_OWN_MACHINE_TOTAL_S,
    ),
    "xai": KindFacts("https://api.x.ai/v1", needs_key=True),
    "google": KindFacts("https://generativelanguage.googleapis.com", needs_key=True),
    "groq": KindFacts("https://api.groq.com/openai/v1", needs_key=True),
    "openai-compatible": KindFacts("", needs_key=False),
    "embedded": KindFacts(
        "", needs_key=False, free=True, idle_timeout_s=_OWN_MACHINE_IDLE_S, total_timeout_s=_OWN_MACHINE_TOTAL_S
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSpec:
    """One configured provider. `name` is what comes before the slash in a model's name.

    `api_key` is asked at each request, so that a rotated key works at once; `key_name` is the variable or setting it
    comes from, for error messages. `headers` go with every request. `cache_ttl` is how long a provider with cache
    marks keeps tools and system prompt (inventory C22), and the longest that it keeps a conversation.
    None for a time-out takes the kind's.
    """

    name: str
    kind: Kind
    base_url: str = ""
    api_key: Callable[[], str] | None = field(default=None, repr=False)
    key_name: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    connect_timeout_s: float = 10.0
    idle_timeout_s: float | None = None
    total_timeout_s: float | None = None
    cache_ttl: CacheTtl = "1h"

    @property
    def facts(self) -> KindFacts:
        return KINDS[self.kind]

    @property
    def idle_s(self) -> float:
        """How long the provider may be silent, seconds."""
        return self.facts.idle_timeout_s if self.idle_timeout_s is None else self.idle_timeout_s

    @property
    def total_s(self) -> float:
        """How long one request may take with its retries and waits, seconds."""
        return self.facts.total_timeout_s if self.total_timeout_s is None else self.total_timeout_s


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model that is offered by name. `overrides` correct what is detected: fields of `Capabilities`."""

    name: str
    overrides: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True)
class AliasSpec:
    """A name that agents use, such as `balanced`. `target` and `fallbacks` are models or other aliases."""

    name: str
    target: str
    fallbacks: tuple[str, ...] = ()


class Endpoint(Protocol):
    """Where an OpenAI-compatible server listens. `base_url` ends in `/v1`."""

    @property
    def base_url(self) -> str: ...

    @property
    def api_key(self) -> str: ...

    @property
    def model(self) -> str: ...


class EndpointSource(Protocol):
    """A server that may first have to be started (the embedded runtime)."""

    async def endpoint(self) -> Endpoint:
        """The running server; cheap when it runs. Raises NeedsAttention or Unavailable when it cannot run."""
        ...
