"""Step 4 of a turn: the agent as configured now, what was said before, and the model for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from denizen.domain.agent import Agent, AnswersFrom, ContextStrategy, Sampling
from denizen.domain.errors import NeedsAttention
from denizen.domain.guard import Voice
from denizen.domain.ids import AgentName
from denizen.domain.message import text_of
from denizen.domain.prompt import PromptMessage, Segment, Stability, estimate_tokens, order_segments
from denizen.domain.routing import Route
from denizen.domain.speaking import SILENCE
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
from denizen.ports.model import Capabilities, Model
from denizen.ports.store import Store
from denizen.ports.toolset import CallScope

SILENCE_NOTE = (
    "Nobody waits for you here. Speak only if it adds something; "
    f"otherwise answer with exactly {SILENCE} and nothing else."
)
"""For a turn that may end without a word."""


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
    turn, trigger = opened.turn, opened.trigger
    agent = _sized(generation.agent(turn.agent), turn.route)
    options = cast("Mapping[str, Any]", turn.options)
    model = generation.models.get(model_of(turn, agent))
    plans = uses_planning(agent.planning, model.capabilities)
    instructions = str(options.get("instructions", ""))
    reads_transcript = agent.context is ContextStrategy.TRANSCRIPT and "supplied" not in options
    assembled = assemble_participant if reads_transcript else assemble
    reminded = await load_reminders(keeper, opened, generation.recall)
    notes = [*reminded.notes, *await load_subject_note(store, opened)]
    if opened.owed and opened.owed.may_be_silent:
        notes.append(passing(SILENCE_NOTE))
    can = model.capabilities
    tool_rules = not plans and can.takes_tools
    notes += plan_task(agent, turn.route, tool_rules=tool_rules)
    sources = await _source_rules(agent, generation, is_short=plans or _is_public(opened))
    segments = assembled(agent, tool_rules=tool_rules, instructions=instructions, sources=sources)
    today = date_line(turn.opened_at, zone_of(agent))
    if "supplied" in options:
        segments = order_segments([*segments, Segment("date", today, Stability.TURN)])
    most = min(agent.limits.max_output_tokens, model.capabilities.max_output_tokens or agent.limits.max_output_tokens)
    max_output = min(int(options.get("max_output_tokens") or most), most)
    room, max_output = await _plan_room(generation, agent, model, segments, max_output)
    voice: Voice | None = None
    overdue: Range | None = None
    if reads_transcript:
        left = room - sum(map(count_tokens, notes))
        scene = _scene(opened, generation, model.capabilities, left, is_over=past is not None)
        history, voice, pauses_s = await load_transcript(store, scene, texts or BlockTexts())
        notes += [passing(today, "date")] if agent.persona else []
        history, notes = before_cue(history, notes), []
    else:
        notes += await _load_around(store, opened, agent)
        found = await load_history(store, opened, agent, Room(room, sum(map(count_tokens, notes))), past)
        history, overdue, pauses_s = found.messages, found.overdue, pauses_between(turns_on(found.read, turn.route))
        history = with_pictures(history) if can.image_output else history
        if "supplied" not in options and not any(tells(message, today) for message in history):
            notes.append(passing(today, "date"))
    sampling = _sampling_of(agent, options)
    account = _account_of(opened, agent)
    question = text_of(trigger.parts)
    taint = await load_foreign(store, opened, [*history, *notes], is_transcript=reads_transcript)
    scope = CallScope(
        agent.name, turn.principal, opened.place, turn.conversation_id, turn.session_id, turn.id, account=account,
        taint=taint, guild=opened.owed.guild if opened.owed else "", question=question,
    )  # fmt: skip
    context = TurnContext(
        turn, generation, agent, model, scope, segments, question, max_output, sampling, voice, tuple(notes),
        plan_keep_s(pauses_s), overdue, reminded.memories,
    )  # fmt: skip
    return context, history


def model_of(turn: Turn, agent: Agent) -> str:
    """By name: what was asked for goes before what was chosen for the question."""
    return str(turn.options.get("model") or (turn.route.model if turn.route else agent.model))


def _sized(agent: Agent, route: Route | None) -> Agent:
    """With the steps of this turn in place of the usual ones."""
    steps = route.max_steps if route else agent.limits.steps
    return replace(agent, limits=replace(agent.limits, max_steps=steps, max_steps_multiplier=1.0))


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


async def _plan_room(
    generation: Generation, agent: Agent, model: Model, segments: Sequence[Segment], max_output: int
) -> tuple[int, int]:
    """The tokens that are left for history when system prompt, tools and the answer have theirs (inventory T11), and
    those for the answer, which takes at most half of what it shares with the history. Raises NeedsAttention when the
    model cannot even read what stands in every prompt.
    """
    window, prompt = model.capabilities.context_tokens, sum(estimate_tokens(s.text) for s in segments)
    tools = 0
    if not uses_planning(agent.planning, model.capabilities):  # where plans are made, tools stand in no other prompt
        tools = await count_most_tokens(agent, generation.toolsets)
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


def _scene(opened: Opened, generation: Generation, can: Capabilities, room: int, *, is_over: bool) -> Scene:
    agent, owed = generation.agent(opened.turn.agent), opened.owed
    return Scene(
        opened.turn, opened.trigger, opened.place, owed, agent, tuple(generation.agents.values()),
        is_archived=generation.archive.enabled and owed is not None, room_tokens=room, can=can, is_over=is_over,
    )  # fmt: skip


async def _load_around(store: Store, opened: Opened, agent: Agent) -> list[PromptMessage]:
    """What others said just before, for an agent that was not in it."""
    owed, trigger = opened.owed, opened.trigger
    if owed is None or not (owed.reply_to and trigger.meta.get("speaker") and agent.recent_messages):
        return []
    name, limit = opened.turn.agent, agent.recent_messages
    before = await load_surroundings(store, name, opened.place, trigger, before=owed.reply_to, limit=limit)
    return [*before, *await load_answers(store, owed, opened.place, limit=limit)]
