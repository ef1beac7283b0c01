"""The shape of `denizen.yaml`: keys, types, defaults and bounds. What belongs together across sections is checked in
`references`; how an error reads is decided in `explain`.
"""

from __future__ import annotations

import re
from typing import Literal, Self

from pydantic import ConfigDict, Field, field_validator, model_validator

from denizen.app.settings.fields import (
    AgentNameText,
    Language,
    Name,
    Number,
    Secret,
    Section,
    SomeText,
    StoreUrl,
    Text,
    Whole,
    Zone,
    refuse,
)
from denizen.app.settings.schema_budgets import BudgetsSection
from denizen.app.settings.schema_commands import CommandName, CommandSection
from denizen.app.settings.schema_discord import ArchiveSection, DiscordSection
from denizen.app.settings.schema_folders import FoldersSection
from denizen.app.settings.schema_gate import GateSection
from denizen.app.settings.schema_github import GitHubSection
from denizen.app.settings.schema_history import Preset, StoringSection, SummariesSection
from denizen.app.settings.schema_knowledge import KnowledgeSection
from denizen.app.settings.schema_mcp import McpSection
from denizen.app.settings.schema_memory import EmbeddingsSection, MemorySection
from denizen.app.settings.schema_models import ModelsSection
from denizen.app.settings.schema_sandbox import SandboxSection
from denizen.app.settings.schema_skills import CustomToolSection, SkillName, ToolName, UserSkillSection
from denizen.domain.agent import (
    Agent,
    AnswersFrom,
    CitationFormat,
    ContextStrategy,
    ResponseStyle,
    SessionScope,
    TimestampPolicy,
    ToolPlanning,
    TurnLimits,
)
from denizen.domain.ids import AgentName
from denizen.domain.json import Json
from denizen.domain.principal import RoleName
from denizen.domain.routing import MAX_MULTIPLIER, MIN_MULTIPLIER
from denizen.domain.transcript import TranscriptBudget

_AGENT = Agent(AgentName(""))
_LIMITS = TurnLimits()
_TIMESTAMPS = TimestampPolicy()
_BUDGET = TranscriptBudget()
_ORIGIN = re.compile(r"https?://[A-Za-z0-9.-]+(?::\d+)?|https?://\[[0-9A-Fa-f:]+\](?::\d+)?")
_MILLION = 1_000_000
_DAY_S = 86_400


class StoreSection(Section):
    """`url` empty means `denizen.db` in the home folder."""

    url: StoreUrl = ""


class ApiKeySection(Section):
    name: Name
    key: Secret
    roles: tuple[RoleName, ...] = (RoleName.MEMBER,)

    @model_validator(mode="after")
    def _has_key(self) -> Self:
        if self.key is None or self.key.optional:
            raise refuse(
                "an API key must not be empty.", "Write key: ${DENIZEN_API_KEY}, without a default.", key="key"
            )
        return self


class ServerSection(Section):
    host: SomeText = "127.0.0.1"
    port: Whole = Field(default=8642, ge=0, le=65_535)
    api_keys: tuple[ApiKeySection, ...] = ()
    cors_origins: tuple[Text, ...] = ()

    @field_validator("cors_origins")
    @classmethod
    def _single_sites(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        for origin in origins:
            if not _ORIGIN.fullmatch(origin):
                fix = "Write each as scheme and host, such as https://chat.example.org, without a path or `*`."
                raise refuse("this is not the origin of one web site.", fix)
        return origins


class LimitsSection(Section):
    """Bounds of one turn (inventory, section 6)."""

    max_steps: Whole = Field(default=_LIMITS.max_steps, ge=1, le=100)
    max_steps_multiplier: Number = Field(
        default=_LIMITS.max_steps_multiplier,
        ge=MIN_MULTIPLIER,
        le=MAX_MULTIPLIER,
        description="By what the number of steps of a turn is multiplied, also where it is chosen for the question.",
    )
    max_history_tokens: Whole = Field(default=_LIMITS.max_history_tokens, ge=0, le=10 * _MILLION)
    max_history_messages: Whole = Field(default=_LIMITS.max_history_messages, ge=0, le=10_000)
    max_output_tokens: Whole = Field(default=_LIMITS.max_output_tokens, ge=1, le=_MILLION)
    max_tools: Whole = Field(default=_LIMITS.max_tools, ge=0, le=500)
    turn_timeout_s: Number = Field(default=_LIMITS.turn_timeout_s, ge=1, le=_DAY_S)
    nudges: Whole = Field(default=_LIMITS.nudges, ge=0, le=10)
    nudge_text: Text = _LIMITS.nudge_text


class SamplingSection(Section):
    """Unset leaves the choice to the provider."""

    temperature: Number | None = Field(default=None, ge=0, le=2)
    top_p: Number | None = Field(default=None, ge=0, le=1)
    seed: Whole | None = Field(default=None, ge=0, le=2**31 - 1)


class StyleSection(Section):
    """How the agent writes (inventory 2.2)."""

    response: ResponseStyle = ResponseStyle.CONCISE
    language: Language = "en"
    citations: CitationFormat = CitationFormat.INLINE
    extra_instructions: Text = ""
    search_instructions: Text = ""


class TimestampsSection(Section):
    """Lines with the time in what the agent reads (inventory C13). In a transcript they are on top of its budget."""

    enabled: bool = Field(default=False, description="Whether a line with the time stands where talk has paused.")
    zone: Zone = Field(default=_TIMESTAMPS.zone, description="Time zone of these lines, such as Europe/Berlin.")
    gap_minutes: Number = Field(
        default=_TIMESTAMPS.gap_s / 60, ge=1, le=_DAY_S / 60, description="How long a pause is, at least."
    )


class TranscriptSection(Section):
    """What an agent with `context: transcript` reads. All sizes are estimated tokens."""

    budget_tokens: Whole = Field(
        default=_BUDGET.total,
        ge=1000,
        le=10 * _MILLION,
        description="How much of the talk is read at most; the guaranteed tail may pass it.",
    )
    tail_tokens: Whole = Field(
        default=_BUDGET.tail, ge=0, le=_MILLION, description="How much of the newest talk is read in any case."
    )
    block_tokens: Whole | None = Field(
        default=None,
        ge=100,
        le=_MILLION,
        description="How much closes a block of the talk, which then keeps its bytes for the provider's cache. Unset: "
        "a third of the budget less 10 000, at most 30 000.",
    )
    parent_share: Number = Field(
        default=_BUDGET.parent_share,
        ge=0,
        le=0.9,
        description="Share of the budget that a thread may use for its channel, as that was before the thread.",
    )
    system_prompt: bool = Field(
        default=False, description="Whether an agent without persona files gets the usual system prompt."
    )
    vertical: bool = Field(default=False, description="Whether each name stands on a line of its own above the words.")
    separate_blocks: bool = Field(
        default=False,
        description="Whether each closed block of the talk is a user message of its own. Where the provider's cache is "
        "marked it always is.",
    )
    turns: bool = Field(
        default=False,
        description="Whether what the agent said itself goes as assistant turns and the rest as user turns, in place "
        "of one transcript at whose end it goes on from its name.",
    )

    @model_validator(mode="after")
    def _blocks_fit(self) -> Self:
        if self.block_tokens is not None and self.block_tokens > self.budget_tokens:
            raise refuse("a block must fit the budget.", "Lower block_tokens.", key="block_tokens")
        return self


class AgentSection(Section):
    """`persona` names files below `agents/<name>/`; unset means the usual three, as far as they exist."""

    description: Text = ""
    persona: tuple[SomeText, ...] | None = None
    model: SomeText = "balanced"
    tools: tuple[SomeText, ...] = ("*",)
    pinned_tools: tuple[SomeText, ...] = Field(
        default=(),
        description="Names or patterns of tools that are in every prompt, when there are more than `limits.max_tools`. "
        "The others are chosen by what is asked, or looked up with the tool `find_tools`.",
    )
    context: ContextStrategy = Field(
        default=ContextStrategy.SESSION,
        description="What the agent reads of earlier talk: its own `session`, or the whole `transcript` of the room.",
    )
    transcript: TranscriptSection = Field(default_factory=TranscriptSection)
    planning: ToolPlanning = ToolPlanning.AUTO
    answers_from: AnswersFrom = Field(
        default=_AGENT.answers_from,
        description="What its answers may rest on: only what its knowledge files say (`sources`), or `anything` it "
        "knows. The former tells it to search, read and cite them, and to say so where they say nothing; it needs a "
        "tool that reads them.",
    )
    preset: Preset | None = Field(
        default=None,
        description="`small` suits a small model on one's own machine: 2000 tokens and 10 messages of history, 5 "
        "tools, planning before acting, temperature 0.3; of a session the newest 100 messages are kept, and cut. Keys "
        "that are written count before it. It is never chosen by itself, since it lets go of what was said.",
    )
    summaries: SummariesSection = Field(default_factory=SummariesSection)
    storing: StoringSection = Field(default_factory=StoringSection)
    limits: LimitsSection = Field(default_factory=LimitsSection)
    sampling: SamplingSection = Field(default_factory=SamplingSection)
    style: StyleSection = Field(default_factory=StyleSection)
    session_scope: SessionScope = Field(
        default=_AGENT.session_scope,
        description="What one session spans on a platform: a `channel` with its threads, one `thread`, or one `user` "
        "in all rooms of a server, direct talks apart. With `user`, what was said to it in a room for few may come up "
        "in a room for many.",
    )
    recent_messages: Whole = Field(
        default=_AGENT.recent_messages,
        ge=0,
        le=100,
        description="How many messages of the talk around it are told to an agent that was not in it.",
    )
    timestamps: TimestampsSection = Field(default_factory=TimestampsSection)
    skip_global_context: bool = Field(
        default=False,
        description="Whether only the agent's own context files stand in its prompt, and not those of "
        "`folders.context`.",
    )
    reasoning: bool = Field(
        default=False, description="Whether a model that can be told to is to reason before it answers."
    )
    show_reasoning: bool = Field(
        default=False,
        description="Whether people are shown what the model reasoned: dimmed in a terminal, in front of the answer "
        "and hidden behind a click on Discord, as `reasoning_content` or events over HTTP. It is never sent to a model "
        "again as text.",
    )


class ChannelSection(Section):
    enabled: bool = True


class ChannelsSection(Section):
    terminal: ChannelSection = Field(default_factory=ChannelSection)
    web: ChannelSection = Field(default_factory=ChannelSection)
    api: ChannelSection = Field(default_factory=ChannelSection)
    mcp: ChannelSection = Field(default_factory=ChannelSection)
    discord: DiscordSection = Field(default_factory=DiscordSection)
    github: GitHubSection = Field(default_factory=GitHubSection)


class ToolSection(Section):
    """One skill. All keys but `enabled` are the skill's own; it checks them itself."""

    model_config = ConfigDict(extra="allow")

    enabled: bool | None = Field(
        default=None,
        description="Whether its tools exist. Unset: yes, unless it is one that has to be switched on, such as `files` "
        "and `system`.",
    )

    @property
    def options(self) -> dict[str, Json]:
        return dict(self.model_extra or {})


class LoggingSection(Section):
    """`file` is relative to the home folder; empty means standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["console", "json"] = "console"
    file: Text = ""


class Config(Section):
    """The whole file."""

    store: StoreSection = Field(default_factory=StoreSection)
    server: ServerSection = Field(default_factory=ServerSection)
    models: ModelsSection = Field(default_factory=ModelsSection)
    agents: dict[AgentNameText, AgentSection] = Field(default_factory=dict[str, AgentSection])
    default_agent: Text = ""
    channels: ChannelsSection = Field(default_factory=ChannelsSection)
    archive: ArchiveSection = Field(default_factory=ArchiveSection)
    commands: dict[CommandName, CommandSection] = Field(default_factory=dict[str, CommandSection])
    tools: dict[str, ToolSection] = Field(default_factory=dict[str, ToolSection])
    skills: dict[SkillName, UserSkillSection] = Field(
        default_factory=dict[str, UserSkillSection],
        description="Your own skills, by the names of their folders. `denizen skill enable` writes here.",
    )
    custom_tools: dict[ToolName, CustomToolSection] = Field(
        default_factory=dict[str, CustomToolSection], description="Programs as tools of agents, by name."
    )
    mcp: McpSection = Field(default_factory=McpSection)
    gate: GateSection = Field(default_factory=GateSection)
    budgets: BudgetsSection = Field(default_factory=BudgetsSection)
    folders: FoldersSection = Field(default_factory=FoldersSection)
    knowledge: KnowledgeSection = Field(default_factory=KnowledgeSection)
    sandbox: SandboxSection = Field(default_factory=SandboxSection)
    memory: MemorySection = Field(default_factory=MemorySection)
    embeddings: EmbeddingsSection = Field(default_factory=EmbeddingsSection)
    logging: LoggingSection = Field(default_factory=LoggingSection)
