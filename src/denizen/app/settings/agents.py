"""The section `agents`: its keys, the presets, and the `Agent` record that the engine works with.

A new key is a field of a section here and a field of the same name in one record of `denizen.domain.agent`;
`build_agent` copies by name. The description of a field is its text in `docs/reference/configuration.md`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Self, TypeVar

from pydantic import ConfigDict, Field, ValidationError, model_validator

from denizen.app.settings.fields import (
    Language,
    Number,
    Section,
    SomeText,
    Text,
    Whole,
    Zone,
    copy_fields,
    default_section,
    refuse,
)
from denizen.app.settings.hooks import HooksSection
from denizen.app.settings.problem import ConfigProblem
from denizen.app.settings.yaml_document import ConfigDocument
from denizen.domain.agent import (
    Agent,
    AgentInstructions,
    AnswersFrom,
    CitationFormat,
    ContextStrategy,
    HistorySettings,
    LookUp,
    ResponseStyle,
    SamplingSettings,
    SessionScope,
    StoragePolicy,
    SummaryPolicy,
    TimestampPolicy,
    ToolAccess,
    ToolPlanning,
    TranscriptLayout,
    TurnLimits,
    WritingStyle,
)
from denizen.domain.ids import AgentName
from denizen.domain.routing import AUTO, MAX_MULTIPLIER, MIN_MULTIPLIER, USUAL
from denizen.domain.transcript import TranscriptBudget

# The defaults live in the domain records, so that code and configuration cannot disagree.
_AGENT = Agent(AgentName(""))
_LIMITS = TurnLimits()
_TIMESTAMPS = TimestampPolicy()
_BUDGET = TranscriptBudget()
_SUMMARIES = SummaryPolicy()
_STORING = StoragePolicy()
_MILLION = 1_000_000
_DAY_S = 86_400

SectionT = TypeVar("SectionT", bound=Section)


class AgentPreset(StrEnum):
    """A named set of values for an agent. Keys that are written take precedence over it."""

    SMALL = "small"


class LimitsSection(Section):
    """The bounds of one turn."""

    max_steps: Whole = Field(default=_LIMITS.max_steps, ge=1, le=100, description="Model requests in one turn.")
    max_steps_multiplier: Number = Field(
        default=_LIMITS.max_steps_multiplier,
        ge=MIN_MULTIPLIER,
        le=MAX_MULTIPLIER,
        description="Multiplies the number of steps of a turn, also where that is chosen for the question.",
    )
    max_history_tokens: Whole = Field(
        default=_LIMITS.max_history_tokens, ge=0, le=10 * _MILLION, description="Tokens of history in a prompt."
    )
    max_history_messages: Whole = Field(
        default=_LIMITS.max_history_messages, ge=0, le=10_000, description="Messages of history in a prompt."
    )
    max_output_tokens: Whole = Field(
        default=_LIMITS.max_output_tokens, ge=1, le=_MILLION, description="Tokens of one answer."
    )
    max_tools: Whole = Field(default=_LIMITS.max_tools, ge=0, le=500, description="Tools offered to the model.")
    turn_timeout_s: Number = Field(
        default=_LIMITS.turn_timeout_s, ge=1, le=_DAY_S, description="Seconds until a turn is given up."
    )
    nudges: Whole = Field(
        default=_LIMITS.nudges,
        ge=0,
        le=10,
        description="How often a model that talks instead of using its tools is reminded.",
    )
    nudge_text: Text = Field(default=_LIMITS.nudge_text, description="The words of the last reminder.")


class SamplingSection(Section):
    """The sampling parameters. A key that is unset leaves the choice to the provider."""

    temperature: Number | None = Field(
        default=None,
        ge=0,
        le=2,
        description="Unset: the provider decides, and 1 for an agent with `context: transcript` without `top_p`.",
    )
    top_p: Number | None = Field(default=None, ge=0, le=1, description="Unset: the provider decides.")
    seed: Whole | None = Field(default=None, ge=0, le=2**31 - 1, description="Unset: the provider decides.")


class StyleSection(Section):
    """The style in which the agent writes."""

    response: ResponseStyle = Field(default=ResponseStyle.CONCISE, description="How it writes.")
    language: Language = Field(default="en", description="Code of the language that it writes in.")
    citations: CitationFormat = Field(default=CitationFormat.INLINE, description="How it names sources.")
    extra_instructions: Text = Field(default="", description="Added to its instructions.")
    search_instructions: Text = Field(default="", description="Added to the rules for using tools.")


class TimestampsSection(Section):
    """Lines with the time in what the agent reads. In a transcript they are on top of its budget."""

    enabled: bool = Field(default=False, description="Whether a line with the time stands where talk has paused.")
    zone: Zone = Field(default=_TIMESTAMPS.zone, description="Time zone of these lines, such as Europe/Berlin.")
    gap_minutes: Number = Field(
        default=_TIMESTAMPS.gap_s / 60, ge=1, le=_DAY_S / 60, description="How long a pause is, at least."
    )

    @property
    def record(self) -> TimestampPolicy | None:
        return TimestampPolicy(self.zone, self.gap_minutes * 60) if self.enabled else None


class TranscriptSection(Section):
    """The transcript that an agent with `context: transcript` reads. All sizes are estimated tokens."""

    budget_tokens: Whole = Field(
        default=_BUDGET.total,
        ge=1000,
        le=10 * _MILLION,
        description="How much of the talk is read at most. The guaranteed tail may exceed it.",
    )
    tail_tokens: Whole = Field(
        default=_BUDGET.tail, ge=0, le=_MILLION, description="How much of the newest talk is read in any case."
    )
    block_tokens: Whole | None = Field(
        default=None,
        ge=100,
        le=_MILLION,
        description="The size at which a block of the talk is closed; it then keeps its bytes for the provider's "
        "cache. Unset: a third of the budget less 10 000, at most 30 000.",
    )
    parent_share: Number = Field(
        default=_BUDGET.parent_share,
        ge=0,
        le=0.9,
        description="Share of the budget that a thread may use for its channel, as that was before the thread.",
    )
    max_messages: Whole = Field(
        default=_BUDGET.messages,
        ge=0,
        le=10_000,
        description="How many messages are read at most, besides the budget; 0: as many as fit. The oldest blocks "
        "leave whole.",
    )
    system_prompt: bool = Field(
        default=False, description="Whether an agent without persona files gets the usual system prompt."
    )
    vertical: bool = Field(default=False, description="Whether each name stands on a line of its own above the words.")
    separate_blocks: bool = Field(
        default=False,
        description="Whether each closed block of the talk is a user message of its own. It always is where the "
        "provider's cache has explicit marks.",
    )
    turns: bool = Field(
        default=False,
        description="Whether what the agent said itself is sent as assistant turns and the rest as user turns. If not: "
        "one transcript, which the agent continues after its name.",
    )

    @model_validator(mode="after")
    def _blocks_fit(self) -> Self:
        if self.block_tokens is not None and self.block_tokens > self.budget_tokens:
            raise refuse("a block must fit the budget.", "Lower block_tokens.", key="block_tokens")
        return self

    @property
    def budget(self) -> TranscriptBudget:
        return TranscriptBudget(
            total=self.budget_tokens,
            tail=self.tail_tokens,
            block=self.block_tokens,
            parent_share=self.parent_share,
            messages=self.max_messages,
        )


class SummariesSection(Section):
    """When the oldest part of a session is summarized in the background, so that it is not forgotten when the history
    is full. No reply waits for it. The messages stay, and the agent can read them word for word.
    """

    enabled: bool | None = Field(
        default=_SUMMARIES.enabled,
        description="Whether sessions are summarized, by the model alias `cheap` or else the agent's own model. Each "
        "message is then read once more by that model, and budgets apply. Unset: yes, but not by a small model, whose "
        "next answer would have to wait. `false` drops the oldest messages from the prompt silently.",
    )
    start_at: Number = Field(
        default=_SUMMARIES.start_at,
        ge=0.1,
        le=1,
        description="The share of `limits.max_history_tokens`, or of `limits.max_history_messages`, above which the "
        "oldest part is summarized.",
    )
    keep: Number = Field(
        default=_SUMMARIES.keep,
        ge=0,
        le=0.9,
        description="The share that stays word for word; at least the last exchange.",
    )

    @model_validator(mode="after")
    def _leaves_something(self) -> Self:
        if self.keep >= self.start_at:
            raise refuse("nothing would be left to summarize.", "Make keep smaller than start_at.", key="keep")
        return self


class StoringSection(Section):
    """The limits of what is stored of a session. 0 is no bound. What is cut is gone for good, also from `denizen
    trace`.
    """

    max_messages: Whole = Field(
        default=_STORING.max_messages,
        ge=0,
        le=1_000_000,
        description="How many messages of a session are kept: the newest. Older ones are emptied at the end of a turn.",
    )
    user_chars: Whole = Field(
        default=_STORING.user_chars, ge=0, le=10_000_000, description="How much of a user's message is kept and read."
    )
    agent_chars: Whole = Field(
        default=_STORING.agent_chars,
        ge=0,
        le=10_000_000,
        description="How much of an answer is kept. It is sent whole.",
    )
    tool_chars: Whole = Field(
        default=_STORING.tool_chars,
        ge=0,
        le=10_000_000,
        description="How much of a tool's result is kept. In its own turn it is read whole.",
    )
    prompt_tool_chars: Whole = Field(
        default=_STORING.prompt_tool_chars,
        ge=0,
        le=10_000_000,
        description="How much of a tool's result the model reads in later turns.",
    )


MODEL_CHAIN = " > "
"""Stands between the models in the name of a list of them. No alias that people write has it."""


class AgentSection(Section):
    """One agent. `persona` names files below `agents/<name>/`; unset means the usual three, as far as they exist."""

    description: Text = Field(default="", description="One sentence, shown in lists.")
    enabled: bool = Field(
        default=_AGENT.enabled,
        description="Whether it answers. One that is off is refused wherever it is asked, and gets no tasks; what it "
        "knows stays.",
    )
    persona: tuple[SomeText, ...] | None = Field(
        default=None,
        description="Files of the persona, in prompt order; unset: `IDENTITY.md`, `SOUL.md`, `RULES.md`, as far as "
        "they exist.",
    )
    model: SomeText = Field(
        default="balanced",
        description="An alias, or `provider/model`; `auto` chooses among `fast`, `balanced` and `quality` for each "
        "question.",
    )
    fallbacks: tuple[SomeText, ...] = Field(
        default=(),
        description="Models to try when that one cannot answer, in order: aliases, or `provider/model`. Those of "
        "`agent_defaults` hold for agents without a `model` of their own.",
    )
    tools: tuple[SomeText, ...] = Field(
        default=("*",),
        description="Names or patterns of the tools it may use, in the order of preference. Tools that could do great "
        "harm, such as `exec`, are given by their full name only.",
    )
    pinned_tools: tuple[SomeText, ...] = Field(
        default=(),
        description="Names or patterns of tools that are in every prompt when there are more than `limits.max_tools`. "
        "The others are chosen by the question, or found with the tool `find_tools`.",
    )
    delegates_to: tuple[SomeText, ...] = Field(
        default=(),
        description="Agents that it may give tasks to, with the tools `delegate`, `task_status`, `cancel_task` and "
        "`hand_over`. They work with their own tools and knowledge, for the one who asked, and give nothing on. What "
        "they find reaches everybody who may ask this agent.",
    )
    context: ContextStrategy = Field(
        default=ContextStrategy.SESSION,
        description="What the agent reads of earlier talk: its own `session`, or the whole `transcript` of the "
        "channel.",
    )
    transcript: TranscriptSection = default_section()
    planning: ToolPlanning = Field(
        default=ToolPlanning.AUTO,
        description="How it reaches tools: by native calls, by a plan, or as the model needs it.",
    )
    plan_temperature: Number = Field(
        default=_AGENT.tool_access.plan_temperature,
        ge=0,
        le=2,
        description="The temperature of plans; that of answers is `sampling.temperature`.",
    )
    look_up: LookUp = Field(
        default=LookUp.AUTO,
        description="Whether its documents are searched for the question before the model is asked, and on a platform "
        "the archive for questions about what was said, so that what fits is there from the start: `always`, `never`, "
        "or `auto` for agents that plan and for small models.",
    )
    answers_from: AnswersFrom = Field(
        default=_AGENT.instructions.answers_from,
        description="What its answers may rest on: only what its knowledge files say (`sources`), or `anything` it "
        "knows. `sources` tells it to search, read and cite them, and to say so where they say nothing; it needs a "
        "tool that reads them.",
    )
    preset: AgentPreset | None = Field(
        default=None,
        description="`small` suits a small model on one's own machine: 2000 tokens and 10 messages of history, 5 "
        "tools, planning before acting, temperature 0.3; the newest 100 messages of a session are kept, and long ones "
        "are cut. Keys that are written take precedence. It is never chosen automatically, since it discards history.",
    )
    summaries: SummariesSection = default_section()
    storing: StoringSection = default_section()
    limits: LimitsSection = default_section()
    sampling: SamplingSection = default_section()
    style: StyleSection = default_section()
    session_scope: SessionScope = Field(
        default=_AGENT.history.session_scope,
        description="What one session spans on a platform: a `channel` with its threads, one `thread`, or one `user` "
        "in all channels of a server, direct messages apart. With `user`, what was said to it in a private channel may "
        "come up in a public one.",
    )
    recent_messages: Whole = Field(
        default=_AGENT.history.recent_messages,
        ge=0,
        le=100,
        description="How many recent messages around a question are shown to an agent that took no part in them.",
    )
    timestamps: TimestampsSection = default_section()
    skip_global_context: bool = Field(
        default=False,
        description="Whether the prompt has only the agent's own context files, without those of `folders.context`.",
    )
    reasoning: bool = Field(
        default=False, description="Whether the model reasons before it answers, if it can be told to."
    )
    show_reasoning: bool = Field(
        default=False,
        description="Whether people see the model's reasoning: dimmed in a terminal, in front of the answer and behind "
        "a spoiler on Discord, as `reasoning_content` or events over HTTP. It is never sent to a model again as text.",
    )
    hooks: HooksSection = default_section()

    @property
    def model_name(self) -> str:
        """The model by its name; several by a name that lists them, which is an alias of its own."""
        return MODEL_CHAIN.join((self.model, *self.fallbacks))

    @model_validator(mode="after")
    def _has_a_first_model(self) -> Self:
        if self.fallbacks and self.model == AUTO:
            fix = "Name a model, or give fallbacks to the aliases that are chosen among, under models.aliases."
            raise refuse("a model that is chosen for each question has no fallbacks here.", fix, key="fallbacks")
        return self


def _hide_keys(schema: dict[str, Any]) -> None:
    del schema["properties"]


class AgentDefaultsSection(AgentSection):
    """Keys of an agent that hold for all of them. The reference shows them at the agents, and a listing of the
    configuration only those that are set.
    """

    model_config = ConfigDict(json_schema_extra=_hide_keys)

    @property
    def foreign_keys(self) -> frozenset[str]:
        return frozenset(type(self).model_fields) - self.model_fields_set


PRESETS: Mapping[AgentPreset, Mapping[str, object]] = {
    # For models of a few billion parameters on one's own machine.
    AgentPreset.SMALL: {
        "planning": ToolPlanning.PLAN,
        "limits": {"max_history_tokens": 2000, "max_history_messages": 10, "max_tools": 5},
        "sampling": {"temperature": 0.3},
        "storing": {
            "max_messages": 100,
            "user_chars": 1000,
            "agent_chars": 2000,
            "tool_chars": 1000,
            "prompt_tool_chars": 200,
        },
    }
}


_PARTICIPANT = {"sampling": {"temperature": 1}}
"""Sent, and not left to the provider: some have another default, at which talk among several gets dull."""


def fill_agent(section: AgentSection, defaults: AgentSection) -> AgentSection:
    """Returns the section with what it does not say itself: the values of its preset, then those of all agents, and a
    participant's temperature. An agent with a model of its own has no fallbacks of another's.
    """
    filled = _fill(_apply_preset(section), _apply_preset(defaults))
    if "model" in section.model_fields_set:
        filled = filled.model_copy(update={"fallbacks": section.fallbacks})
    sampling = filled.sampling
    # Some models refuse a temperature beside `top_p`.
    is_open = sampling.temperature is None and sampling.top_p is None
    if is_open and filled.context is ContextStrategy.TRANSCRIPT:
        return _fill(filled, AgentSection.model_validate(_PARTICIPANT))
    return filled


def _apply_preset(section: AgentSection) -> AgentSection:
    return section if section.preset is None else _fill(section, AgentSection.model_validate(PRESETS[section.preset]))


def _fill(own: SectionT, preset: SectionT) -> SectionT:
    values: dict[str, object] = {}
    for name in preset.model_fields_set:
        mine, theirs = getattr(own, name), getattr(preset, name)
        if name not in own.model_fields_set:
            values[name] = theirs
        elif isinstance(mine, Section):
            values[name] = _fill(mine, theirs)
    return own.model_copy(update=values)


def find_default_conflicts(
    document: ConfigDocument, agents: Mapping[str, AgentSection], defaults: AgentSection
) -> Iterator[ConfigProblem]:
    """Yields the values of agents that do not fit those that they take over from `agent_defaults`."""
    for name, section in agents.items() if defaults.model_fields_set else ():
        for key in ("transcript", "summaries"):
            part: Section = getattr(section, key)
            try:
                type(part).model_validate(part.model_dump())
            except ValidationError as error:
                context = error.errors()[0].get("ctx", {})
                path = ("agents", name, key, str(context["key"]))
                yield document.problem(path, f"with agent_defaults, {context['message']}", str(context["fix"]))


def build_agent(
    name: str,
    section: AgentSection,
    *,
    persona: tuple[tuple[str, str], ...] = (),
    context_files: tuple[tuple[str, str], ...] = (),
    core_memory: str = "",
    plan_texts: tuple[str, str] = ("", ""),
) -> Agent:
    """Builds the record that the engine works with. Each part takes the keys that have the names of its fields; the
    texts come from files, and only what differs in form is written out here. `plan_texts` are for planning and for
    answering.
    """
    instructions = copy_fields(
        section,
        AgentInstructions,
        persona=persona,
        context_files=context_files,
        core_memory=core_memory,
        style=copy_fields(section.style, WritingStyle),
        planner=plan_texts[0],
        answer=plan_texts[1],
    )
    history = copy_fields(
        section,
        HistorySettings,
        transcript=section.transcript.budget,
        layout=copy_fields(section.transcript, TranscriptLayout),
        timestamps=section.timestamps.record,
        summaries=copy_fields(section.summaries, SummaryPolicy),
        storing=copy_fields(section.storing, StoragePolicy),
    )
    return copy_fields(
        section,
        Agent,
        name=AgentName(name),
        model=USUAL if section.model == AUTO else section.model_name,
        is_routed=section.model == AUTO,
        limits=copy_fields(section.limits, TurnLimits),
        sampling=copy_fields(section.sampling, SamplingSettings),
        instructions=instructions,
        history=history,
        tool_access=copy_fields(section, ToolAccess, delegates_to=tuple(map(AgentName, section.delegates_to))),
        hooks=section.hooks.record,
    )
