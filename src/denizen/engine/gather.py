"""Steps 3 and 4 of a turn: the agent as configured now, what was said before, and the model for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast

from anyio.lowlevel import checkpoint_if_cancelled

from denizen.domain.agent import Agent, ContextStrategy
from denizen.domain.guard import Voice
from denizen.domain.message import Message, Role, parts_from_json, text_of
from denizen.domain.prompt import PromptMessage, estimate_tokens
from denizen.engine.opening import Opened
from denizen.engine.planning import uses_planning
from denizen.engine.prompt.assemble import assemble, assemble_participant
from denizen.engine.prompt.session import from_stored, plan_window, without_dead_images
from denizen.engine.prompt.surroundings import load_surroundings
from denizen.engine.prompt.transcript.blocks import BlockTexts
from denizen.engine.prompt.transcript.load import Scene, load_transcript
from denizen.engine.runtime import Generation
from denizen.engine.steps import TurnContext
from denizen.ports.model import Capabilities
from denizen.ports.store import Store
from denizen.ports.toolset import CallScope


@dataclass(frozen=True, slots=True)
class Past:
    """For a turn that is run again: the sequence at which its session ended then, and the time that it is now."""

    end: int
    now: datetime


async def gather(
    store: Store,
    opened: Opened,
    generation: Generation,
    past: Past | None = None,
    *,
    texts: BlockTexts | None = None,
) -> tuple[TurnContext, list[PromptMessage]]:
    """What the turn works with, and its messages, of which the last is the one to answer. `texts` are the blocks of
    transcripts that were read before.
    """
    turn, trigger = opened.turn, opened.trigger
    agent = generation.agent(turn.agent)
    options = cast("Mapping[str, Any]", turn.options)
    model = generation.models.get(str(options.get("model") or agent.model))
    plans = uses_planning(agent.planning, model.capabilities)
    instructions = str(options.get("instructions", ""))
    reads_transcript = agent.context is ContextStrategy.TRANSCRIPT and "supplied" not in options
    assembled = assemble_participant if reads_transcript else assemble
    segments = assembled(agent, now=turn.opened_at, tool_rules=not plans, instructions=instructions)
    most = min(agent.limits.max_output_tokens, model.capabilities.max_output_tokens or agent.limits.max_output_tokens)
    max_output = min(int(options.get("max_output_tokens") or most), most)
    room = model.capabilities.context_tokens - max_output - sum(estimate_tokens(s.text) for s in segments)
    voice: Voice | None = None
    if reads_transcript:
        scene = _scene(opened, generation, model.capabilities, room, is_over=past is not None)
        history, voice = await load_transcript(store, scene, texts or BlockTexts())
    else:
        history = await _load_history(store, opened, agent, room, past)
    temperature = options.get("temperature")
    sampling = agent.sampling if temperature is None else replace(agent.sampling, temperature=float(temperature))
    account = opened.owed.account if opened.owed else agent.name
    scope = CallScope(
        agent.name, turn.principal, opened.place, turn.conversation_id, turn.session_id, turn.id, account=account
    )
    question = text_of(trigger.parts)
    return TurnContext(turn, generation, agent, model, scope, segments, question, max_output, sampling, voice), history


def _scene(opened: Opened, generation: Generation, can: Capabilities, room: int, *, is_over: bool) -> Scene:
    agent, owed = generation.agent(opened.turn.agent), opened.owed
    return Scene(
        opened.turn, opened.trigger, opened.place, owed, agent, tuple(generation.agents.values()),
        is_archived=generation.archive.enabled and owed is not None, room_tokens=room, prefill=can.prefill,
        is_over=is_over,
    )  # fmt: skip


async def _load_history(
    store: Store, opened: Opened, agent: Agent, room: int, past: Past | None
) -> list[PromptMessage]:
    """The session strategy, within `room` tokens; a client that carries its history itself is believed."""
    turn, trigger = opened.turn, opened.trigger
    options = cast("Mapping[str, Any]", turn.options)
    budget = max(min(agent.limits.max_history_tokens, room), 0)
    if "supplied" in options:
        earlier = [_prompt_message(row) for row in options["supplied"]]
    else:
        stored = await _list_earlier(store, opened, agent.limits.max_history_messages, past)
        earlier = from_stored(without_dead_images(message, past.now if past else turn.opened_at) for message in stored)
    around: list[PromptMessage] = []
    if opened.owed and opened.owed.reply_to and trigger.meta.get("speaker") and agent.recent_messages:
        before, limit = opened.owed.reply_to, agent.recent_messages
        around = await load_surroundings(store, opened.turn.agent, opened.place, trigger, before=before, limit=limit)
    return plan_window([*earlier, *around, *from_stored([trigger], "question")], budget_tokens=budget)


async def _list_earlier(store: Store, opened: Opened, limit: int, past: Past | None) -> Sequence[Message]:
    """What was said before: not this turn's own messages (it may have been interrupted), and no user message that
    arrived later and waits for a turn of its own.
    """
    turn, trigger = opened.turn, opened.trigger
    if trigger.sequence == 1:  # the first of its session: most questions over the API
        await checkpoint_if_cancelled()
        return []
    async with store.work(write=False) as work:
        tail = await work.messages.list_tail(turn.session_id, limit=limit, before=past.end if past else None)
    return [m for m in tail if m.turn_id != turn.id and (m.role is not Role.USER or m.sequence < trigger.sequence)]


def _prompt_message(row: Mapping[str, Any]) -> PromptMessage:
    return PromptMessage(Role(row["role"]), parts_from_json(row["parts"]))
