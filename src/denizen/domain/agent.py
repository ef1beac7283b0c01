"""A configured persona, as the engine needs it. `app/settings` makes these from the configuration file."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from denizen.domain.ids import AgentName


class ResponseStyle(StrEnum):
    """Inventory 2.2."""

    CONCISE = "concise"
    DETAILED = "detailed"
    TECHNICAL = "technical"
    FRIENDLY = "friendly"


class CitationFormat(StrEnum):
    """Inventory 2.2."""

    INLINE = "inline"
    FOOTNOTE = "footnote"
    NONE = "none"


class ContextStrategy(StrEnum):
    """How history reaches the model (inventory, section 6)."""

    SESSION = "session"
    TRANSCRIPT = "transcript"


class Planning(StrEnum):
    """How the agent reaches tools. AUTO plans for models that lack native tool calls or are small."""

    AUTO = "auto"
    NATIVE = "native"
    PLAN = "plan"


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one turn. Defaults: section 6 of the inventory."""

    max_steps: int = 20
    max_history_tokens: int = 24_000
    max_history_messages: int = 100
    max_output_tokens: int = 4096
    max_tools: int = 40
    turn_timeout_s: float = 600.0
    nudges: int = 0
    nudge_text: str = ""


@dataclass(frozen=True, slots=True)
class Style:
    """How the agent writes (inventory 2.2)."""

    response: ResponseStyle = ResponseStyle.CONCISE
    language: str = "en"
    citations: CitationFormat = CitationFormat.INLINE
    extra_instructions: str = ""
    search_instructions: str = ""


@dataclass(frozen=True, slots=True)
class Sampling:
    """None leaves the choice to the provider."""

    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Agent:
    """`persona` holds (file name, text) pairs in prompt order. `tools` are names or patterns such as `notes_*`."""

    name: AgentName
    description: str = ""
    model: str = "balanced"
    persona: tuple[tuple[str, str], ...] = ()
    tools: tuple[str, ...] = ("*",)
    context: ContextStrategy = ContextStrategy.SESSION
    planning: Planning = Planning.AUTO
    limits: Limits = field(default_factory=Limits)
    style: Style = field(default_factory=Style)
    sampling: Sampling = field(default_factory=Sampling)
