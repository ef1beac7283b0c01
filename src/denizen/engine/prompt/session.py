"""The messages of an agent's own history as a model sees them, and what they weigh. Which of them are read decides
`window.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from denizen.domain.message import (
    FilePart,
    ImagePart,
    Message,
    Part,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from denizen.domain.prompt import PromptMessage, estimate_tokens
from denizen.domain.taint import of_stored
from denizen.engine.prompt.marks import marked

TOKENS_PER_MESSAGE = 4
TOKENS_PER_IMAGE = 1000
IMAGE_LIFE_S = 12 * 3600.0
"""After that the address of a picture is not given to a model any more; Discord's live for 24 hours."""

_REMARK = TextPart("[a picture was shown here]")


def from_stored(messages: Iterable[Message], kind: str = "history") -> list[PromptMessage]:
    """Stored messages as a model sees them."""
    return [
        PromptMessage(message.role, marked(message), kind, taint=of_stored(message), author=message.author.id)
        for message in messages
        if message.parts
    ]


def without_dead_images(message: Message, now: datetime) -> Message:
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
