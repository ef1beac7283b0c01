"""One configured model: a request with its retries (`denizen.ports.model.Model`).

An attempt streams the vendor's events through. It may be repeated only while nothing has come out of it (inventory,
section 6 "Retry"; TW16). Every wait has an end: connecting, silence, and the request as a whole.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from decimal import Decimal
from typing import TYPE_CHECKING, TypeAlias

import anyio
from anyio import to_thread

from denizen.adapters.models.connection import Connection, closed_error
from denizen.adapters.models.convert import messages_of
from denizen.adapters.models.failures import UNREACHABLE, Failure, failure_of, vendor_errors
from denizen.adapters.models.pace import Pace
from denizen.adapters.models.prices import price_of
from denizen.adapters.models.reply import Deltas, Speaker, reply_of
from denizen.adapters.models.settings import Kind
from denizen.adapters.models.tagged import TagSplitter
from denizen.adapters.models.vendors import Access
from denizen.adapters.models.wire_request import dialect_of, marks_of, parameters_of, settings_of
from denizen.domain.errors import DenizenError, Unavailable
from denizen.ports.model import Capabilities, ModelEvent, ModelNotice, ModelRequest, TextDelta, ThinkingDelta

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse

_SAYS_WHEN_DONE: frozenset[Kind] = frozenset({"anthropic", "openai", "openai-responses", "openrouter", "xai", "groq"})

_NO_TAGS: frozenset[Kind] = frozenset({"anthropic", "openai-responses", "google"})

_log = logging.getLogger(__name__)

Delta: TypeAlias = TextDelta | ThinkingDelta

OUTPUT_BEGAN = "output_began"
"""In an error's `context`: the attempt failed after output had come out of it, so nobody may repeat it."""


class ProviderModel:
    """A model on a provider. `name` is `provider/model`."""

    def __init__(self, name: str, capabilities: Capabilities, connection: Connection, pace: Pace) -> None:
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
        """By the list of prices; a model that is not on it is told in the log once."""
        spec = self._connection.spec
        model = self._name.partition("/")[2]
        # In a thread: reading the list takes a moment the first time.
        usd = await to_thread.run_sync(price_of, spec, model, input_tokens, output_tokens)
        if usd is None and self._name not in self._connection.unpriced:
            self._connection.unpriced.add(self._name)
            _log.warning("no price is known, so its cost counts as 0 until it is told", extra={"model": self._name})
        return usd

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """The port's `stream`; a notice before each pause between attempts."""
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

    def __init__(self, name: str, capabilities: Capabilities, connection: Connection, deadline: float) -> None:
        self._name = name
        self._capabilities = capabilities
        self._connection = connection
        self._deadline = deadline
        self.began = False
        self.failure: Failure | None = None

    async def events(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        if self._connection.may_have_to_start:
            yield ModelNotice("The built-in model is getting ready.")
        access = await self._access()
        spec = self._connection.spec
        vendor = await self._connection.vendor(access, self._capabilities, self._name)
        from pydantic_ai.direct import model_request_stream

        dialect = dialect_of(spec, self._name, self._capabilities)
        marks = marks_of(request, spec, self._capabilities)
        messages = messages_of(request.messages, dialect, prefill=self._capabilities.prefill, marks=marks)
        settings = settings_of(request, spec, self._capabilities, vendor.model, self._left_s())
        speaker = Speaker(self._name, spec.name, free=spec.facts.free, tags=spec.kind not in _NO_TAGS)
        splitter, deltas = TagSplitter() if speaker.tags else None, Deltas()
        try:
            parameters = parameters_of(request, self._capabilities, vendor.forms.of(request.tools))
            async with model_request_stream(
                vendor.model, messages, model_settings=settings, model_request_parameters=parameters, instrument=False
            ) as stream:
                async for event in stream:
                    self.began = True
                    for delta in _split(deltas.take(event), splitter):
                        yield delta
                response = stream.get()
        except vendor_errors() as error:
            self.failure = self._explain(error, access)
            return
        if not _is_whole(response, spec.kind):
            self.failure = Failure(_cut_off(spec.name, self._name), retryable=True)
            return
        for delta in splitter.finish() if splitter else ():
            yield delta
        yield reply_of(response, speaker)

    def _explain(self, error: Exception, access: Access) -> Failure:
        if self._connection.closed:
            return Failure(closed_error())
        failure = failure_of(error, self._connection.target(access, self._name))
        if failure.error.code == UNREACHABLE:
            self._connection.note_unreachable()
        return failure

    async def _access(self) -> Access:
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


def _split(delta: Delta | None, splitter: TagSplitter | None) -> Iterable[Delta]:
    """The delta with thinking told apart from text, as far as that is certain."""
    if isinstance(delta, TextDelta) and splitter is not None:
        return splitter.feed(delta.text)
    return () if delta is None else (delta,)


def _is_whole(response: ModelResponse, kind: Kind) -> bool:
    """Whether the provider said that it had finished. A stream that just ends was cut somewhere.

    Only big providers can be trusted to say it; for the others an orderly end has to do.
    """
    said = response.provider_details or {}
    finished = "finish_reason" in said or "refusal" in said or kind not in _SAYS_WHEN_DONE
    return response.state == "complete" and finished


def _cut_off(provider: str, model: str) -> DenizenError:
    return Unavailable(
        f"The answer of the provider '{provider}' broke off.",
        code="model_cut_off",
        why="The stream ended before the provider said that the answer was complete.",
        fix="Try again.",
        model=model,
    )
