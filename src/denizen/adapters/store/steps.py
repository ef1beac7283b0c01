"""The steps of a turn, with what they used, and the tool calls of a step, with their verdicts. Called by `turns`."""

from __future__ import annotations

from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.dialect import InsertInto
from denizen.adapters.store.tables import steps, tool_calls, turns
from denizen.adapters.store.usage import usage_of, usage_values
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
    return insert(tool_calls).on_conflict_do_nothing().inline()


def add_step(connection: sa.Connection, insert: InsertInto, step: Step) -> bool:
    """Repeating it changes nothing, and gives False."""
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
            "day": utc_day(step.created_at),
            **usage_values(step.usage),
        },
    )
    return added.scalar() is not None


def list_steps(connection: sa.Connection, turn_id: TurnId) -> list[Step]:
    """By number."""
    return [_step(row) for row in connection.execute(_STEPS, {"turn": turn_id})]


def add_call(connection: sa.Connection, insert: InsertInto, record: CallRecord) -> None:
    """Repeating it changes nothing."""
    connection.execute(
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


def list_calls(connection: sa.Connection, turn_id: TurnId) -> list[CallRecord]:
    """By step and position."""
    return [_call(row) for row in connection.execute(_CALLS, {"turn": turn_id})]


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
