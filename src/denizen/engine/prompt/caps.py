"""What is kept of single messages, and what is read of an earlier result of a tool: bounds for agents on small models
(inventory 5.3), of which 0 is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from denizen.domain.agent import Storing
from denizen.domain.json import Json
from denizen.domain.message import FilePart, Message, Part, Role, TextPart, ToolResultPart

_ELLIPSIS = "…"


def to_store(parts: Sequence[Part], role: Role, rule: Storing) -> tuple[Part, ...]:
    """What is kept of a message, by who said it."""
    limit = {Role.USER: rule.user_chars, Role.ASSISTANT: rule.agent_chars, Role.TOOL: rule.tool_chars}.get(role, 0)
    return tuple(_cut(part, limit) for part in parts)


def to_read(message: Message, rule: Storing) -> Message:
    """A stored message as the model of a later turn reads it."""
    if message.role is not Role.TOOL or not rule.prompt_tool_chars:
        return message
    return replace(message, parts=tuple(_cut(part, rule.prompt_tool_chars) for part in message.parts))


def without_payloads(value: Json) -> Json:
    """What a result showed to people, without the pictures and files themselves (inventory L7)."""
    match value:
        case str():
            return f"{value.partition(',')[0][:80]},…" if value.startswith("data:") else value
        case Mapping():
            return {key: without_payloads(each) for key, each in value.items()}
        case Sequence():
            return [without_payloads(each) for each in value]
        case _:
            return value


def _cut(part: Part, limit: int) -> Part:
    if limit and isinstance(part, TextPart | FilePart | ToolResultPart) and len(part.text) > limit:
        return replace(part, text=part.text[: limit - 1] + _ELLIPSIS)
    return part
