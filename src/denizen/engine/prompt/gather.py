"""Step 4 of a turn: its prompt is put together from the agent as configured now, the talk before, and the question.

The taint that the turn begins with is found here too; `steps.py` adds what it reads later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from denizen.domain.agent import Agent, AnswersFrom, ContextStrategy, SamplingSettings
from denizen.domain.errors import NeedsAttention
from denizen.domain.ids import AgentName
from denizen.domain.impersonation import SpeakerNames
from denizen.domain.message import Role, join_text
from denizen.domain.prompt import PromptMessage, Segment, Stability, estimate_tokens, order_segments
from denizen.domain.prompt_messages import agent_timezone, count_tokens, date_line, tells_date, to_prompt_messages
from denizen.domain.routing import Route, list_turn_times
from denizen.domain.speaker_choice import SILENCE
from denizen.domain.taint import find_part_taint, find_prompt_taint
from denizen.domain.tool import Taint
from denizen.domain.turn import Turn
from denizen.engine.configuration.generation import Generation
from denizen.engine.intake.opening import OpenTurn
from denizen.engine.memory.keeper import MemoryKeeper
from denizen.engine.prompt.caching import SHORT_S, pauses_between, plan_keep_s
from denizen.engine.prompt.notes import (
    insert_notes_before_cue,
    load_answers,
    load_memories,
    load_subject_note,
    load_surroundings,
)
from denizen.engine.prompt.participant_prompt import ParticipantTurn, load_transcript
from denizen.engine.prompt.pictures import limit_pictures
from denizen.engine.prompt.room_transcript import BlockTextCache
from denizen.engine.prompt.session_history import HistoryCutoff, Range, TokenBudget, load_history
from denizen.engine.prompt.system_prompt import (
    assemble_participant_prompt,
    assemble_system_prompt,
    plan_task,
    source_rules,
    transient_note,
)
from denizen.engine.tools.toolbox import count_most_tokens, list_allowed, uses_planning
from denizen.ports.model import Model
from denizen.ports.store import Store
from denizen.ports.toolset import CallScope

STORED_LIMIT = 500
"""So many messages of a session are looked at for what a summary or a transcript no longer shows."""

_FORWARDED = "[forwarded message:"
_QUOTING = ("[in reply to ", "[pressed a button", "[chose, under your message ")
"""Marks in a question of somebody else's words (`adapters/discord/wording`, `engine/listener/interactions`)."""


async def load_foreign(
    store: Store, opened: OpenTurn, messages: Sequence[PromptMessage], *, is_transcript: bool
) -> frozenset[Taint]:
    """`messages` are all that the model is sent. In transcripts and summaries nobody sees any more who wrote what, and
    from which texts an answer was made; the messages of the session still tell.
    """
    asker = opened.trigger.author.id
    taint = find_prompt_taint(messages, asker) | find_part_taint(opened.trigger.parts)
    if "supplied" in opened.turn.options and any(message.role is Role.TOOL for message in messages):
        taint |= {Taint.TOOL}
    if _quotes_others(opened, messages) or (is_transcript and _is_shared(opened)):
        taint |= {Taint.OTHERS}
    has_summary = any(message.kind == "summary" for message in messages)
    if has_summary or is_transcript:
        async with store.work(write=False) as work:
            stored = await work.messages.list_tail(opened.turn.session_id, limit=STORED_LIMIT)
        taint |= find_prompt_taint(to_prompt_messages(stored), asker)
        if has_summary and len(stored) == STORED_LIMIT:
            taint |= {Taint.TOOL}  # what else went into it is not known
    return taint


def _quotes_others(opened: OpenTurn, messages: Sequence[PromptMessage]) -> bool:
    """Now, or in a question of before, which may have got no answer that would tell. In a direct talk a quotation is of
    the asker or of the agent.
    """
    owed = opened.owed
    is_merged = owed is not None and len(owed.answers) > 1
    marks = (_FORWARDED, *_QUOTING) if _is_shared(opened) else (_FORWARDED,)
    said = (join_text(message.parts) for message in messages if message.role is Role.USER)
    return is_merged or any(mark in text for text in (opened.trigger.text, *said) for mark in marks)


def _is_shared(opened: OpenTurn) -> bool:
    return bool(opened.trigger.meta.get("speaker")) or (opened.owed is not None and bool(opened.owed.guild))


SILENCE_NOTE = (
    "Nobody waits for you here. Speak only if it adds something; "
    f"otherwise answer with exactly {SILENCE} and nothing else."
)
"""For a turn that may end without a word."""


@dataclass(frozen=True, slots=True)
class TurnContext:
    """The context of a turn, fixed when it begins: one generation, one agent, one model."""

    turn: Turn
    generation: Generation
    agent: Agent
    model: Model
    scope: CallScope
    segments: tuple[Segment, ...]
    question: str
    max_output_tokens: int
    sampling: SamplingSettings
    voice: SpeakerNames | None = None
    """Set for a participant, which is kept from speaking for others."""
    notes: tuple[PromptMessage, ...] = ()
    """Notes that only this turn shows (`prompt/notes`); those of a participant stand in its transcript already."""
    keep_s: float = SHORT_S
    """How long its conversation is worth keeping in a provider's cache (`prompt/rhythm`)."""
    overdue: tuple[int, int] | None = None
    """The stretch of its session that should be summed up when it is over (`summaries.py`)."""
    memories: tuple[str, ...] = ()
    """Ids of those that came up unasked; they stand in the notes."""


@dataclass(frozen=True, slots=True)
class _Case:
    """The facts known before anything is loaded. `is_supplied`: the client sent the history along, so none is kept
    here.
    """

    opened: OpenTurn
    generation: Generation
    agent: Agent
    model: Model
    is_supplied: bool

    @property
    def options(self) -> Mapping[str, Any]:
        return cast("Mapping[str, Any]", self.opened.turn.options)

    @property
    def plans(self) -> bool:
        return uses_planning(self.agent.planning, self.model.capabilities)

    @property
    def tool_rules(self) -> bool:
        return not self.plans and self.model.capabilities.takes_tools

    @property
    def reads_transcript(self) -> bool:
        return self.agent.context is ContextStrategy.TRANSCRIPT and not self.is_supplied

    @property
    def today(self) -> str:
        return date_line(self.opened.turn.opened_at, agent_timezone(self.agent))


@dataclass(frozen=True, slots=True)
class _Said:
    """The messages before, then the message to answer; `notes` stand behind it for this turn alone."""

    messages: list[PromptMessage]
    notes: list[PromptMessage]
    pauses_s: Sequence[float]
    voice: SpeakerNames | None = None
    overdue: Range | None = None


async def gather_context(
    store: Store,
    opened: OpenTurn,
    generation: Generation,
    past: HistoryCutoff | None = None,
    *,
    texts: BlockTextCache | None = None,
    keeper: MemoryKeeper | None = None,
) -> tuple[TurnContext, list[PromptMessage]]:
    """Gathers the turn's context and its messages, of which the last is the one to answer. `texts` are the blocks of
    transcripts that were read before; `keeper` is asked for what is remembered.
    """
    turn = opened.turn
    agent = _sized(generation.agent(turn.agent), turn.route)
    model = generation.models.get(choose_model_name(turn, agent))
    case = _Case(opened, generation, agent, model, "supplied" in turn.options)
    reminded = await load_memories(keeper, opened, generation.knowledge.recall)
    notes = [*reminded.notes, *await _load_notes(store, case)]
    segments = await _load_segments(case)
    room, max_output = await _plan_room(case, segments)
    if case.reads_transcript:
        said = await _read_transcript(store, case, notes, room, texts or BlockTextCache(), is_over=past is not None)
    else:
        said = await _read_session(store, case, notes, room, past)
    question = join_text(opened.trigger.parts)
    foreign = [*said.messages, *said.notes]
    taint = await load_foreign(store, opened, foreign, is_transcript=case.reads_transcript)
    scope = CallScope(
        agent=agent.name,
        principal=turn.principal,
        place=opened.place,
        session_id=turn.session_id,
        turn_id=turn.id,
        account=_account_of(opened, agent),
        taint=taint,
        guild=opened.owed.guild if opened.owed else "",
        question=question,
    )
    context = TurnContext(
        turn,
        generation,
        agent,
        model,
        scope,
        segments,
        question,
        max_output,
        _sampling_of(agent, case.options),
        said.voice,
        tuple(said.notes),
        plan_keep_s(said.pauses_s),
        said.overdue,
        reminded.memories,
    )
    return context, said.messages


def choose_model_name(turn: Turn, agent: Agent) -> str:
    """By name: what was asked for goes before what was chosen for the question."""
    return str(turn.options.get("model") or (turn.route.model if turn.route else agent.model))


def _sized(agent: Agent, route: Route | None) -> Agent:
    """With the steps of this turn in place of the usual ones."""
    steps = route.max_steps if route else agent.limits.steps
    return replace(agent, limits=replace(agent.limits, max_steps=steps, max_steps_multiplier=1.0))


async def _load_segments(case: _Case) -> tuple[Segment, ...]:
    """The system prompt. Where the client keeps the history, the date stands in it and not behind a message."""
    assembled = assemble_participant_prompt if case.reads_transcript else assemble_system_prompt
    instructions = str(case.options.get("instructions", ""))
    sources = await _source_rules(case.agent, case.generation, is_short=case.plans or _is_public(case.opened))
    segments = assembled(case.agent, tool_rules=case.tool_rules, instructions=instructions, sources=sources)
    if case.is_supplied:
        return order_segments([*segments, Segment("date", case.today, Stability.TURN)])
    return segments


async def _source_rules(agent: Agent, generation: Generation, *, is_short: bool) -> str:
    if agent.answers_from is AnswersFrom.ANYTHING:
        return ""
    return source_rules(agent, await list_allowed(agent, generation.toolsets), is_short=is_short)


def _is_public(opened: OpenTurn) -> bool:
    """Whether others read along on a platform."""
    return opened.owed is not None and bool(opened.trigger.meta.get("speaker"))


def _account_of(opened: OpenTurn, agent: Agent) -> AgentName | None:
    """Whose login acts for tools; nobody's for a question of several people, who may not all do the same."""
    if opened.owed is None:
        return agent.name
    return None if opened.owed.of_several else opened.owed.account


def _sampling_of(agent: Agent, options: Mapping[str, Any]) -> SamplingSettings:
    temperature = options.get("temperature")
    return agent.sampling if temperature is None else replace(agent.sampling, temperature=float(temperature))


async def _plan_room(case: _Case, segments: Sequence[Segment]) -> tuple[int, int]:
    """The tokens that are left for history when system prompt, tools and the answer have theirs, and
    those for the answer, which takes at most half of what it shares with the history. Raises NeedsAttention when the
    model cannot even read what stands in every prompt.
    """
    agent, model = case.agent, case.model
    most = min(agent.limits.max_output_tokens, model.capabilities.max_output_tokens or agent.limits.max_output_tokens)
    max_output = min(int(case.options.get("max_output_tokens") or most), most)
    window, prompt = model.capabilities.context_tokens, sum(estimate_tokens(s.text) for s in segments)
    tools = 0
    if not case.plans:  # where plans are made, tools stand in no other prompt
        tools = await count_most_tokens(agent, case.generation.toolsets)
    free = window - prompt - tools
    if free <= 0:
        raise NeedsAttention(
            f"The instructions of {agent.name} are longer than what its model can read.",
            code="prompt_too_large",
            why=f"System prompt {prompt}, tools {tools}, and {model.name} reads {window} tokens (estimated).",
            fix="Shorten the agent's files, lower its limits.max_tools, or give it a model that reads more.",
        )
    max_output = min(max_output, max(free // 2, 1))
    return free - max_output, max_output


async def _load_notes(store: Store, case: _Case) -> list[PromptMessage]:
    opened = case.opened
    notes = list(await load_subject_note(store, opened))
    if opened.owed and opened.owed.may_be_silent:
        notes.append(transient_note(SILENCE_NOTE))
    return [*notes, *plan_task(case.agent, opened.turn.route, tool_rules=case.tool_rules)]


async def _read_transcript(
    store: Store, case: _Case, notes: list[PromptMessage], room: int, texts: BlockTextCache, *, is_over: bool
) -> _Said:
    """For participants: the whole room as one text, in which the notes stand before the cue to speak."""
    scene = _scene(case, room - sum(map(count_tokens, notes)), is_over=is_over)
    history, voice, pauses_s = await load_transcript(store, scene, texts)
    dated = [transient_note(case.today, "date")] if case.agent.persona else []
    return _Said(insert_notes_before_cue(history, [*notes, *dated]), [], pauses_s, voice)


def _scene(case: _Case, room: int, *, is_over: bool) -> ParticipantTurn:
    opened, generation = case.opened, case.generation
    agent, owed = generation.agent(opened.turn.agent), opened.owed
    return ParticipantTurn(
        opened.turn,
        opened.trigger,
        opened.place,
        owed,
        agent,
        tuple(generation.agents.values()),
        is_archived=generation.archive.enabled and owed is not None,
        room_tokens=room,
        can=case.model.capabilities,
        is_over=is_over,
    )


async def _read_session(
    store: Store, case: _Case, notes: list[PromptMessage], room: int, past: HistoryCutoff | None
) -> _Said:
    """For assistants: the messages of the session that fit, the date where no message tells it yet."""
    notes = [*notes, *await _load_around(store, case.opened, case.agent)]
    left = TokenBudget(room, sum(map(count_tokens, notes)))
    found = await load_history(store, case.opened, case.agent, left, past)
    history = limit_pictures(found.messages) if case.model.capabilities.image_output else found.messages
    if not case.is_supplied and not any(tells_date(message, case.today) for message in history):
        notes.append(transient_note(case.today, "date"))
    pauses_s = pauses_between(list_turn_times(found.read, case.opened.turn.route))
    return _Said(history, notes, pauses_s, overdue=found.overdue)


async def _load_around(store: Store, opened: OpenTurn, agent: Agent) -> list[PromptMessage]:
    """Loads what others said just before, for an agent that was not in the talk."""
    owed, trigger = opened.owed, opened.trigger
    if owed is None or not (owed.reply_to and trigger.meta.get("speaker") and agent.recent_messages):
        return []
    name, limit = opened.turn.agent, agent.recent_messages
    before = await load_surroundings(store, name, opened.place, trigger, before=owed.reply_to, limit=limit)
    return [*before, *await load_answers(store, owed, opened.place, limit=limit)]
