"""Calls of a step as they are kept for the trace: those of the model, and those that a skill made on the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from denizen.domain.ids import CallId, TurnId
from denizen.domain.message import ToolCallPart
from denizen.domain.tool import Origin
from denizen.domain.turn import CallRecord
from denizen.engine.step_record import Answer, verdict_from_json

MAX_INNER = 1000
"""Calls from within one call that are recorded; their positions begin behind those of any step."""


@dataclass(frozen=True, slots=True)
class CallPlace:
    """Where and when a call was made. `position` orders the calls of the step."""

    turn_id: TurnId
    step: int
    position: int
    at: datetime


def record_of(call: ToolCallPart, answer: Answer, place: CallPlace, *, cached: bool) -> CallRecord:
    return CallRecord(
        place.turn_id,
        place.step,
        place.position,
        call.id,
        call.tool,
        call.args,
        Origin.MODEL,
        answer.verdict.tier,
        answer.verdict,
        answer.text,
        answer.is_error,
        answer.duration_ms,
        cached,
        place.at,
    )


def inner_records(rows: Sequence[Mapping[str, Any]], place: CallPlace) -> Iterator[CallRecord]:
    """The calls within the one at that place, behind those of the step (X-internal-calls). `rows` are as
    `step_record.outcome_to_json` writes them.
    """
    for number, row in enumerate(rows[:MAX_INNER]):
        verdict = verdict_from_json(row)
        yield CallRecord(
            place.turn_id,
            place.step,
            (place.position + 1) * MAX_INNER + number,
            CallId(row["id"]),
            row["tool"],
            row["args"],
            Origin.SKILL,
            verdict.tier,
            verdict,
            row["text"],
            row["is_error"],
            row["duration_ms"],
            cached=False,
            created_at=place.at,
        )
