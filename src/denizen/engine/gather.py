"""Step 4 of a turn: the agent as configured now, what was said before, and the model for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from denizen.domain.agent import Agent, AnswersFrom, ContextStrategy, Sampling
from denizen.domain.errors import NeedsAttention
from denizen.domain.guard import Voice
from denizen.domain.ids import AgentName
from denizen.domain.message import text_of
from denizen.domain.prompt import PromptMessage, Segment, Stability, estimate_tokens, order_segments
from denizen.domain.routing import Route
from denizen.domain.speaker_choice import SILENCE
from denizen.domain.turn import Turn
from denizen.engine.foreign import load_foreign
from denizen.engine.history import Past, Range, Room, load_history
from denizen.engine.kept_route import turns_on
from denizen.engine.memory import MemoryKeeper
from denizen.engine.opening import Opened
from denizen.engine.planning import uses_planning
from denizen.engine.prompt.assemble import assemble, assemble_participant, passing
from denizen.engine.prompt.marks import date_line, tells, zone_of
from denizen.engine.prompt.notes import before_cue
from denizen.engine.prompt.pictures import with_pictures
from denizen.engine.prompt.rhythm import pauses_between, plan_keep_s
from denizen.engine.prompt.session import count_tokens
from denizen.engine.prompt.sources import source_rules
from denizen.engine.prompt.surroundings import load_answers, load_surroundings
from denizen.engine.prompt.task import plan_task
from denizen.engine.prompt.transcript.blocks import BlockTexts
from denizen.engine.prompt.transcript.load import Scene, load_transcript
from denizen.engine.remembering import load_reminders
from denizen.engine.runtime import Generation
from denizen.engine.services import TurnContext
from denizen.engine.subject import load_subject_note
from denizen.engine.toolbox import allowed, count_most_tokens
from denizen.ports.model import Model
from denizen.ports.store import Store
from denizen.ports.toolset import CallScope

SILENCE_NOTE = (
    "Nobody waits for you here. Speak only if it adds something; "
    f"otherwise answer with exactly {SILENCE} and nothing else."
)
"""For a turn that may end without a word."""


@dataclass(frozen=True, slots=True)
class _Case:
    """What is known before anything is read. `is_supplied`: the client sent the history along, so none is kept here."""

    opened: Opened
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
        return date_line(self.opened.turn.opened_at, zone_of(self.agent))


@dataclass(frozen=True, slots=True)
class _Said:
    """What was said before, then the message to answer; `notes` stand behind it for this turn alone."""

    messages: list[PromptMessage]
    notes: list[PromptMessage]
    pauses_s: Sequence[float]
    voice: Voice | None = None
    overdue: Range | None = None


async def gather(
    store: Store,
    opened: Opened,
    generation: Generation,
    past: Past | None = None,
    *,
    texts: BlockTexts | None = None,
    keeper: MemoryKeeper | None = None,
) -> tuple[TurnContext, list[PromptMessage]]:
    """What the turn works with, and its messages, of which the last is the one to answer. `texts` are the blocks of
    transcripts that were read before; `keeper` is asked for what is remembered.
    """
    turn = opened.turn
    agent = _sized(generation.agent(turn.agent), turn.route)
    model = generation.models.get(model_of(turn, agent))
    case = _Case(opened, generation, agent, model, "supplied" in turn.options)
    reminded = await load_reminders(keeper, opened, generation.recall)
    notes = [*reminded.notes, *await _load_notes(store, case)]
    segments = await _load_segments(case)
    room, max_output = await _plan_room(case, segments)
    if case.reads_transcript:
        said = await _read_transcript(store, case, notes, room, texts or BlockTexts(), is_over=past is not None)
    else:
        said = await _read_session(store, case, notes, room, past)
    question = text_of(opened.trigger.parts)
    foreign = [*said.messages, *said.notes]
    taint = await load_foreign(store, opened, foreign, is_transcript=case.reads_transcript)
    scope = CallScope(
        agent.name, turn.principal, opened.place, turn.conversation_id, turn.session_id, turn.id,
        account=_account_of(opened, agent), taint=taint, guild=opened.owed.guild if opened.owed else "",
        question=question,
    )  # fmt: skip
    context = TurnContext(
        turn, generation, agent, model, scope, segments, question, max_output, _sampling_of(agent, case.options),
        said.voice, tuple(said.notes), plan_keep_s(said.pauses_s), said.overdue, reminded.memories,
    )  # fmt: skip
    return context, said.messages


def model_of(turn: Turn, agent: Agent) -> str:
    """By name: what was asked for goes before what was chosen for the question."""
    return str(turn.options.get("model") or (turn.route.model if turn.route else agent.model))


def _sized(agent: Agent, route: Route | None) -> Agent:
    """With the steps of this turn in place of the usual ones."""
    steps = route.max_steps if route else agent.limits.steps
    return replace(agent, limits=replace(agent.limits, max_steps=steps, max_steps_multiplier=1.0))


async def _load_segments(case: _Case) -> tuple[Segment, ...]:
    """The system prompt. Where the client keeps the history, the date stands in it and not behind a message."""
    assembled = assemble_participant if case.reads_transcript else assemble
    instructions = str(case.options.get("instructions", ""))
    sources = await _source_rules(case.agent, case.generation, is_short=case.plans or _is_public(case.opened))
    segments = assembled(case.agent, tool_rules=case.tool_rules, instructions=instructions, sources=sources)
    if case.is_supplied:
        return order_segments([*segments, Segment("date", case.today, Stability.TURN)])
    return segments


async def _source_rules(agent: Agent, generation: Generation, *, is_short: bool) -> str:
    if agent.answers_from is AnswersFrom.ANYTHING:
        return ""
    return source_rules(agent, await allowed(agent, generation.toolsets), is_short=is_short)


def _is_public(opened: Opened) -> bool:
    """Whether others read along on a platform."""
    return opened.owed is not None and bool(opened.trigger.meta.get("speaker"))


def _account_of(opened: Opened, agent: Agent) -> AgentName | None:
    """Whose login acts for tools; nobody's for a question of several people, who may not all do the same."""
    if opened.owed is None:
        return agent.name
    return None if opened.owed.of_several else opened.owed.account


def _sampling_of(agent: Agent, options: Mapping[str, Any]) -> Sampling:
    temperature = options.get("temperature")
    return agent.sampling if temperature is None else replace(agent.sampling, temperature=float(temperature))


async def _plan_room(case: _Case, segments: Sequence[Segment]) -> tuple[int, int]:
    """The tokens that are left for history when system prompt, tools and the answer have theirs (inventory T11), and
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
        notes.append(passing(SILENCE_NOTE))
    return [*notes, *plan_task(case.agent, opened.turn.route, tool_rules=case.tool_rules)]


async def _read_transcript(
    store: Store, case: _Case, notes: list[PromptMessage], room: int, texts: BlockTexts, *, is_over: bool
) -> _Said:
    """For participants: the whole room as one text, in which the notes stand before the cue to speak."""
    scene = _scene(case, room - sum(map(count_tokens, notes)), is_over=is_over)
    history, voice, pauses_s = await load_transcript(store, scene, texts)
    dated = [passing(case.today, "date")] if case.agent.persona else []
    return _Said(before_cue(history, [*notes, *dated]), [], pauses_s, voice)


def _scene(case: _Case, room: int, *, is_over: bool) -> Scene:
    opened, generation = case.opened, case.generation
    agent, owed = generation.agent(opened.turn.agent), opened.owed
    return Scene(
        opened.turn, opened.trigger, opened.place, owed, agent, tuple(generation.agents.values()),
        is_archived=generation.archive.enabled and owed is not None, room_tokens=room,
        can=case.model.capabilities, is_over=is_over,
    )  # fmt: skip


async def _read_session(store: Store, case: _Case, notes: list[PromptMessage], room: int, past: Past | None) -> _Said:
    """For assistants: the messages of the session that fit, the date where no message tells it yet."""
    notes = [*notes, *await _load_around(store, case.opened, case.agent)]
    left = Room(room, sum(map(count_tokens, notes)))
    found = await load_history(store, case.opened, case.agent, left, past)
    history = with_pictures(found.messages) if case.model.capabilities.image_output else found.messages
    if not case.is_supplied and not any(tells(message, case.today) for message in history):
        notes.append(passing(case.today, "date"))
    pauses_s = pauses_between(turns_on(found.read, case.opened.turn.route))
    return _Said(history, notes, pauses_s, overdue=found.overdue)


async def _load_around(store: Store, opened: Opened, agent: Agent) -> list[PromptMessage]:
    """What others said just before, for an agent that was not in it."""
    owed, trigger = opened.owed, opened.trigger
    if owed is None or not (owed.reply_to and trigger.meta.get("speaker") and agent.recent_messages):
        return []
    name, limit = opened.turn.agent, agent.recent_messages
    before = await load_surroundings(store, name, opened.place, trigger, before=owed.reply_to, limit=limit)
    return [*before, *await load_answers(store, owed, opened.place, limit=limit)]
