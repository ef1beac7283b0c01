"""A configured persona, as the engine needs it. `app/settings` makes these from the configuration file."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from denizen.domain.ids import AgentName
from denizen.domain.transcript import Budget


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


class SessionScope(StrEnum):
    """What one session of the agent spans on a platform: a channel with its threads, one thread, or one user in all
    places (inventory T34).
    """

    CHANNEL = "channel"
    THREAD = "thread"
    USER = "user"


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
class Timestamps:
    """A line with the time stands where messages are `gap_s` or more apart (inventory C13). `zone` is an IANA name."""

    zone: str = "UTC"
    gap_s: float = 600.0


@dataclass(frozen=True, slots=True)
class Agent:
    """`persona` holds (file name, text) pairs in prompt order. `tools` are names or patterns such as `notes_*`.

    `recent_messages` is how much of the talk around it is told to an agent that was not in it (inventory L3);
    `timestamps` None means no time lines.
    """

    name: AgentName
    description: str = ""
    model: str = "balanced"
    persona: tuple[tuple[str, str], ...] = ()
    tools: tuple[str, ...] = ("*",)
    context: ContextStrategy = ContextStrategy.SESSION
    transcript: Budget = field(default_factory=Budget)
    planning: Planning = Planning.AUTO
    limits: Limits = field(default_factory=Limits)
    style: Style = field(default_factory=Style)
    sampling: Sampling = field(default_factory=Sampling)
    session_scope: SessionScope = SessionScope.THREAD
    recent_messages: int = 10
    timestamps: Timestamps | None = None
