"""Delegation: a turn hands a task to another agent, which works on it in a turn and a session of its own. Pure.

`engine/delegation` opens such turns and keeps the list of those in the background. A delegated turn acts on behalf of
the one who asked its parent, where that was asked: with their rights, budget and approvals.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, cast

from denizen.domain.conversation import Place, own_place
from denizen.domain.ids import AgentName, TurnId, derive
from denizen.domain.json import Json, JsonObject
from denizen.domain.record import record
from denizen.domain.taint import taint_from_json, taint_to_json
from denizen.domain.tool import Taint

PLATFORM = "delegate"
"""The platform of the places where delegated turns have their sessions."""

DELEGATE, TASK_STATUS, CANCEL_TASK = TOOL_NAMES = "delegate", "task_status", "cancel_task"
"""The tools by which models give tasks away."""

MAX_TASK_CHARS = 20_000
MAX_RESULT_CHARS = 500
"""How much of its result a background task shows."""
MAX_RUNNING = 10
"""How many background tasks of one person run at once."""
MAX_FINISHED = 100
LISTED_FOR = timedelta(hours=1)
"""A background task leaves the list so long after its end, or when there are more that ended later."""


@record(kw_only=True)
class ParentTurn:
    """The turn that hands on a task, as the delegated turn knows it. `place` is where it was asked, `taint` what it had
    read by then. `is_background`: it does not wait for the result.
    """

    id: TurnId
    agent: AgentName
    place: Place
    task_id: str
    taint: frozenset[Taint] = frozenset()
    is_background: bool = False


@record(kw_only=True)
class Delegation:
    """One task that was handed on, by `parent_id` to `turn_id`. `asker` is the key of the principal."""

    turn_id: TurnId
    task_id: str
    parent_id: TurnId
    asker: str
    is_background: bool
    created_at: datetime


class TaskState(StrEnum):
    """How far a background task has come. FAILED: it ended without a result, or was stopped."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"


@record(kw_only=True)
class BackgroundTask:
    """A background task as its asker sees it. `result` is its answer, or why there is none."""

    id: str
    turn_id: TurnId
    parent: ParentTurn
    asker: str
    agent: AgentName
    task: str
    state: TaskState
    result: str
    created_at: datetime
    finished_at: datetime | None

    @property
    def delegator(self) -> AgentName:
        """The agent that gave it away."""
        return self.parent.agent


def task_id(call_key: str) -> str:
    """Returns the id of the task that the call with that idempotency key hands on, such as `task_1a2b3c4d`."""
    return derive("task", call_key)[: len("task_") + 8]


def delegated_place(asker: str, parent: TurnId, call_key: str) -> Place:
    """Returns the place of the delegated turn's own session: the asker's own, one for each call."""
    return own_place(PLATFORM, asker, f"{PLATFORM}:{parent}:{derive('task', call_key).removeprefix('task_')}")


def parent_to_json(parent: ParentTurn) -> JsonObject:
    place = parent.place
    return {
        "turn": parent.id,
        "agent": parent.agent,
        "place": [place.platform, place.channel, place.thread],
        "task": parent.task_id,
        "taint": taint_to_json(parent.taint),
        "background": parent.is_background,
    }


def parent_from_json(value: Json) -> ParentTurn | None:
    if not isinstance(value, Mapping):
        return None
    row = cast("Mapping[str, Any]", value)
    return ParentTurn(
        id=TurnId(row["turn"]),
        agent=AgentName(row["agent"]),
        place=Place(*row["place"]),
        task_id=row["task"],
        taint=taint_from_json(row["taint"]),
        is_background=row["background"],
    )
