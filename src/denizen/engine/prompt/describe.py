"""What a request is made of, for its record. Called by `steps`, once for each prompt of a turn."""

from __future__ import annotations

from denizen.domain.ids import TurnId
from denizen.domain.prompt import count_tool_tokens
from denizen.domain.trace import MessageUse, PromptUse, SegmentUse
from denizen.engine.prompt.session import count_tokens
from denizen.ports.model import ModelRequest


def describe(request: ModelRequest, turn_id: TurnId, step: int, model: str) -> PromptUse:
    """Segments, tools, and the messages by kind."""
    kinds: dict[str, list[int]] = {}
    for message in request.messages:
        kinds.setdefault(message.kind, []).append(count_tokens(message))
    return PromptUse(
        turn_id,
        step,
        model,
        tuple(map(SegmentUse.of, request.segments)),
        tuple(MessageUse(kind, len(tokens), sum(tokens)) for kind, tokens in kinds.items()),
        tuple(spec.name for spec in request.tools),
        sum(map(count_tool_tokens, request.tools)),
    )
