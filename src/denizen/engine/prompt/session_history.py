"""Which of a session's messages a model reads, decided from the messages alone: the same at every later turn and after
a restart, so that the prompt keeps its bytes. Pure.

Messages stand in groups: an assistant message with tool calls and their results stay together, so that no result is
ever without its call. The window is walked from its beginning, and at each question it is decided, as
it was then, what to leave out:

- Over the budget, the oldest groups go, until a part of the budget is left: in a step, not a little at every turn.
- After a request of very many tokens, the calls and results before the third-last question go, where that saves much.

The question itself is always kept. `session.py` makes prompt messages of stored ones.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast

from anyio.lowlevel import checkpoint_if_cancelled

from denizen.domain.agent import Agent, SummaryPolicy
from denizen.domain.message import Message, Role, TextPart, ThinkingPart, ToolCallPart, ToolResultPart, parts_from_json
from denizen.domain.prompt import PromptMessage
from denizen.domain.prompt_messages import count_tokens, drop_dead_images, shorten_to_read, to_prompt_messages
from denizen.domain.record import record
from denizen.domain.summary import Summary, covered_until, find_gap
from denizen.engine.intake.opening import OpenTurn
from denizen.ports.store import Store

KEPT_SHARE = 0.5
"""The share of the budget that stays filled when the oldest groups go."""

LARGE_REQUEST_TOKENS = 40_000
WORTH_TOKENS = 20_000
KEPT_QUESTIONS = 3
"""From the last so many questions on, calls and results stay."""

QUESTION = "question"
"""The kind of the message to answer."""

USED = "input_tokens"
"""In the meta of a stored message: the input of the request that gave it, where that was large."""


@record
class HistoryEntry:
    """A message, where it stands in its session (0 for a message of none), and the input of the request that gave it,
    where that was large.
    """

    message: PromptMessage
    sequence: int = 0
    used_tokens: int = 0


@record
class HistoryWindow:
    """`has_moved`: something was left out now that was there at the question before."""

    messages: list[PromptMessage]
    has_moved: bool = False


@dataclass(slots=True)
class _Group:
    entries: list[HistoryEntry]
    tokens: int = 0
    tool_tokens: int = 0

    @property
    def role(self) -> Role:
        return self.entries[0].message.role

    @property
    def sequence(self) -> int:
        return self.entries[0].sequence

    @property
    def answers_call(self) -> bool:
        """Whether the message to answer is in it, behind the calls that it has the results of."""
        return any(entry.message.kind == QUESTION for entry in self.entries[1:])

    def weigh(self) -> None:
        """With and without calls and results."""
        messages = [entry.message for entry in self.entries]
        self.tokens = sum(map(count_tokens, messages))
        self.tool_tokens = self.tokens - sum(map(count_tokens, _without_tools(messages)))


def to_entries(messages: Iterable[Message], kind: str = "history") -> list[HistoryEntry]:
    """Stored messages as entries."""
    return [
        HistoryEntry(told, message.sequence, used if isinstance(used := message.meta.get(USED), int) else 0)
        for message in messages
        for told in to_prompt_messages([message], kind)
    ]


def window_start(newest: int, limit: int) -> int:
    """The first sequence that is read where at most `limit` messages are: it moves in steps of half of them."""
    step = max(limit // 2, 1)
    return max(-(-(newest - limit + 1) // step) * step, 1)


def plan_window(entries: Sequence[HistoryEntry], *, budget_tokens: int, besides_tokens: int = 0) -> HistoryWindow:
    """The messages from `entries`, of which the last is the question, within the budget. `besides_tokens` is what this
    question alone takes from it.
    """
    groups = _groups(entries)
    walk = _Walk(groups, budget_tokens)
    for at in range(len(groups)):
        walk.take(at)
    if groups and walk.total + besides_tokens > budget_tokens:
        walk.cut(budget_tokens - besides_tokens)
    kept: list[PromptMessage] = []
    for at in range(walk.start, len(groups)):
        messages = [entry.message for entry in groups[at].entries]
        kept += _without_tools(messages) if at < walk.slim_until else messages
    return HistoryWindow(kept, walk.has_moved)


class _Walk:
    """Along the groups, one after another as they were said."""

    def __init__(self, groups: Sequence[_Group], budget_tokens: int) -> None:
        self._groups = groups
        self._budget = budget_tokens
        self._questions: list[int] = []
        self._used_tokens = 0
        self.start = next((at for at, group in enumerate(groups) if group.role is Role.USER), 0)
        self.slim_until = 0
        self.total = 0
        self.has_moved = False

    def take(self, at: int) -> None:
        group = self._groups[at]
        if at < self.start:
            return
        self.total += group.tokens
        if group.role is Role.ASSISTANT:
            self._used_tokens = group.entries[0].used_tokens
        # Results of the asker's tools belong to the question before them, which must not go.
        answers_call = self._questions and group.answers_call
        if group.role is Role.USER or (at == len(self._groups) - 1 and not answers_call):
            self._questions.append(at)
            self.has_moved = self._slim()
            if self.total > self._budget:
                self.has_moved = self.cut(self._budget) or self.has_moved

    def _slim(self) -> bool:
        if self._used_tokens <= LARGE_REQUEST_TOKENS or len(self._questions) < KEPT_QUESTIONS:
            return False
        until = self._questions[-KEPT_QUESTIONS]
        these = self._groups[max(self.slim_until, self.start) : until]
        saved = sum(group.tool_tokens for group in these)
        if saved < WORTH_TOKENS:
            return False
        for group in these:
            group.tokens -= group.tool_tokens
        self.total -= saved
        self.slim_until = until
        return True

    def cut(self, budget_tokens: int) -> bool:
        """Lets the oldest go, at least as much as is over the budget. What stays begins with a question."""
        before = self.start
        later = [at for at in self._questions if at > self.start]
        last = self._questions[-1]
        for at in later:
            self.total -= sum(group.tokens for group in self._groups[self.start : at])
            self.start = at
            fits = self.total <= budget_tokens
            if fits and (self.total <= budget_tokens * KEPT_SHARE or later[-2:] == [at, last]):
                break
        return self.start > before


def plan_range(
    entries: Sequence[HistoryEntry], rule: SummaryPolicy, *, budget_tokens: int, max_messages: int
) -> tuple[int, int] | None:
    """The first and last sequence that are due to be summed up: whole groups, up to a question. None while there is
    enough room. `entries` are those of which there is no summary, with the question at the end.
    """
    groups = _groups(entries)
    left = sum(group.tokens for group in groups)
    count = sum(len(group.entries) for group in groups)
    if left <= budget_tokens * rule.start_at and count <= max_messages * rule.start_at:
        return None
    last, newest = 0, entries[-1].sequence
    for at, group in enumerate(groups):
        if at and group.role is Role.USER and groups[0].sequence < group.sequence <= newest:
            last = group.sequence - 1
            if left <= budget_tokens * rule.keep and count <= max_messages * rule.keep:
                break
        left -= group.tokens
        count -= len(group.entries)
    return (groups[0].sequence, last) if last else None


def _groups(entries: Iterable[HistoryEntry]) -> list[_Group]:
    """Tool results join the message that asked for them; results whose call is missing are left out. A call that never
    got its result (the turn was cut off) gets one that says so.
    """
    groups: list[_Group] = []
    open_calls: set[str] = set()
    for entry in entries:
        message = entry.message
        if message.role is Role.TOOL:
            known = tuple(p for p in message.parts if not isinstance(p, ToolResultPart) or p.call_id in open_calls)
            if known and groups:
                groups[-1].entries.append(replace(entry, message=replace(message, parts=known)))
            continue
        open_calls = {part.id for part in message.parts if isinstance(part, ToolCallPart)}
        groups.append(_Group([entry]))
    for group in groups:
        answered = {p.call_id for e in group.entries for p in e.message.parts if isinstance(p, ToolResultPart)}
        asked = group.entries[0].message
        missing = [p for p in asked.parts if isinstance(p, ToolCallPart) and p.id not in answered]
        if missing:
            results = tuple(ToolResultPart(p.id, p.tool, "This call was interrupted.", is_error=True) for p in missing)
            group.entries.append(HistoryEntry(PromptMessage(Role.TOOL, results, asked.kind), group.sequence))
        group.weigh()
    return groups


def _without_tools(messages: Iterable[PromptMessage]) -> list[PromptMessage]:
    """Leaves only the words of a message with calls; its reasoning belongs to the calls."""
    kept: list[PromptMessage] = []
    for message in messages:
        if not any(isinstance(part, ToolCallPart | ToolResultPart) for part in message.parts):
            kept.append(message)
            continue
        parts = tuple(p for p in message.parts if not isinstance(p, ToolCallPart | ToolResultPart | ThinkingPart))
        if any(isinstance(part, TextPart) for part in parts):
            kept.append(replace(message, parts=parts))
    return kept


Range = tuple[int, int]
"""First and last sequence."""

BUDGET_STEP_TOKENS = 128
"""In which the room for history shrinks, so that a prompt of another length does not move the window each time."""

_TOLD = "[Messages {reference} of this conversation, summed up: {text}]"

_log = logging.getLogger("denizen.history")


@record
class HistoryCutoff:
    """For a turn that is run again: the sequence at which its session ended then, and the time that it is now."""

    end: int
    now: datetime


@record
class TokenBudget:
    """In tokens: for history, what is left of the model's window, and what of it goes to notes of this turn alone."""

    tokens: int
    notes: int = 0


@record
class SessionHistory:
    """`messages` end with the question. `read` are the stored ones, the question included. `overdue` is what should be
    summed up soon.
    """

    messages: list[PromptMessage]
    read: Sequence[Message]
    overdue: Range | None = None


async def load_history(
    store: Store, opened: OpenTurn, agent: Agent, room: TokenBudget, past: HistoryCutoff | None
) -> SessionHistory:
    """Within the room and the agent's limits; a client that carries its history itself is believed."""
    turn, trigger = opened.turn, opened.trigger
    options = cast("Mapping[str, Any]", turn.options)
    question = to_entries([trigger], QUESTION)
    most = agent.limits.max_history_tokens
    budget = most if room.tokens >= most else max(room.tokens - room.tokens % BUDGET_STEP_TOKENS, 0)
    if "supplied" in options:
        supplied = [
            HistoryEntry(PromptMessage(Role(row["role"]), parts_from_json(row["parts"]))) for row in options["supplied"]
        ]
        window = plan_window([*supplied, *question], budget_tokens=budget, besides_tokens=room.notes)
        return SessionHistory(window.messages, [trigger])
    summaries, tail = await _load(store, opened, agent.limits.max_history_messages, past)
    told = [summary_message(summary) for summary in summaries if summary.text]
    begin, has_moved = _begin(summaries, tail, trigger.sequence, agent.limits.max_history_messages)
    earlier = [m for m in tail if m.turn_id != turn.id and (m.role is not Role.USER or m.sequence < trigger.sequence)]
    now = past.now if past else turn.opened_at
    read = [shorten_to_read(drop_dead_images(m, now), agent.history.storing) for m in earlier if m.sequence >= begin]
    entries = [*to_entries(read), *question]
    left = max(budget - sum(map(count_tokens, told)), 0)
    window = plan_window(entries, budget_tokens=left, besides_tokens=room.notes)
    if (window.has_moved or has_moved) and past is None:
        _log.info("history trimmed", extra={"turn": turn.id, "session": turn.session_id, "agent": turn.agent})
    overdue = None
    if past is None and agent.history.summaries.enabled is not False:
        overdue = find_gap(summaries) or plan_range(
            entries, agent.history.summaries, budget_tokens=left, max_messages=agent.limits.max_history_messages
        )
    if overdue and overdue[0] > covered_until(summaries):
        overdue = covered_until(summaries) + 1, overdue[1]
    return SessionHistory([*told, *window.messages], [*read, trigger], overdue)


def summary_message(summary: Summary) -> PromptMessage:
    """A summary as a model reads it, with the reference by which it can read the messages."""
    text = _TOLD.format(reference=summary.reference, text=summary.text)
    return PromptMessage(Role.USER, (TextPart(text),), "summary")


async def _load(
    store: Store, opened: OpenTurn, limit: int, past: HistoryCutoff | None
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
    begin = window_start(asked_at, limit)
    asked_before = max((m.sequence for m in tail if m.role is Role.USER and m.sequence < asked_at), default=begin)
    return max(begin, behind), begin > behind and window_start(asked_before, limit) < begin
