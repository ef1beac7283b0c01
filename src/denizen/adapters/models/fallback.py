"""A chain of models: when one cannot answer, the next one is asked (inventory S5).

For what another model may do better: overload, network, a used-up account, a refused key. Not for what is wrong with
the request itself, and never after output began.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from decimal import Decimal

from denizen.adapters.models.model import OUTPUT_BEGAN
from denizen.domain.errors import DenizenError, Exhausted, NeedsAttention, Unavailable
from denizen.domain.message import Role
from denizen.ports.model import (
    Capabilities,
    Model,
    ModelEvent,
    ModelNotice,
    ModelReply,
    ModelRequest,
    TextDelta,
    ThinkingDelta,
)


class FallbackModel:
    """The first of `models` that answers. Its capabilities are those of the first: requests are made for it."""

    def __init__(self, models: Sequence[Model]) -> None:
        self._models = tuple(models)

    @property
    def name(self) -> str:
        return self._models[0].name

    @property
    def capabilities(self) -> Capabilities:
        return self._models[0].capabilities

    async def estimate_cost_usd(self, input_tokens: int, output_tokens: int) -> Decimal | None:
        """The most that one of them costs: any of them may answer."""
        prices = [await model.estimate_cost_usd(input_tokens, output_tokens) for model in self._models]
        return max((usd for usd in prices if usd is not None), default=None)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """The port's `stream`. When all fail, the first one's error, which says why the others failed."""
        errors: list[DenizenError] = []
        for place, model in enumerate(self._models):
            began = False
            asked = request if place == 0 else fit_request(request, model.capabilities)
            try:
                async with aclosing(model.stream(asked)) as events:
                    async for event in events:
                        began = began or isinstance(event, TextDelta | ThinkingDelta | ModelReply)
                        yield event
            except (Unavailable, Exhausted, NeedsAttention) as error:
                if began or error.context.get(OUTPUT_BEGAN):
                    raise
                errors.append(error)
                if place + 1 < len(self._models):
                    yield ModelNotice(f"{error.message} Asking {self._models[place + 1].name} instead.")
            else:
                return
        raise _all_failed(errors, self._models)


def fit_request(request: ModelRequest, capabilities: Capabilities) -> ModelRequest:
    """The request without what this model cannot take: a begun answer (inventory CW2), tools.

    The engine made it for the first model; images and sampling the adapter leaves out by itself.
    """
    messages = request.messages
    if not capabilities.prefill and messages and messages[-1].role is Role.ASSISTANT:
        messages = messages[:-1]
    return replace(request, messages=messages, tools=request.tools if capabilities.native_tools else ())


def _all_failed(errors: Sequence[DenizenError], models: Sequence[Model]) -> DenizenError:
    first = errors[0]
    others = [f"{model.name}: {error.message}" for model, error in zip(models[1:], errors[1:], strict=True)]
    if others:
        first.why = " ".join([first.why, "The fallbacks failed too:", *others]).strip()
    return first
