"""Live events of a turn, for whoever watches it run: a terminal, a page, an API stream.

Live events are best effort; what counts is recorded. A watcher that comes late reads the turn from the store.
"""

from __future__ import annotations

from dataclasses import dataclass

from denizen.domain.approval import Approval
from denizen.domain.ids import CallId, TurnId
from denizen.domain.json import JsonObject
from denizen.domain.turn import TurnFailure, TurnStatus
from denizen.domain.usage import Usage


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """A turn began."""

    turn_id: TurnId
    agent: str
    model: str


@dataclass(frozen=True, slots=True)
class TextAdded:
    """Answer text grew. `retract` is true when what was streamed before is taken back first (a tool call followed)."""

    text: str
    retract: bool = False


@dataclass(frozen=True, slots=True)
class ReasoningAdded:
    """The model's reasoning grew. Sent only for agents that show it."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool call began."""

    call_id: CallId
    tool: str
    args: JsonObject


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """A tool call ended. `text` is the result that the model reads."""

    call_id: CallId
    tool: str
    text: str
    is_error: bool
    duration_ms: int


@dataclass(frozen=True, slots=True)
class ApprovalRequested:
    """A call waits for people; it comes again when the turn is taken up after a restart."""

    approval: Approval


@dataclass(frozen=True, slots=True)
class ApprovalDecided:
    """The wait is over, whatever came of it."""

    approval: Approval


@dataclass(frozen=True, slots=True)
class Notice:
    """Something to tell the watcher that is not part of the answer (loading a model, waiting in line). One about a call
    holds until that ends.
    """

    text: str
    call_id: CallId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFinished:
    """`images` are pictures of the model and of tools, as data URIs or web addresses; `cards` are cards, buttons and
    files of tools as Markdown; `reasoning` is empty unless the agent is to show it.
    """

    turn_id: TurnId
    status: TurnStatus
    reply: str
    usage: Usage
    failure: TurnFailure | None = None
    images: tuple[str, ...] = ()
    cards: str = ""
    reasoning: str = ""


TurnEvent = (
    TurnStarted
    | TextAdded
    | ReasoningAdded
    | ToolStarted
    | ToolFinished
    | ApprovalRequested
    | ApprovalDecided
    | Notice
    | TurnFinished
)
