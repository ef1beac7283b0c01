"""Steps 3 and 4 of a turn: the agent as configured now, what was said before, and the model for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from anyio.lowlevel import checkpoint_if_cancelled

from denizen.domain.message import Message, Role, parts_from_json, text_of
from denizen.domain.prompt import PromptMessage, estimate_tokens
from denizen.engine.opening import Opened
from denizen.engine.planning import uses_planning
from denizen.engine.prompt.assemble import assemble
from denizen.engine.prompt.session import from_stored, plan_window, without_dead_images
from denizen.engine.prompt.surroundings import load_surroundings
from denizen.engine.runtime import Generation
from denizen.engine.steps import TurnContext
from denizen.ports.store import Store
from denizen.ports.toolset import CallScope


async def gather(store: Store, opened: Opened, generation: Generation) -> tuple[TurnContext, list[PromptMessage]]:
    """What the turn works with, and its messages, of which the last is the one to answer."""
    turn, trigger = opened.turn, opened.trigger
    agent = generation.agent(turn.agent)
    options = cast("Mapping[str, Any]", turn.options)
    model = generation.models.get(str(options.get("model") or agent.model))
    plans = uses_planning(agent.planning, model.capabilities)
    instructions = str(options.get("instructions", ""))
    segments = assemble(agent, now=turn.opened_at, tool_rules=not plans, instructions=instructions)
    most = agent.limits.max_output_tokens
    max_output = min(int(options.get("max_output_tokens") or most), most)
    room = model.capabilities.context_tokens - max_output - sum(estimate_tokens(s.text) for s in segments)
    budget = max(min(agent.limits.max_history_tokens, room), 0)
    if "supplied" in options:
        earlier = [_prompt_message(row) for row in options["supplied"]]
    else:
        stored = await _list_earlier(store, opened, agent.limits.max_history_messages)
        earlier = from_stored(without_dead_images(message, turn.opened_at) for message in stored)
    around: list[PromptMessage] = []
    if opened.owed and opened.owed.reply_to and trigger.meta.get("speaker") and agent.recent_messages:
        before, limit = opened.owed.reply_to, agent.recent_messages
        around = await load_surroundings(store, opened.turn.agent, opened.place, trigger, before=before, limit=limit)
    history = plan_window([*earlier, *around, *from_stored([trigger])], budget_tokens=budget)
    temperature = options.get("temperature")
    sampling = agent.sampling if temperature is None else replace(agent.sampling, temperature=float(temperature))
    account = opened.owed.account if opened.owed else agent.name
    scope = CallScope(
        agent.name, turn.principal, opened.place, turn.conversation_id, turn.session_id, turn.id, account=account
    )
    question = text_of(trigger.parts)
    return TurnContext(turn, generation, agent, model, scope, segments, question, max_output, sampling), history


async def _list_earlier(store: Store, opened: Opened, limit: int) -> Sequence[Message]:
    """What was said before: not this turn's own messages (it may have been interrupted), and no user message that
    arrived later and waits for a turn of its own.
    """
    turn, trigger = opened.turn, opened.trigger
    if trigger.sequence == 1:  # the first of its session: most questions over the API
        await checkpoint_if_cancelled()
        return []
    async with store.work(write=False) as work:
        tail = await work.messages.list_tail(turn.session_id, limit=limit)
    return [m for m in tail if m.turn_id != turn.id and (m.role is not Role.USER or m.sequence < trigger.sequence)]


def _prompt_message(row: Mapping[str, Any]) -> PromptMessage:
    return PromptMessage(Role(row["role"]), parts_from_json(row["parts"]))
