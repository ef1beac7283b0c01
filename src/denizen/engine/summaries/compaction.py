"""Compaction: on command, one summary takes the place of everything that was said in a session so far.

The messages stay in the session, and can be read by the summary's reference. Whatever fails leaves everything as it
was. Who calls this sees to it that no turn of the session runs meanwhile. The summing up itself is in `summarizer.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence

import anyio

from denizen.domain.agent import Agent
from denizen.domain.errors import InvalidInput, Unavailable
from denizen.domain.ids import AgentName, ConversationId
from denizen.domain.json import Json
from denizen.domain.message import Message, Role
from denizen.domain.prompt_messages import count_tokens, to_prompt_messages
from denizen.domain.record import record
from denizen.domain.summary import Summary, covered_until
from denizen.domain.turn import TurnStatus
from denizen.engine.budget.budgets import Payer, TurnBudget
from denizen.engine.loop.services import EngineServices
from denizen.engine.prompt.session_history import summary_message
from denizen.engine.summaries.summarizer import (
    MAX_MESSAGES,
    SummaryRange,
    SummaryWriter,
    choose_summary_model,
    keep_summary,
    session_changed,
    write_summary,
)
from denizen.ports.store import UnitOfWork

MIN_MESSAGES = 4
"""The fewest messages behind the last summary that are worth compacting."""

OPEN_TURNS = 10_000

_log = logging.getLogger("denizen.compaction")


@record
class CompactionReport:
    """The result of a compaction. `messages_before` counts those with words, of people and the agent; of these
    `left_out`, the oldest, are not in the summary. Tokens are estimates of what a model is sent.
    """

    summary: Summary
    messages_before: int
    tokens_before: int
    tokens_after: int
    left_out: int


async def compact_session(
    services: EngineServices, payer: Payer, agent: Agent, conversation_id: ConversationId
) -> CompactionReport:
    """Sums up the open session of an agent with the model alias `cheap`, or, where there is none, the agent's model.

    Raises InvalidInput for a session that is too short, Conflict when somebody writes meanwhile, Unavailable when the
    model gives no summary in time, LimitExceeded when no budget of the payer's is left, and what the model raises.
    """
    started = services.clock.monotonic_s()
    async with services.store.work(write=False) as work:
        stretch = await _load(work, agent.name, conversation_id)
    model = choose_summary_model(payer.models, agent)
    budgets = TurnBudget(payer, services.store, services.live, services.clock)
    try:
        with anyio.fail_after(agent.limits.turn_timeout_s):
            written = await write_summary(SummaryWriter(model, agent, budgets, _at_once), stretch)
    except TimeoutError as error:
        raise Unavailable("Summing up took too long. Nothing was changed.", code="compaction_timeout") from error
    async with services.store.work(write=False) as work:
        await _check_quiet(work, stretch)
    summary = await keep_summary(services.store, stretch, written.text, services.clock)
    before = [*(summary_message(each) for each in stretch.known if each.text), *to_prompt_messages(stretch.messages)]
    done = CompactionReport(
        summary,
        messages_before=sum(map(_has_words, stretch.messages)),
        tokens_before=sum(map(count_tokens, before)),
        tokens_after=count_tokens(summary_message(summary)),
        left_out=written.left_out,
    )
    _log.info(
        "compaction",  # nothing of what was said
        extra={
            "session": done.summary.session_id,
            "messages": done.messages_before,
            "left_out": done.left_out,
            "range": done.summary.reference,
            "agent": agent.name,
            "model": model.name,
            "input_tokens": written.usage.input_tokens,
            "output_tokens": written.usage.output_tokens,
            "duration_ms": round((services.clock.monotonic_s() - started) * 1000),
        },
    )
    return done


async def _load(work: UnitOfWork, agent: AgentName, conversation_id: ConversationId) -> SummaryRange:
    sessions = await work.sessions.list_sessions(conversation_id, agent)
    session = next((session for session in sessions if session.closed_at is None), None)
    known: Sequence[Summary] = []
    messages: Sequence[Message] = []
    if session is not None:
        known = await work.summaries.list_summaries(session.id)
        tail = await work.messages.list_tail(session.id, limit=MAX_MESSAGES)
        messages = [message for message in tail if message.sequence > covered_until(known)]
    if session is None or not messages or sum(map(_has_words, messages)) < MIN_MESSAGES:
        raise InvalidInput(
            "There is too little to sum up here.",
            code="compaction_too_short",
            why=f"It takes at least {MIN_MESSAGES} messages in this session since it was summed up last.",
            fix="Go on talking, or give /new to begin afresh.",
        )
    stretch = SummaryRange(
        session=session,
        first=covered_until(known) + 1,
        last=messages[-1].sequence,
        messages=messages,
        known=known,
        merged=known,
    )
    await _check_quiet(work, stretch)
    return stretch


async def _check_quiet(work: UnitOfWork, stretch: SummaryRange) -> None:
    """No question came meanwhile or waits for its answer."""
    tail = await work.messages.list_tail(stretch.session.id, limit=1)
    waiting = await work.turns.list_turns(status=TurnStatus.OPEN, limit=OPEN_TURNS)
    is_open = (await work.sessions.get(stretch.session.id)).closed_at is None
    if not is_open or [m.sequence for m in tail] != [stretch.last]:
        raise session_changed()
    if any(turn.session_id == stretch.session.id for turn in waiting):
        raise session_changed()


async def _at_once(name: str, action: Callable[[], Awaitable[Json]]) -> Json:
    """A command that is interrupted is given again."""
    del name
    return await action()


def _has_words(message: Message) -> bool:
    return message.role in (Role.USER, Role.ASSISTANT) and bool(message.text.strip())
