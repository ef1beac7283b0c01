"""Messages: typed parts, never bare strings, and their JSON form for the store and the durable log.

A tool call and its result are parts of an assistant message and of the tool message that follows it, so that
trimming can keep them together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import Any

from denizen.domain.ids import CallId, ConversationId, MessageId, SessionId, TurnId
from denizen.domain.json import Json, JsonObject
from denizen.domain.record import record


class Role(StrEnum):
    """Who speaks, as a model sees it."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    SYSTEM = "system"


@record
class TextPart:
    """Text of a message, as it was written."""

    text: str


@record
class ThinkingPart:
    """Reasoning that a provider wants back unchanged; `signature` is opaque. Never shown unless the agent says so."""

    text: str
    signature: str = ""


@record
class ImagePart:
    """A picture by URL (https or data)."""

    url: str
    media_type: str = ""


@record
class FilePart:
    """A file that was attached; `text` is what could be read from it."""

    name: str
    media_type: str
    size_bytes: int
    text: str = ""
    url: str = ""


@record
class ToolCallPart:
    """The model asks for a tool. `args` is what it wrote; it may not fit the tool's schema yet."""

    id: CallId
    tool: str
    args: JsonObject


@record
class ToolResultPart:
    """The result of a call. `text` is what the model reads; `is_error` tells it that the call failed."""

    call_id: CallId
    tool: str
    text: str
    is_error: bool = False


Part = TextPart | ThinkingPart | ImagePart | FilePart | ToolCallPart | ToolResultPart

_KINDS: dict[str, type[Part]] = {
    "text": TextPart,
    "thinking": ThinkingPart,
    "image": ImagePart,
    "file": FilePart,
    "tool_call": ToolCallPart,
    "tool_result": ToolResultPart,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


@record
class Author:
    """Who wrote a message on its platform. `id` is the platform's; empty for the agent itself in a local session."""

    id: str
    name: str
    is_bot: bool = False


@record(kw_only=True)
class Message:
    """One stored message of a conversation.

    `session_id` is set for what belongs to one agent's own history; `sequence` orders a session and is given by the
    store. `platform_id` is the platform's own id, empty for what never was on a platform.
    """

    id: MessageId
    conversation_id: ConversationId
    role: Role
    author: Author
    parts: tuple[Part, ...]
    created_at: datetime
    session_id: SessionId | None = None
    turn_id: TurnId | None = None
    platform_id: str = ""
    sequence: int = 0
    meta: Mapping[str, Json] = field(default_factory=dict[str, Json])

    @property
    def text(self) -> str:
        return join_text(self.parts)


def join_text(parts: Iterable[Part]) -> str:
    """The words that people read: text parts only, joined by line breaks."""
    return "\n".join(part.text for part in parts if isinstance(part, TextPart))


def list_calls(parts: Iterable[Part]) -> tuple[ToolCallPart, ...]:
    """The tool calls among the parts, in order."""
    return tuple(part for part in parts if isinstance(part, ToolCallPart))


def parts_to_json(parts: Sequence[Part]) -> list[JsonObject]:
    """A list of `{"kind": ..., field: value}`; fields at their default are left out, so old rows stay readable."""
    rows: list[JsonObject] = []
    for part in parts:
        row: JsonObject = {"kind": _NAMES[type(part)]}
        for name in part.__match_args__:
            value = getattr(part, name)
            if value != "" and value is not False:
                row[name] = value
        rows.append(row)
    return rows


def parts_from_json(rows: Iterable[Mapping[str, Any]]) -> tuple[Part, ...]:
    """The inverse of `parts_to_json`. Unknown fields are ignored, so that a newer row can still be read.

    Raises ValueError for an unknown kind.
    """
    parts: list[Part] = []
    for row in rows:
        kind = _KINDS.get(str(row.get("kind")))
        if kind is None:
            raise ValueError(f"unknown message part {row.get('kind')!r}")
        values = {name: row[name] for name in kind.__match_args__ if name in row}
        if kind is TextPart or kind is ThinkingPart:
            values.setdefault("text", "")
        if kind is ToolResultPart:
            values.setdefault("text", "")
        parts.append(kind(**values))
    return tuple(parts)
