"""One configured model: a request with its retries (`denizen.ports.model.Model`), and the fallbacks when it cannot
answer.

An attempt streams the vendor's events through. It is repeated only while nothing has come out of it, up to three times,
with growing pauses and Retry-After obeyed. Every wait has an end: connecting, silence, and the request as a whole.

A fallback is asked for what another model may do better: overload, network, a used-up account, a refused key. Not for
what is wrong with the request itself, and never after output began.
"""

from __future__ import annotations

import logging
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from decimal import Decimal

import anyio
from anyio import to_thread

from denizen.adapters.models.client import ProviderAccess
from denizen.adapters.models.connection import ProviderConnection, closed_error
from denizen.adapters.models.failures import UNREACHABLE, AttemptFailed, ModelFailure
from denizen.adapters.models.prices import estimate_price
from denizen.domain.errors import DenizenError, LimitExceeded, NeedsAttention, Unavailable
from denizen.domain.message import Role
from denizen.domain.record import record
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


@record(kw_only=True)
class RetryPolicy:
    """When to try again. `most_wait_s` caps a pause: a provider that wants a longer one counts as unavailable at once.

    `chance` returns a number from 0 to 1, so that many clients do not come back together. This is a loop of our own
    instead of a retry library, since a retried attempt is a stream whose events pass through.
    """

    attempts: int = 3
    first_pause_s: float = 0.5
    most_wait_s: float = 60.0
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    chance: Callable[[], float] = random.random

    def plan_pause_s(self, failure: ModelFailure, attempt: int, left_s: float) -> float | None:
        """Returns how long to wait after the failed attempt (counted from 1); None to give up.

        `left_s` is what remains of the request's time.
        """
        if not failure.retryable or attempt >= self.attempts:
            return None
        pause_s = self.first_pause_s * 2 ** (attempt - 1) * (0.5 + self.chance() / 2)
        if failure.retry_after_s is not None:
            pause_s = max(pause_s, failure.retry_after_s)
        return pause_s if pause_s <= self.most_wait_s and pause_s < left_s else None


_log = logging.getLogger(__name__)

OUTPUT_BEGAN = "output_began"
"""A key in an error's `context`: the attempt failed after output had come out of it, so nobody may repeat it."""


class ProviderModel:
    """A model on a provider. `name` is `provider/model`."""

    def __init__(
        self, name: str, capabilities: Capabilities, connection: ProviderConnection, pace: RetryPolicy
    ) -> None:
        self._name = name
        self._capabilities = capabilities
        self._connection = connection
        self._pace = pace

    @property
    def name(self) -> str:
        return self._name

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    async def estimate_cost_usd(self, input_tokens: int, output_tokens: int) -> Decimal | None:
        """Returns the price by the configuration or the list of prices; logs once for a model that neither has."""
        spec = self._connection.spec
        model = self._name.partition("/")[2]
        # In a thread: reading the list takes a moment the first time.
        usd = await to_thread.run_sync(estimate_price, spec, model, input_tokens, output_tokens)
        if usd is None and self._name not in self._connection.unpriced:
            self._connection.unpriced.add(self._name)
            _log.warning("no price is known, so its cost counts as 0 until it is told", extra={"model": self._name})
        return usd

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Streams the reply (see the port), with a notice before each pause between attempts."""
        deadline = anyio.current_time() + self._connection.spec.total_s
        attempts = 0
        while True:
            attempts += 1
            attempt = _Attempt(self._name, self._capabilities, self._connection, deadline)
            async with aclosing(attempt.events(request)) as events:
                async for event in events:
                    yield event
            failure = attempt.failure
            if failure is None:
                return
            if attempt.began:
                failure.error.context[OUTPUT_BEGAN] = True
                raise failure.error
            pause_s = self._pace.plan_pause_s(failure, attempts, deadline - anyio.current_time())
            if pause_s is None:
                raise failure.error
            yield ModelNotice(f"{failure.error.message} Trying again in {max(pause_s, 1):.0f} s.")
            await self._pace.sleep(pause_s)


class _Attempt:
    """One request on the wire. After `events` ended, `failure` tells whether it failed, `began` whether output came."""

    def __init__(self, name: str, capabilities: Capabilities, connection: ProviderConnection, deadline: float) -> None:
        self._name = name
        self._capabilities = capabilities
        self._connection = connection
        self._deadline = deadline
        self.began = False
        self.failure: ModelFailure | None = None

    async def events(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        if self._connection.may_have_to_start:
            yield ModelNotice("The built-in model is getting ready.")
        access = await self._access()
        client = await self._connection.client(self._name, access, self._capabilities)
        try:
            async with aclosing(client.stream(request, self._left_s())) as events:
                async for event in events:
                    self.began = True
                    if event is not None:
                        yield self._price(event) if isinstance(event, ModelReply) else event
        except AttemptFailed as failed:
            self.failure = self._explain(failed.failure)

    def _price(self, reply: ModelReply) -> ModelReply:
        """Returns the reply with what it costs by the configuration, where that has a price."""
        own = self._connection.spec.prices.get(self._name.partition("/")[2])
        return reply if own is None else replace(reply, usage=replace(reply.usage, cost_usd=own.price(reply.usage)))

    def _explain(self, failure: ModelFailure) -> ModelFailure:
        if self._connection.closed:
            return ModelFailure(closed_error())
        if failure.error.code == UNREACHABLE:
            self._connection.note_unreachable()
        return failure

    async def _access(self) -> ProviderAccess:
        model = self._name.partition("/")[2]
        try:
            with anyio.fail_after(self._left_s()):
                return await self._connection.access(model)
        except TimeoutError:
            raise Unavailable(
                "The model did not get ready in time.",
                code="model_timeout",
                fix="Look at its log, or try again later.",
                model=self._name,
            ) from None

    def _left_s(self) -> float:
        return max(self._deadline - anyio.current_time(), 0.0)


class FallbackModel:
    """A chain of models: the first that can answers. Requests are made for the first, so its capabilities count."""

    def __init__(self, models: Sequence[Model]) -> None:
        self._models = tuple(models)

    @property
    def name(self) -> str:
        return self._models[0].name

    @property
    def capabilities(self) -> Capabilities:
        return self._models[0].capabilities

    async def estimate_cost_usd(self, input_tokens: int, output_tokens: int) -> Decimal | None:
        """Returns the highest price of the chain: any of its models may answer."""
        prices = [await model.estimate_cost_usd(input_tokens, output_tokens) for model in self._models]
        return max((usd for usd in prices if usd is not None), default=None)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Streams the reply of the first that answers. When all fail, raises the first error with the other reasons."""
        errors: list[DenizenError] = []
        for place, model in enumerate(self._models):
            began = False
            asked = request if place == 0 else fit_request(request, model.capabilities)
            try:
                async with aclosing(model.stream(asked)) as events:
                    async for event in events:
                        began = began or isinstance(event, TextDelta | ThinkingDelta | ModelReply)
                        yield event
            except (Unavailable, LimitExceeded, NeedsAttention) as error:
                if began or error.context.get(OUTPUT_BEGAN):
                    raise
                errors.append(error)
                if place + 1 < len(self._models):
                    yield ModelNotice(f"{error.message} Asking {self._models[place + 1].name} instead.")
            else:
                return
        first, *rest = errors
        others = [f"{model.name}: {error.message}" for model, error in zip(self._models[1:], rest, strict=True)]
        if others:
            first.why = " ".join([first.why, "The fallbacks failed too:", *others]).strip()
        raise first


def fit_request(request: ModelRequest, capabilities: Capabilities) -> ModelRequest:
    """Returns the request without what this model cannot take: a begun answer, tools.

    The engine made it for the first model; the adapter itself leaves out images and sampling.
    """
    messages = request.messages
    if not capabilities.prefill and messages and messages[-1].role is Role.ASSISTANT:
        messages = messages[:-1]
    return replace(request, messages=messages, tools=request.tools if capabilities.native_tools else ())
