"""A configured persona, as the engine needs it. `app/settings` makes these from the configuration file."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum

from denizen.domain.hook import Hooks
from denizen.domain.ids import AgentName
from denizen.domain.record import record
from denizen.domain.routing import AUTO, scale_steps
from denizen.domain.transcript import TranscriptBudget


class ResponseStyle(StrEnum):
    """The length and form of replies."""

    CONCISE = "concise"
    DETAILED = "detailed"
    TECHNICAL = "technical"
    FRIENDLY = "friendly"


class CitationFormat(StrEnum):
    """The form in which an answer names its sources."""

    INLINE = "inline"
    FOOTNOTE = "footnote"
    NONE = "none"


class ContextStrategy(StrEnum):
    """How history reaches the model."""

    SESSION = "session"
    TRANSCRIPT = "transcript"


class AnswersFrom(StrEnum):
    """The ground on which an agent's answers may rest: only what its sources say, or anything it knows."""

    SOURCES = "sources"
    ANYTHING = "anything"


class ToolPlanning(StrEnum):
    """How the agent reaches tools. AUTO plans for models that lack native tool calls or are small."""

    AUTO = "auto"
    NATIVE = "native"
    PLAN = "plan"


class LookUp(StrEnum):
    """Whether documents are searched before the model is asked. AUTO: for agents that plan, and for small models."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class SessionScope(StrEnum):
    """The span of one session on a platform: a channel with its threads, one thread, or one user in all
    places.
    """

    CHANNEL = "channel"
    THREAD = "thread"
    USER = "user"


@record
class TurnLimits:
    """Bounds of one turn. `max_steps` is for turns that are not routed; either
    number of steps is multiplied.
    """

    max_steps: int = 20
    max_steps_multiplier: float = 1.0
    max_history_tokens: int = 24_000
    max_history_messages: int = 400
    max_output_tokens: int = 4096
    max_tools: int = 40
    turn_timeout_s: float = 600.0
    nudges: int = 0
    nudge_text: str = ""

    @property
    def steps(self) -> int:
        """The number of steps of a turn that is not routed."""
        return scale_steps(self.max_steps, self.max_steps_multiplier)


@record
class WritingStyle:
    """How the agent writes."""

    response: ResponseStyle = ResponseStyle.CONCISE
    language: str = "en"
    citations: CitationFormat = CitationFormat.INLINE
    extra_instructions: str = ""
    search_instructions: str = ""


@record
class SamplingSettings:
    """None leaves the choice to the provider. `demanded` names those that the asker insists on: a model that does not
    take one refuses the request, instead of leaving it out.
    """

    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    demanded: frozenset[str] = frozenset()


@record
class TimestampPolicy:
    """A line with the time stands where messages are `gap_s` or more apart. `zone` is an IANA name."""

    zone: str = "UTC"
    gap_s: float = 600.0


@record
class SummaryPolicy:
    """When the oldest part of a session is summed up in the background. `enabled` None leaves it to the model: not by
    one that is small. `start_at` and `keep` are shares of the history's budget, in tokens and in messages: where it
    begins, and what is left as it was said.
    """

    enabled: bool | None = None
    start_at: float = 0.7
    keep: float = 0.35


@record
class StoragePolicy:
    """Bounds of what is stored of a session: the number of messages, and the characters of one by who said it.
    `prompt_tool_chars` bounds an earlier tool result as a model reads it. 0 is no bound.
    """

    max_messages: int = 0
    user_chars: int = 0
    agent_chars: int = 0
    tool_chars: int = 0
    prompt_tool_chars: int = 0


@record
class TranscriptLayout:
    """How one agent is shown a transcript. `vertical`: each name on a line of its own. `separate_blocks`: each closed
    block is a message of its own, also where the provider's cache needs no marks. `turns`: what the agent said itself
    comes as assistant turns.
    """

    vertical: bool = False
    separate_blocks: bool = False
    turns: bool = False


@record(kw_only=True)
class AgentInstructions:
    """The texts and rules that lead a prompt. `persona` holds (file name, text) pairs in prompt order, `context_files`
    (heading, text) pairs that follow it, `core_memory` what the owner wrote down for all talks of the agent. `planner`
    and `answer` are the owner's texts for an agent that plans; empty, the built-in ones serve.
    """

    persona: tuple[tuple[str, str], ...] = ()
    context_files: tuple[tuple[str, str], ...] = ()
    core_memory: str = ""
    style: WritingStyle = field(default_factory=WritingStyle)
    answers_from: AnswersFrom = AnswersFrom.ANYTHING
    planner: str = ""
    answer: str = ""


@record(kw_only=True)
class HistorySettings:
    """The part of earlier talk that is read, and the part that is stored. `recent_messages` is how much of the talk
    around it is told to an agent that was not in it; `timestamps` None means no time lines.
    """

    context: ContextStrategy = ContextStrategy.SESSION
    transcript: TranscriptBudget = field(default_factory=TranscriptBudget)
    layout: TranscriptLayout = field(default_factory=TranscriptLayout)
    session_scope: SessionScope = SessionScope.THREAD
    recent_messages: int = 10
    timestamps: TimestampPolicy | None = None
    summaries: SummaryPolicy = field(default_factory=SummaryPolicy)
    storing: StoragePolicy = field(default_factory=StoragePolicy)


@record
class ToolAccess:
    """The tools of an agent: names, or patterns such as `*_note`. Of more than fit a prompt, `pinned_tools` are
    always in it. `plan_temperature` is for the plans of an agent that plans.

    `administration`: the turn belongs to a chat about the administration, so the agent has the tools for that, and none
    of the others: what it reads there must not leave the chat. `delegates_to` are the agents that it may hand tasks to.
    """

    tools: tuple[str, ...] = ("*",)
    pinned_tools: tuple[str, ...] = ()
    planning: ToolPlanning = ToolPlanning.AUTO
    plan_temperature: float = 0.0
    look_up: LookUp = LookUp.AUTO
    administration: bool = False
    delegates_to: tuple[AgentName, ...] = ()


@record
class Agent:
    """A persona with its model, its limits and its tools.

    One that is not `enabled` answers nobody. `reasoning` lets a model think first that can be told to;
    `show_reasoning` shows people what it thought. `is_routed`: the model is chosen for each question, and `model`
    answers where there is nothing to choose. `hooks` run around each of its turns.
    """

    name: AgentName
    description: str = ""
    enabled: bool = True
    model: str = "balanced"
    is_routed: bool = False
    sampling: SamplingSettings = field(default_factory=SamplingSettings)
    reasoning: bool = False
    show_reasoning: bool = False
    limits: TurnLimits = field(default_factory=TurnLimits)
    instructions: AgentInstructions = field(default_factory=AgentInstructions)
    history: HistorySettings = field(default_factory=HistorySettings)
    tool_access: ToolAccess = field(default_factory=ToolAccess)
    hooks: Hooks = field(default_factory=Hooks)

    @property
    def model_word(self) -> str:
        """The model as people call it."""
        return AUTO if self.is_routed else self.model
