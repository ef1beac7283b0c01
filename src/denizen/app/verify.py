"""A real completion, to see that a model answers. Used by set-up and doctor."""

from __future__ import annotations

import time
from dataclasses import dataclass

from denizen.domain.errors import Unavailable
from denizen.domain.message import Role, TextPart
from denizen.domain.prompt import PromptMessage
from denizen.ports.model import ModelReply, ModelRequest, Models


@dataclass(frozen=True, slots=True)
class Answered:
    """Which model answered, and how long it took."""

    model: str
    duration_s: float


async def verify_model(models: Models, name: str) -> Answered:
    """Asks for one word. Raises NotFound for an unknown name and whatever the model raises."""
    question = PromptMessage(Role.USER, (TextPart("Say OK."),))
    request = ModelRequest(segments=(), messages=(question,), max_output_tokens=16)
    started = time.monotonic()
    async for event in models.get(name).stream(request):
        if isinstance(event, ModelReply):
            return Answered(event.model, time.monotonic() - started)
    raise Unavailable("The model ended its answer too early.", code="model_incomplete")
