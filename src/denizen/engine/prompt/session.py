"""The session strategy: an agent's own history, trimmed to a budget (inventory T10).

Oldest first, in whole groups: an assistant message with tool calls and the results that follow it stay together, so
no result is ever without its call. The last group is always kept (TW12).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

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
from denizen.domain.prompt import PromptMessage, estimate_tokens
from denizen.engine.prompt.marks import marked

TOKENS_PER_MESSAGE = 4
TOKENS_PER_IMAGE = 1000
IMAGE_LIFE_S = 12 * 3600.0
"""After that the address of a picture is not given to a model any more; Discord's live for 24 hours."""

_REMARK = TextPart("[a picture was shown here]")


def from_stored(messages: Iterable[Message], kind: str = "history") -> list[PromptMessage]:
    """Stored messages as a model sees them."""
    return [PromptMessage(message.role, marked(message), kind) for message in messages if message.parts]


def without_dead_images(message: Message, now: datetime) -> Message:
    """Pictures of platforms stand behind addresses that expire; one dead address would fail every later request."""
    if not message.platform_id or (now - message.created_at).total_seconds() < IMAGE_LIFE_S:
        return message
    parts = tuple(
        _REMARK if isinstance(part, ImagePart) and part.url.startswith("http") else part for part in message.parts
    )
    return replace(message, parts=parts)


def plan_window(messages: Sequence[PromptMessage], *, budget_tokens: int) -> list[PromptMessage]:
    """The newest whole groups within the budget, beginning with a user message where there is one."""
    groups = _groups(messages)
    kept: list[list[PromptMessage]] = []
    spent = 0
    for group in reversed(groups):
        spent += sum(count_tokens(message) for message in group)
        if kept and spent > budget_tokens:
            break
        kept.insert(0, group)
    while len(kept) > 1 and kept[0][0].role is not Role.USER:
        kept.pop(0)
    return [message for group in kept for message in group]


def _groups(messages: Sequence[PromptMessage]) -> list[list[PromptMessage]]:
    """Tool results join the message that asked for them; results whose call is missing are left out."""
    groups: list[list[PromptMessage]] = []
    open_calls: set[str] = set()
    for message in messages:
        if message.role is Role.TOOL:
            known = tuple(p for p in message.parts if not isinstance(p, ToolResultPart) or p.call_id in open_calls)
            if known and groups:
                groups[-1].append(PromptMessage(Role.TOOL, known))
            continue
        open_calls = {part.id for part in message.parts if isinstance(part, ToolCallPart)}
        groups.append([message])
    return [_closed(group) for group in groups]


def _closed(group: list[PromptMessage]) -> list[PromptMessage]:
    """A call that never got its result (the turn was cut off) gets a result that says so."""
    answered = {p.call_id for message in group for p in message.parts if isinstance(p, ToolResultPart)}
    missing = [p for p in group[0].parts if isinstance(p, ToolCallPart) and p.id not in answered]
    if not missing:
        return group
    results = tuple(ToolResultPart(p.id, p.tool, "This call was interrupted.", is_error=True) for p in missing)
    return [*group, PromptMessage(Role.TOOL, results)]


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
