"""What travels between a Denizen server and its clients: events of a chat, answers of `/api`, the shape of an error.

Plain dataclasses of the standard library, so that the server pays nothing for them. The server encodes with
`encode_event` and `to_json`; clients decode with `decode_event` and `from_json`, which leave out what they do not know:
an older client can read a newer server. What a turn leaves behind is in `records`, sums of usage in `statistics`,
sources and snapshots in `knowledge`, unanswered questions in `gaps`; all of it may be imported from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, asdict, dataclass, field, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, ClassVar, Protocol, TypeVar, get_args, get_origin, get_type_hints

from denizen_sdk.gaps import ClosedGaps, DecidedProposal, GapInfo, GapList, ProposalInfo
from denizen_sdk.knowledge import (
    PublishedSnapshot,
    RepositoryInfo,
    SnapshotInfo,
    SnapshotRemoteChange,
    SnapshotRemoteInfo,
    SourceInfo,
    SourceProgress,
    SourceSettings,
    StartedSnapshot,
    StartedSync,
    SyncInfo,
    SyncProgress,
)
from denizen_sdk.records import (
    ApprovalInfo,
    CallInfo,
    CitationInfo,
    Json,
    MessageInfo,
    MessageShare,
    ProblemDetails,
    PromptInfo,
    RouteInfo,
    SegmentInfo,
    StepInfo,
    ToolUse,
    TurnInfo,
    UsageInfo,
)
from denizen_sdk.statistics import UsageOverview, UsageSum, UsageTrend

__all__ = [
    "MAX_RESULT_CHARS",
    "SYNC_EVENTS",
    "AgentConfig",
    "AgentConfigSet",
    "AgentListing",
    "ApprovalDecidedEvent",
    "ApprovalInfo",
    "ApprovalRequestedEvent",
    "CallInfo",
    "CancelResult",
    "ChatEvent",
    "ChatRequest",
    "CitationInfo",
    "ClosedGaps",
    "ComputedDay",
    "DecidedProposal",
    "GapInfo",
    "GapList",
    "HealthReport",
    "Json",
    "MessageInfo",
    "MessageShare",
    "ModelListing",
    "NoticeEvent",
    "ProblemDetails",
    "PromptInfo",
    "ProposalInfo",
    "PublishedSnapshot",
    "ReasoningAddedEvent",
    "Record",
    "RepositoryInfo",
    "RouteInfo",
    "SegmentInfo",
    "SnapshotInfo",
    "SnapshotRemoteChange",
    "SnapshotRemoteInfo",
    "SourceInfo",
    "SourceProgress",
    "SourceSettings",
    "StartedSnapshot",
    "StartedSync",
    "StepInfo",
    "SyncEvent",
    "SyncInfo",
    "SyncProgress",
    "TextAddedEvent",
    "TextRetractedEvent",
    "ToolFinishedEvent",
    "ToolListing",
    "ToolStartedEvent",
    "ToolUse",
    "TurnFailedEvent",
    "TurnFinishedEvent",
    "TurnInfo",
    "TurnOpenedEvent",
    "UnknownEvent",
    "UsageInfo",
    "UsageOverview",
    "UsageSum",
    "UsageTrend",
    "decode_event",
    "decode_sync_event",
    "encode_event",
    "from_json",
]  # fmt: skip

MAX_RESULT_CHARS = 1000
"""How much of a tool's result an event carries (inventory 4.11)."""


# --- events of POST /api/chat ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TurnOpenedEvent:
    turn_id: str
    agent: str
    model: str


@dataclass(frozen=True, slots=True)
class TextAddedEvent:
    text: str


@dataclass(frozen=True, slots=True)
class TextRetractedEvent:
    """What was streamed so far was not the answer: take it back."""


@dataclass(frozen=True, slots=True)
class ReasoningAddedEvent:
    """What the model reasons, grew. Only agents that are to show it tell it."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolStartedEvent:
    call_id: str
    tool: str
    args: Json = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class ToolFinishedEvent:
    """`text` holds at most `MAX_RESULT_CHARS` characters; `truncated` says that there was more."""

    call_id: str
    tool: str
    text: str
    is_error: bool = False
    truncated: bool = False
    duration_ms: int = 0


@dataclass(frozen=True, slots=True)
class ApprovalRequestedEvent:
    """The turn waits until somebody decides with `POST /api/approvals/{id}`, or nobody has in time."""

    approval: ApprovalInfo


@dataclass(frozen=True, slots=True)
class ApprovalDecidedEvent:
    """The wait is over, whatever came of it."""

    approval: ApprovalInfo


@dataclass(frozen=True, slots=True)
class NoticeEvent:
    """Something that is not part of the answer: a model is loading, a request waits."""

    text: str


@dataclass(frozen=True, slots=True)
class TurnFinishedEvent:
    """The last event of a turn that answered or was stopped. `status` is `done` or `cancelled`; `images` are pictures
    that the model made, as data URIs; `reasoning` is empty unless the agent is to show it.
    """

    turn_id: str
    status: str
    reply: str
    usage: UsageInfo = field(default_factory=UsageInfo)
    images: tuple[str, ...] = ()
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class TurnFailedEvent:
    """The last event of a turn that has no answer."""

    turn_id: str
    error: ProblemDetails


@dataclass(frozen=True, slots=True)
class UnknownEvent:
    """An event of a newer server."""

    type: str
    data: Json


ChatEvent = (
    TurnOpenedEvent
    | TextAddedEvent
    | TextRetractedEvent
    | ReasoningAddedEvent
    | ToolStartedEvent
    | ToolFinishedEvent
    | ApprovalRequestedEvent
    | ApprovalDecidedEvent
    | NoticeEvent
    | TurnFinishedEvent
    | TurnFailedEvent
)  # fmt: skip

_EVENTS: dict[str, type[ChatEvent]] = {
    "turn": TurnOpenedEvent,
    "text": TextAddedEvent,
    "retract": TextRetractedEvent,
    "reasoning": ReasoningAddedEvent,
    "tool_started": ToolStartedEvent,
    "tool_finished": ToolFinishedEvent,
    "approval_request": ApprovalRequestedEvent,
    "approval_decided": ApprovalDecidedEvent,
    "notice": NoticeEvent,
    "finished": TurnFinishedEvent,
    "error": TurnFailedEvent,
}
_TYPES = {kind: name for name, kind in _EVENTS.items()}


# --- events of GET /api/sync/{run}/events -----------------------------------------------------------------------------

SyncEvent = SyncInfo | SourceProgress | UnknownEvent

SYNC_EVENTS: Mapping[str, type[SyncInfo | SourceProgress]] = {
    "run": SyncInfo,
    "progress": SourceProgress,
    "end": SyncInfo,
}
"""By the name of the event: how all of it stands, at the beginning; a source that went on; and the result."""


# --- requests and answers of /api ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """`agent` empty means the default one. `session` names a history of the caller's own; `new` starts it afresh."""

    message: str
    agent: str = ""
    session: str = "default"
    new: bool = False


@dataclass(frozen=True, slots=True)
class HealthReport:
    """`tools` is None while a source of tools does not answer."""

    status: str
    version: str
    uptime_s: float
    generation: int
    agents: int
    provider: str
    model: str
    tools: int | None


@dataclass(frozen=True, slots=True)
class AgentListing:
    """`provider` is empty when the agent's model is not in the list of models. `is_embedded`: it answers with the
    small built-in model.
    """

    name: str
    description: str
    model: str
    provider: str
    is_default: bool
    is_embedded: bool = False


@dataclass(frozen=True, slots=True)
class ModelListing:
    name: str
    provider: str
    aliases: tuple[str, ...]
    fallbacks: tuple[str, ...]
    context_tokens: int
    is_small: bool
    is_embedded: bool = False


@dataclass(frozen=True, slots=True)
class ToolListing:
    """`tier` is the risk that the gate sees: 0 harmless to 3 dangerous."""

    name: str
    description: str
    tier: int
    source: str
    read_only: bool
    parameters: Json


@dataclass(frozen=True, slots=True)
class CancelResult:
    """`cancelled` is false when the turn had ended already, or runs in another process."""

    cancelled: bool


@dataclass(frozen=True, slots=True)
class ComputedDay:
    """`date` is a day of UTC, `rows` how many sums it has."""

    date: str
    rows: int


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """How an agent is set up: by its configuration, and by the set of settings `name` that lies over it (empty when
    none is active), of which `changed` names the fields. Texts are None where there are none, and for callers who are
    neither owner nor admin. `default_model` is `auto` where it is chosen for each question.
    """

    agent: str
    name: str
    response_style: str
    language: str
    default_model: str
    max_steps_multiplier: float
    citation_format: str
    temperature: float | None = None
    additional_prompt: str | None = None
    search_instructions: str | None = None
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentConfigSet:
    """One of an agent's named sets of settings. `changed` names the fields that it sets."""

    name: str
    is_active: bool
    changed: tuple[str, ...]
    updated_at: str


# --- JSON ------------------------------------------------------------------------------------------------------------


class _IsDataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


Record = TypeVar("Record", bound=_IsDataclass)


def encode_event(event: ChatEvent) -> Json:
    """`{"type": ..., field: value}`."""
    return {"type": _TYPES[type(event)], **asdict(event)}


def decode_event(row: Json) -> ChatEvent | UnknownEvent:
    """The inverse of `encode_event`. Raises TypeError when a field that has no default is missing."""
    name = str(row.get("type", ""))
    kind = _EVENTS.get(name)
    return UnknownEvent(name, row) if kind is None else from_json(kind, row)


def decode_sync_event(name: str, row: Json) -> SyncEvent:
    """Raises as `decode_event`."""
    kind = SYNC_EVENTS.get(name)
    return UnknownEvent(name, row) if kind is None else from_json(kind, row)


def from_json(kind: type[Record], row: Mapping[str, Any]) -> Record:
    """A record of that kind from a JSON object; what the record has no field for is left out."""
    return kind(**{name: _read(hint, row[name]) for name, hint in _hints(kind).items() if name in row})


@cache
def _hints(kind: type[Any]) -> Mapping[str, Any]:
    return {name: hint for name, hint in get_type_hints(kind).items() if name in kind.__dataclass_fields__}


def _read(hint: Any, value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """The value as a field with that annotation holds it."""
    if value is None:
        return None
    inner = get_args(hint)
    if get_origin(hint) is UnionType:
        return _read(next(each for each in inner if each is not NoneType), value)
    if get_origin(hint) is tuple:
        return tuple(_read(inner[0], each) for each in value)
    if get_origin(hint) is dict:
        return {key: _read(inner[1], each) for key, each in value.items()}
    return from_json(hint, value) if is_dataclass(hint) and isinstance(hint, type) else value
