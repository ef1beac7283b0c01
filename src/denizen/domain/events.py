"""What happens in a turn while it runs, for whoever watches: a terminal, a page, an API stream.

Live events are best effort; what counts is recorded. A watcher that comes late reads the turn from the store.
"""

from __future__ import annotations

from dataclasses import dataclass

from denizen.domain.ids import CallId, TurnId
from denizen.domain.json import JsonObject
from denizen.domain.turn import TurnStatus
from denizen.domain.usage import Usage


@dataclass(frozen=True, slots=True)
class TurnStarted:
    turn_id: TurnId
    agent: str
    model: str


@dataclass(frozen=True, slots=True)
class TextAdded:
    """Answer text grew. `retract` is true when what was streamed before is taken back first (a tool call followed)."""

    text: str
    retract: bool = False


@dataclass(frozen=True, slots=True)
class ToolStarted:
    call_id: CallId
    tool: str
    args: JsonObject


@dataclass(frozen=True, slots=True)
class ToolFinished:
    call_id: CallId
    tool: str
    text: str
    is_error: bool
    duration_ms: int


@dataclass(frozen=True, slots=True)
class Notice:
    """Something to tell the watcher that is not part of the answer (loading a model, waiting in line)."""

    text: str


@dataclass(frozen=True, slots=True)
class TurnFinished:
    turn_id: TurnId
    status: TurnStatus
    reply: str
    failure: str
    failure_code: str
    usage: Usage
    failure_family: str = ""
    failure_fix: str = ""


TurnEvent = TurnStarted | TextAdded | ToolStarted | ToolFinished | Notice | TurnFinished
