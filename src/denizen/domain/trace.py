"""The record of a prompt's parts, for people who ask why.

Names, sizes and hashes. The words of messages are not here: they stay in their session and in the archive, where they
can be forgotten. Made by `engine/loop/steps`, kept by the store, read by `engine/inspection/queries`.
"""

from __future__ import annotations

import hashlib

from denizen.domain.ids import TurnId
from denizen.domain.prompt import Segment, Stability, estimate_tokens
from denizen.domain.record import record

KEPT = frozenset({Stability.FOREVER, Stability.CONFIG})
"""Segments whose text is kept, since it comes from the configuration. Others may hold somebody's words."""


@record(kw_only=True)
class SegmentUse:
    """A segment of a system prompt. `tokens` are estimated; `text` is None where it is not kept."""

    name: str
    stability: Stability
    chars: int
    tokens: int
    sha256: str
    text: str | None = None

    @classmethod
    def of(cls, segment: Segment) -> SegmentUse:
        return cls(
            name=segment.name,
            stability=segment.stability,
            chars=len(segment.text),
            tokens=estimate_tokens(segment.text),
            sha256=sha256_hex(segment.text),
            text=segment.text if segment.stability in KEPT else None,
        )


@record
class MessageUse:
    """The messages of one kind in a prompt (`PromptMessage.kind`), in the order of their first."""

    kind: str
    count: int
    tokens: int


@record(kw_only=True)
class PromptUse:
    """The parts of a step's request. A later step has a record of its own only when its segments or tools differ; all
    else that it adds are results of tools.

    `model` is the one that was asked, which a fallback may have answered for. `memories` are the ids of those that came
    up unasked.
    """

    turn_id: TurnId
    step: int
    model: str
    segments: tuple[SegmentUse, ...]
    messages: tuple[MessageUse, ...]
    tools: tuple[str, ...] = ()
    tool_tokens: int = 0
    memories: tuple[str, ...] = ()


def sha256_hex(text: str) -> str:
    """In hexadecimal; halves of surrogate pairs count as what they are."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
