"""The steps of a turn, with what they used, and the tool calls of a step, with their verdicts. Called by `turns`."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import escape
from denizen.adapters.store.dialect import Dialect, InsertInto
from denizen.adapters.store.tables.talk import conversations
from denizen.adapters.store.tables.turns import steps, tool_calls, turns
from denizen.adapters.store.usage import reopen_day, usage_of, usage_values
from denizen.domain.budget import utc_day
from denizen.domain.ids import TurnId
from denizen.domain.tool import Origin, Tier
from denizen.domain.turn import CallRecord, Step
from denizen.domain.verdict import Decision, Verdict

_STEPS = sa.select(steps).where(steps.c.turn_id == sa.bindparam("turn")).order_by(steps.c.number)
_CALLS = (
    sa.select(tool_calls)
    .where(tool_calls.c.turn_id == sa.bindparam("turn"))
    .order_by(tool_calls.c.step, tool_calls.c.position)
)


@cache
def _calls_in(dialect: Dialect) -> sa.Select[Any]:
    no_thread = conversations.c.thread == sa.literal_column("''")
    room = sa.case((no_thread, conversations.c.channel), else_=conversations.c.thread)
    asked = sa.and_(
        turns.c.principal_kind == sa.bindparam("asker_kind"), turns.c.principal_id == sa.bindparam("asker_id")
    )
    return (
        sa.select(tool_calls)
        .join(turns, turns.c.id == tool_calls.c.turn_id)
        .join(conversations, conversations.c.id == turns.c.conversation_id)
        .where(turns.c.agent == sa.bindparam("whose"), conversations.c.platform == sa.bindparam("where"))
        .where(sa.or_(dialect.among(room, "rooms"), asked))
        .order_by(tool_calls.c.created_at.desc(), tool_calls.c.turn_id, tool_calls.c.step.desc())
        .limit(sa.bindparam("most"))
    )


@cache
def _add_step(insert: InsertInto) -> sa.Executable:
    turn = sa.bindparam("turn_id", type_=sa.Text())
    agent = sa.select(turns.c.agent).where(turns.c.id == turn).scalar_subquery()
    principal = (
        sa.select(turns.c.principal_kind + sa.literal(":", sa.Text()) + sa.type_coerce(turns.c.principal_id, sa.Text()))
        .where(turns.c.id == turn)
        .scalar_subquery()
    )
    given: dict[str, Any] = {column.name: sa.bindparam(column.name) for column in steps.c}
    # Empty where there is no such turn, so that the reference is what fails.
    found = {"turn_id": turn, "agent": sa.func.coalesce(agent, ""), "principal": sa.func.coalesce(principal, "")}
    return insert(steps).values(given | found).on_conflict_do_nothing().returning(steps.c.number)


@cache
def _add_call(insert: InsertInto) -> sa.Executable:
    return insert(tool_calls).on_conflict_do_nothing().returning(tool_calls.c.position)


def add_step(connection: sa.Connection, insert: InsertInto, step: Step) -> bool:
    """Repeating it changes nothing, and gives False."""
    day = utc_day(step.created_at)
    added = connection.execute(
        _add_step(insert),
        {
            "turn_id": step.turn_id,
            "number": step.number,
            "model": step.model,
            "purpose": step.purpose,
            "finish_reason": step.finish_reason,
            "duration_ms": step.duration_ms,
            "created_at": step.created_at,
            "day": day,
            **usage_values(step.usage),
        },
    )
    is_new = added.scalar() is not None
    if is_new:
        reopen_day(connection, day)
    return is_new


def list_steps(connection: sa.Connection, turn_id: TurnId) -> list[Step]:
    """By number."""
    return [_step(row) for row in connection.execute(_STEPS, {"turn": turn_id})]


def add_call(connection: sa.Connection, insert: InsertInto, record: CallRecord) -> bool:
    """Repeating it changes nothing, and gives False."""
    added = connection.execute(
        _add_call(insert),
        {
            "turn_id": record.turn_id,
            "step": record.step,
            "position": record.position,
            "call_id": record.call_id,
            "tool": record.tool,
            "args": dict(record.args),
            "origin": record.origin.value,
            "tier": int(record.tier),
            "decision": record.verdict.decision.value,
            "verdict_tier": int(record.verdict.tier),
            "reason": record.verdict.reason,
            "decided_by": record.verdict.decided_by,
            "result": record.result,
            "is_error": record.is_error,
            "duration_ms": record.duration_ms,
            "cached": record.cached,
            "created_at": record.created_at,
        },
    )
    return added.first() is not None


def list_calls(connection: sa.Connection, turn_id: TurnId) -> list[CallRecord]:
    """By step and position."""
    return [_call(row) for row in connection.execute(_CALLS, {"turn": turn_id})]


def list_of_rooms(dialect: Dialect, rooms: Collection[str]) -> object:
    """The parameter `rooms` of `list_calls_in`."""
    return dialect.list_of([escape(room) for room in sorted(set(rooms))])


def list_calls_in(connection: sa.Connection, dialect: Dialect, bounds: dict[str, Any]) -> list[CallRecord]:
    """Newest first. `bounds` are `whose` (the agent), `where` (the platform), `rooms`, `asker_kind` and `asker_id`
    (empty for nobody) and `most`.
    """
    return [_call(row) for row in connection.execute(_calls_in(dialect), bounds)]


def _step(row: sa.Row[Any]) -> Step:
    return Step(
        row.turn_id,
        row.number,
        row.model,
        row.purpose,
        row.finish_reason,
        usage_of(row),
        row.duration_ms,
        row.created_at,
    )


def _call(row: sa.Row[Any]) -> CallRecord:
    return CallRecord(
        turn_id=row.turn_id,
        step=row.step,
        position=row.position,
        call_id=row.call_id,
        tool=row.tool,
        args=row.args,
        origin=Origin(row.origin),
        tier=Tier(row.tier),
        verdict=Verdict(Decision(row.decision), Tier(row.verdict_tier), row.reason, row.decided_by),
        result=row.result,
        is_error=row.is_error,
        duration_ms=row.duration_ms,
        cached=row.cached,
        created_at=row.created_at,
    )
