"""Summaries in the background: the oldest part of a session that has grown is summed up, and no reply waits for it.

A turn finds out what is overdue when it gathers its history (`session_history.plan_range`), and hands that in when it
is over. The durable run sums up that fixed stretch; the next turns read the summary in its place. Until it is there,
and when it fails, the history is trimmed without a word, but for a line in the log. Earlier summaries that would take
too much of the prompt are merged into the new one.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, cast

import anyio

from denizen.domain.agent import Agent
from denizen.domain.errors import Conflict, DenizenError, list_fields
from denizen.domain.ids import SessionId, TurnId, derive
from denizen.domain.json import Json, JsonObject
from denizen.domain.prompt import estimate_tokens
from denizen.domain.summary import Summary
from denizen.domain.usage import Usage
from denizen.engine.budget.budgets import Payer, TurnBudget
from denizen.engine.configuration.generation import Generation, Runtime
from denizen.engine.intake.opening import OpenTurn, load_turn
from denizen.engine.loop.services import EngineServices
from denizen.engine.prompt.session_history import Range
from denizen.engine.summaries.summarizer import (
    SummaryRange,
    SummaryWriter,
    WrittenSummary,
    choose_summary_model,
    keep_summary,
    load_messages,
    tell_messages,
    write_summary,
)

WORKFLOW = "summary"
"""The durable run's name. It is stored; changing it would orphan runs that are under way."""

REST_S = 600.0
"""After a failure the session is left alone for so long."""

MERGE_SHARE = 2
"""Summaries are merged when together they are longer than so many of the greatest length."""

_log = logging.getLogger("denizen.summaries")


class BackgroundSummaries:
    """Takes in what is overdue and sees it through. One of a process."""

    def __init__(self, runtime: Runtime, services: EngineServices) -> None:
        self._runtime = runtime
        self._services = services
        self._under_way: set[SessionId] = set()
        self._rests_until_s: dict[SessionId, float] = {}
        services.durable.register(WORKFLOW, self._run)

    async def submit(self, opened: OpenTurn, agent: Agent, stretch: Range) -> None:
        """Starts the run, unless one is under way for the session, one has failed lately, or the agent's models are
        too small to be asked without being told to. A fault is a line in the log: the turn is over.
        """
        session, clock = opened.turn.session_id, self._services.clock
        is_resting = clock.monotonic_s() < self._rests_until_s.get(session, 0.0)
        if session in self._under_way or is_resting:
            return
        first, last = stretch
        key = derive("summary", session, f"{first}-{last}", opened.turn.id)
        payload: JsonObject = {"turn_id": opened.turn.id, "first": first, "last": last}
        try:
            if self._may_write(agent):
                await self._services.durable.submit(WORKFLOW, key, payload)
        except DenizenError as error:
            _log.warning("summary not begun: %s", error.message, extra={"session": session, **error.fields})

    def _may_write(self, agent: Agent) -> bool:
        """Whether this model may write a summary unasked: a small one takes minutes, while the next answer waits."""
        if agent.history.summaries.enabled is not None:
            return agent.history.summaries.enabled
        return not choose_summary_model(self._runtime.current.models, agent).capabilities.small

    async def _run(self, payload: JsonObject) -> Json:
        row = cast("dict[str, Any]", payload)
        opened = await load_turn(self._services.store, TurnId(row["turn_id"]))
        session = opened.turn.session_id
        if session in self._under_way:
            return {"status": "busy"}
        self._under_way.add(session)
        try:
            async with self._runtime.lease() as generation:
                return {"status": await self._sum_up(opened, generation, (row["first"], row["last"]))}
        except (DenizenError, TimeoutError) as error:
            self._rests_until_s[session] = self._services.clock.monotonic_s() + REST_S
            why = error.message if isinstance(error, DenizenError) else "it took too long"
            about = {"session": session, "agent": opened.turn.agent, **list_fields(error)}
            _log.warning("summary failed: %s", why, extra=about)
            return {"status": "failed"}
        finally:
            self._under_way.discard(session)

    async def _sum_up(self, opened: OpenTurn, generation: Generation, asked: Range) -> str:
        agent = generation.agent(opened.turn.agent)
        writer = self._writer(opened, generation, agent)
        stretch = await self._load(opened, writer, asked)
        if stretch is None:
            return "late"
        digest = stretch.digest
        if await self._services.durable.step("read", lambda: _given(digest)) != digest:
            raise Conflict("The session was changed while it was summed up.", code="summary_disturbed")
        written = WrittenSummary("", Usage(), 0)
        if any(tell_messages(stretch.messages)):
            with anyio.fail_after(agent.limits.turn_timeout_s):
                written = await write_summary(writer, stretch)
        summary = await keep_summary(self._services.store, stretch, written.text, self._services.clock)
        _log.info(
            "summary",  # nothing of what was said
            extra={
                "session": summary.session_id,
                "range": summary.reference,
                "agent": agent.name,
                "model": writer.model.name,
                "tokens": estimate_tokens(summary.text),
                "left_out": written.left_out,
                "input_tokens": written.usage.input_tokens,
                "output_tokens": written.usage.output_tokens,
            },
        )
        return "done"

    async def _load(self, opened: OpenTurn, writer: SummaryWriter, asked: Range) -> SummaryRange | None:
        """None when there is nothing left to do: another run was faster, or the session is over."""
        first, last = asked
        key = opened.turn.session_id
        async with self._services.store.work(write=False) as work:
            session = await work.sessions.get(key)
            known = await work.summaries.list_summaries(key)
            messages = await load_messages(work, key, first, last)
        overlaps = any(each.first <= last and first <= each.last for each in known)
        if session.closed_at is not None or overlaps or not messages:
            return None
        merged = plan_merge(known, first, limit_chars=writer.limit_chars)
        return SummaryRange(session=session, first=first, last=last, messages=messages, known=known, merged=merged)

    def _writer(self, opened: OpenTurn, generation: Generation, agent: Agent) -> SummaryWriter:
        """Who asked in the turn that found it overdue pays."""
        payer = Payer.from_turn(opened.turn, opened.place, generation, key=f"{opened.turn.id}:summary")
        budgets = TurnBudget(payer, self._services.store, self._services.live, self._services.clock)
        return SummaryWriter(
            choose_summary_model(generation.models, agent), agent, budgets, self._services.durable.step
        )


def plan_merge(known: Sequence[Summary], first: int, *, limit_chars: int) -> Sequence[Summary]:
    """The earlier summaries that a new one of at most `limit_chars`, which begins at `first`, takes the place of: all,
    when together they would take too much of the prompt, or none.
    """
    is_at_end = not known or known[-1].last < first
    taken = sum(len(each.text) for each in known) + limit_chars
    return known if is_at_end and taken > MERGE_SHARE * limit_chars else ()


async def _given(value: str) -> Json:
    return value
