"""The session strategy: what a turn reads of its agent's own history. Called by `gather.py`.

First come the summaries of what lies far back, then the messages behind the last one that is summed up, as they were
said. Where those are too many, because no summary is there (yet), the oldest are left out (inventory T10, T12, TW13).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from anyio.lowlevel import checkpoint_if_cancelled

from denizen.domain.agent import Agent
from denizen.domain.message import Message, Role, TextPart, parts_from_json
from denizen.domain.prompt import PromptMessage
from denizen.domain.summary import Summary, covered_until, find_gap
from denizen.engine.opening import Opened
from denizen.engine.prompt.caps import to_read
from denizen.engine.prompt.session import count_tokens, without_dead_images
from denizen.engine.prompt.window import Entry, begin_at, entries_of, plan_range, plan_window
from denizen.ports.store import Store

Range = tuple[int, int]
"""First and last sequence."""

BUDGET_STEP_TOKENS = 128
"""In which the room for history shrinks, so that a prompt of another length does not move the window each time."""

_TOLD = "[Messages {reference} of this conversation, summed up: {text}]"

_log = logging.getLogger("denizen.history")


@dataclass(frozen=True, slots=True)
class Past:
    """For a turn that is run again: the sequence at which its session ended then, and the time that it is now."""

    end: int
    now: datetime


@dataclass(frozen=True, slots=True)
class Room:
    """In tokens: for history, what is left of the model's window, and what of it goes to notes of this turn alone."""

    tokens: int
    notes: int = 0


@dataclass(frozen=True, slots=True)
class History:
    """`messages` end with the question. `read` are the stored ones, the question included. `overdue` is what should be
    summed up soon.
    """

    messages: list[PromptMessage]
    read: Sequence[Message]
    overdue: Range | None = None


async def load_history(store: Store, opened: Opened, agent: Agent, room: Room, past: Past | None) -> History:
    """Within the room and the agent's limits; a client that carries its history itself is believed."""
    turn, trigger = opened.turn, opened.trigger
    options = cast("Mapping[str, Any]", turn.options)
    question = entries_of([trigger], "question")
    most = agent.limits.max_history_tokens
    budget = most if room.tokens >= most else max(room.tokens - room.tokens % BUDGET_STEP_TOKENS, 0)
    if "supplied" in options:
        supplied = [
            Entry(PromptMessage(Role(row["role"]), parts_from_json(row["parts"]))) for row in options["supplied"]
        ]
        window = plan_window([*supplied, *question], budget_tokens=budget, besides_tokens=room.notes)
        return History(window.messages, [trigger])
    summaries, tail = await _load(store, opened, agent.limits.max_history_messages, past)
    told = [told_of(summary) for summary in summaries if summary.text]
    begin, has_moved = _begin(summaries, tail, trigger.sequence, agent.limits.max_history_messages)
    earlier = [m for m in tail if m.turn_id != turn.id and (m.role is not Role.USER or m.sequence < trigger.sequence)]
    now = past.now if past else turn.opened_at
    read = [to_read(without_dead_images(m, now), agent.storing) for m in earlier if m.sequence >= begin]
    entries = [*entries_of(read), *question]
    left = max(budget - sum(map(count_tokens, told)), 0)
    window = plan_window(entries, budget_tokens=left, besides_tokens=room.notes)
    if (window.has_moved or has_moved) and past is None:
        _log.info("history trimmed", extra={"turn": turn.id, "session": turn.session_id, "agent": turn.agent})
    overdue = None
    if past is None and agent.summaries.enabled is not False:
        overdue = find_gap(summaries) or plan_range(
            entries, agent.summaries, budget_tokens=left, max_messages=agent.limits.max_history_messages
        )
    if overdue and overdue[0] > covered_until(summaries):
        overdue = covered_until(summaries) + 1, overdue[1]
    return History([*told, *window.messages], [*read, trigger], overdue)


def told_of(summary: Summary) -> PromptMessage:
    """A summary as a model reads it, with the reference by which it can read the messages."""
    text = _TOLD.format(reference=summary.reference, text=summary.text)
    return PromptMessage(Role.USER, (TextPart(text),), "summary")


async def _load(
    store: Store, opened: Opened, limit: int, past: Past | None
) -> tuple[Sequence[Summary], Sequence[Message]]:
    """The summaries that there are (that there were, when the turn is run again), and the newest messages."""
    turn, trigger = opened.turn, opened.trigger
    if trigger.sequence == 1:  # the first of its session: most questions over the API
        await checkpoint_if_cancelled()
        return [], []
    async with store.work(write=False) as work:
        tail = await work.messages.list_tail(turn.session_id, limit=limit, before=past.end if past else None)
        summaries = await work.summaries.list_summaries(turn.session_id)
    known = [each for each in summaries if each.last < trigger.sequence]
    if past is not None:
        known = [each for each in known if each.created_at <= turn.opened_at]
    return known, tail


def _begin(summaries: Sequence[Summary], tail: Sequence[Message], asked_at: int, limit: int) -> tuple[int, bool]:
    """The first sequence to read, and whether that moved with this question: right behind the summaries, as far as
    there are not too many messages.
    """
    behind = covered_until(summaries) + 1
    if len(tail) < limit or not tail or tail[0].sequence <= behind:
        return behind, False
    begin = begin_at(asked_at, limit)
    asked_before = max((m.sequence for m in tail if m.role is Role.USER and m.sequence < asked_at), default=begin)
    return max(begin, behind), begin > behind and begin_at(asked_before, limit) < begin
