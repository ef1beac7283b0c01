"""Live events of a turn, for whoever watches it run: a terminal, a page, an API stream.

Live events are best effort; what counts is recorded. A watcher that comes late reads the turn from the store.
"""

from __future__ import annotations

from denizen.domain.approval import Approval
from denizen.domain.ids import CallId, TurnId
from denizen.domain.json import JsonObject
from denizen.domain.message import ToolCallPart
from denizen.domain.record import record
from denizen.domain.turn import TurnFailure, TurnStatus
from denizen.domain.usage import Usage


@record
class TurnStarted:
    """A turn began."""

    turn_id: TurnId
    agent: str
    model: str


@record
class TextAdded:
    """Answer text grew. `retract` is true when what was streamed before is taken back first (a tool call followed)."""

    text: str
    retract: bool = False


@record
class ReasoningAdded:
    """The model's reasoning grew. Sent only for agents that show it."""

    text: str


@record
class ToolStarted:
    """A tool call began."""

    call_id: CallId
    tool: str
    args: JsonObject


@record
class ToolFinished:
    """A tool call ended. `text` is the result that the model reads."""

    call_id: CallId
    tool: str
    text: str
    is_error: bool
    duration_ms: int


@record
class ApprovalRequested:
    """A call waits for people; it comes again when the turn is taken up after a restart."""

    approval: Approval


@record
class ApprovalDecided:
    """The wait is over, whatever came of it."""

    approval: Approval


@record
class Notice:
    """Something to tell the watcher that is not part of the answer (loading a model, waiting in line). One about a call
    holds until that ends.
    """

    text: str
    call_id: CallId | None = None


@record(kw_only=True)
class TurnFinished:
    """`images` are pictures of the model and of tools, as data URIs or web addresses; `cards` are cards, buttons and
    files of tools as Markdown; `reasoning` is empty unless the agent is to show it. `calls` are of the asker's tools,
    and left to the asker.
    """

    turn_id: TurnId
    status: TurnStatus
    reply: str
    usage: Usage
    failure: TurnFailure | None = None
    images: tuple[str, ...] = ()
    cards: str = ""
    reasoning: str = ""
    calls: tuple[ToolCallPart, ...] = ()


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
