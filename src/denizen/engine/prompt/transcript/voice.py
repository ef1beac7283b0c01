"""A whole reply of a participant, held to its own voice (`domain/guard`). Called by `steps`, as is the stream."""

from __future__ import annotations

from dataclasses import replace

from denizen.domain.guard import Voice
from denizen.domain.message import TextPart, ThinkingPart, text_of
from denizen.ports.model import ModelReply


def guarded(reply: ModelReply, voice: Voice) -> ModelReply:
    """Without the echo of its name, and cut where it speaks for others; what it called after that is cut too."""
    text, guard = text_of(reply.parts), voice.guard()
    left = guard.feed(text) + guard.finish()
    if left == text:
        return reply
    thought = tuple(part for part in reply.parts if isinstance(part, ThinkingPart))
    rest = tuple(part for part in reply.parts if not isinstance(part, ThinkingPart | TextPart))
    said = (TextPart(left),) if left else ()
    if guard.is_hit:
        return replace(reply, parts=(*thought, *said), finish_reason="stop")
    return replace(reply, parts=(*thought, *said, *rest))
