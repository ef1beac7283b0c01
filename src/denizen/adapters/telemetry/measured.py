"""The store and the models, measured: each unit of work and each request to a model is a span."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, aclosing, asynccontextmanager, contextmanager
from decimal import Decimal

from anyio import get_cancelled_exc_class

from denizen.domain.errors import DenizenError
from denizen.ports.model import Capabilities, Model, ModelEvent, ModelInfo, ModelReply, ModelRequest, Models
from denizen.ports.store import Store, UnitOfWork
from denizen.ports.telemetry import OK, RequestSpan, Span, StoreSpan, Telemetry


def _name_failure(error: BaseException) -> str:
    """Returns the code of our errors, and the class of others; empty for work that was broken off, which is none."""
    if isinstance(error, DenizenError):
        return error.code
    is_broken_off = isinstance(error, (get_cancelled_exc_class(), GeneratorExit))
    return "" if is_broken_off else type(error).__name__


class TelemetryGroup:
    """Measures each span with all of several."""

    def __init__(self, members: Sequence[Telemetry]) -> None:
        self._members = members

    @contextmanager
    def measure(self, span: Span) -> Generator[None]:
        with ExitStack() as stack:
            for each in self._members:
                stack.enter_context(each.measure(span))
            yield


class MeasuredStore:
    """Implements `denizen.ports.store.Store` around another one."""

    def __init__(self, store: Store, telemetry: Telemetry) -> None:
        self._store = store
        self._telemetry = telemetry

    def work(self, *, write: bool = True) -> AbstractAsyncContextManager[UnitOfWork]:
        return self._measured(write=write)

    @asynccontextmanager
    async def _measured(self, *, write: bool) -> AsyncGenerator[UnitOfWork]:
        span = StoreSpan(is_writing=write)
        with self._telemetry.measure(span):
            try:
                async with self._store.work(write=write) as work:
                    yield work
                span.outcome = OK
            except BaseException as error:
                span.outcome = _name_failure(error) or span.outcome
                raise

    async def aclose(self) -> None:
        await self._store.aclose()


class MeasuredModels:
    """Implements `denizen.ports.model.Models` around others."""

    def __init__(self, models: Models, telemetry: Telemetry) -> None:
        self._models = models
        self._telemetry = telemetry

    def get(self, name: str) -> Model:
        return _MeasuredModel(self._models.get(name), self._telemetry)

    def list_models(self) -> Sequence[ModelInfo]:
        return self._models.list_models()

    async def warm(self) -> None:
        await self._models.warm()

    async def aclose(self) -> None:
        await self._models.aclose()


class _MeasuredModel:
    def __init__(self, model: Model, telemetry: Telemetry) -> None:
        self._model = model
        self._telemetry = telemetry

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def capabilities(self) -> Capabilities:
        return self._model.capabilities

    async def estimate_cost_usd(self, input_tokens: int, output_tokens: int) -> Decimal | None:
        return await self._model.estimate_cost_usd(input_tokens, output_tokens)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        span = RequestSpan(model=self._model.name)
        with self._telemetry.measure(span):
            try:
                async with aclosing(self._model.stream(request)) as events:
                    async for event in events:
                        if isinstance(event, ModelReply):
                            span.outcome, span.usage = OK, event.usage
                            span.answered_by, span.provider = event.model, event.provider
                            span.finish_reason = str(event.finish_reason)
                        yield event
            except BaseException as error:
                span.outcome = _name_failure(error) or span.outcome
                raise
