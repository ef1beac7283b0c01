"""Marks in what a model reads of a talk: the date, who speaks, and when time has passed.

A mark is decided when the message is written and kept with it, so that the bytes of a prompt do not change later.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

from denizen.domain.agent import Agent, StoragePolicy, TimestampPolicy
from denizen.domain.data_uri import describe_data_uris
from denizen.domain.evidence import READ, readings_from_meta
from denizen.domain.json import Json, JsonObject
from denizen.domain.message import (
    FilePart,
    ImagePart,
    Message,
    Part,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from denizen.domain.names import format_name
from denizen.domain.prompt import PromptMessage, estimate_tokens
from denizen.domain.taint import find_message_taint


def time_mark(rule: TimestampPolicy, now: datetime, before: datetime | None) -> str:
    """The line that tells the time after a gap; empty when the last message is recent. The first names the zone."""
    if before is not None and (now - before).total_seconds() < rule.gap_s:
        return ""
    zone = f" {rule.zone}" if before is None else ""
    return f"[{now.astimezone(ZoneInfo(rule.zone)):%Y-%m-%d %H:%M}{zone}]"


def agent_timezone(agent: Agent) -> str:
    """In which the agent is told times and dates: an IANA name."""
    return agent.history.timestamps.zone if agent.history.timestamps else "UTC"


def date_line(now: datetime, zone: str = "UTC") -> str:
    """The date in words, for whoever is to know it."""
    return f"Today is {now.astimezone(ZoneInfo(zone)):%A, %Y-%m-%d} ({zone})."


def date_mark(now: datetime, before: datetime | None, zone: str = "UTC") -> str:
    """The line with the date in front of the first message of a session, and of the first on another day; empty for
    the others. `before` is when somebody wrote there last.
    """
    line = f"[{date_line(now, zone)}]"
    return "" if before is not None and line == f"[{date_line(before, zone)}]" else line


def tells_date(message: PromptMessage, line: str) -> bool:
    """Whether a user message begins with that date."""
    first = message.parts[0] if message.role is Role.USER and message.parts else None
    return isinstance(first, TextPart) and first.text.startswith(f"[{line}]")


def mark_message(message: Message) -> tuple[Part, ...]:
    """The parts of a stored message with its marks in front of its first text."""
    speaker, lines = message.meta.get("speaker"), [message.meta.get(mark) for mark in ("date", "time")]
    if not speaker and not any(lines):
        return message.parts
    head = "".join(f"{line}\n" for line in lines if line)
    if speaker:
        head += f"{format_name(str(speaker))}: "
    return _with_head(message.parts, head)


def _with_head(parts: Sequence[Part], head: str) -> tuple[Part, ...]:
    if parts and isinstance(parts[0], TextPart):
        return (TextPart(head + parts[0].text), *parts[1:])
    return (TextPart(head.strip()), *parts)


_ELLIPSIS = "…"


def shorten_to_store(parts: Sequence[Part], role: Role, rule: StoragePolicy) -> tuple[Part, ...]:
    """Shortens the parts of a message as they are stored, by who said it. Data URIs in their texts are noted."""
    limit = {Role.USER: rule.user_chars, Role.ASSISTANT: rule.agent_chars, Role.TOOL: rule.tool_chars}.get(role, 0)
    return tuple(_cut(part, limit) for part in note_data_uris(parts))


def shorten_to_read(message: Message, rule: StoragePolicy) -> Message:
    """A stored message as the model of a later turn reads it."""
    if message.role is not Role.TOOL or not rule.prompt_tool_chars:
        return message
    return replace(message, parts=tuple(_cut(part, rule.prompt_tool_chars) for part in message.parts))


def note_data_uris(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Returns the parts with a note in place of each data URI in a text, or in the arguments of a call."""
    return tuple(map(_note_data_uris, parts))


def _note_data_uris(part: Part) -> Part:
    match part:
        case TextPart() | FilePart() | ToolResultPart():
            return replace(part, text=describe_data_uris(part.text))
        case ToolCallPart():
            return replace(part, args=omit_argument_payloads(part.args))
        case _:
            return part


def omit_argument_payloads(args: JsonObject) -> JsonObject:
    """Returns the arguments of a call as they are kept and read again: without the pictures and files in them."""
    return {key: omit_payloads(each) for key, each in args.items()}


def omit_payloads(value: Json) -> Json:
    """Returns the data of a result, or an argument, without the pictures and files themselves."""
    match value:
        case str():
            return describe_data_uris(value)
        case Mapping():
            return {key: omit_payloads(each) for key, each in value.items()}
        case Sequence():
            return [omit_payloads(each) for each in value]
        case _:
            return value


def _cut(part: Part, limit: int) -> Part:
    if limit and isinstance(part, TextPart | FilePart | ToolResultPart) and len(part.text) > limit:
        return replace(part, text=part.text[: limit - 1] + _ELLIPSIS)
    return part


TOKENS_PER_MESSAGE = 4
TOKENS_PER_IMAGE = 1000
IMAGE_LIFE_S = 12 * 3600.0
"""After that the address of a picture is not given to a model any more; Discord's live for 24 hours."""

_REMARK = TextPart("[a picture was shown here]")


def to_prompt_messages(messages: Iterable[Message], kind: str = "history") -> list[PromptMessage]:
    """Stored messages as a model sees them."""
    return [
        PromptMessage(
            message.role,
            mark_message(message),
            kind,
            taint=find_message_taint(message),
            author=message.author.id,
            read=readings_from_meta(message.meta.get(READ)),
        )
        for message in messages
        if message.parts
    ]


def drop_dead_images(message: Message, now: datetime) -> Message:
    """Pictures of platforms stand behind addresses that expire; one dead address would fail every later request."""
    if not message.platform_id or (now - message.created_at).total_seconds() < IMAGE_LIFE_S:
        return message
    parts = tuple(
        _REMARK if isinstance(part, ImagePart) and part.url.startswith("http") else part for part in message.parts
    )
    return replace(message, parts=parts)


def count_tokens(message: PromptMessage) -> int:
    return TOKENS_PER_MESSAGE + sum(_part_tokens(part) for part in message.parts)


def _part_tokens(part: Part) -> int:
    match part:
        case TextPart() | ThinkingPart():
            return estimate_tokens(part.text)
        case ToolCallPart():
            return estimate_tokens(part.tool) + estimate_tokens(json.dumps(part.args))
        case ToolResultPart():
            return estimate_tokens(part.text)
        case FilePart():
            return estimate_tokens(part.text) + TOKENS_PER_MESSAGE
        case _:
            return TOKENS_PER_IMAGE
