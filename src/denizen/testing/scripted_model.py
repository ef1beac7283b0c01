"""A model that follows a script, for tests of the engine, of skills and of whole turns.

A real implementation of `denizen.ports.model`: it streams text in pieces, calls tools, fails, waits. The script is a
list of steps, one for each request, and the model records each request. It waits for events that a test sets, so that
no test sleeps.

    model = ScriptedModel(ScriptedReply(calls=[call("clock")]), ScriptedReply("It is noon."))
    ...
    assert model.requests[1].messages[-1].role is Role.TOOL
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TypeAlias

import anyio
import anyio.lowlevel

from denizen.domain.errors import DenizenError, NotFound
from denizen.domain.ids import CallId
from denizen.domain.json import Json
from denizen.domain.message import ImagePart, Part, TextPart, ThinkingPart, ToolCallPart
from denizen.domain.usage import Usage
from denizen.ports.model import (
    Capabilities,
    FinishReason,
    ModelEvent,
    ModelInfo,
    ModelNotice,
    ModelReply,
    ModelRequest,
    TextDelta,
    ThinkingDelta,
)


@dataclass(frozen=True, slots=True)
class ReplyGate:
    """A point at which the model waits: it sets `reached` and goes on when `open` is set."""

    reached: anyio.Event = field(default_factory=anyio.Event)
    open: anyio.Event = field(default_factory=anyio.Event)

    async def pass_through(self) -> None:
        self.reached.set()
        await self.open.wait()


@dataclass(frozen=True, slots=True)
class ScriptedReply:
    """A reply of the model. Calls without an id get `call_N_M`: the numbers of the request and the call, from 1.

    `error` is raised after the text was streamed. The model waits at `before` before it replies, and at `halfway` in
    the middle of the text.
    """

    text: str = ""
    calls: Sequence[ToolCallPart] = ()
    thinking: str = ""
    images: Sequence[str] = ()
    """Pictures as data URIs."""
    notices: Sequence[str] = ()
    usage: Usage = field(default_factory=lambda: Usage(input_tokens=10, output_tokens=5, requests=1))
    finish_reason: FinishReason | None = None
    error: DenizenError | None = None
    before: ReplyGate | None = None
    halfway: ReplyGate | None = None


ScriptStep: TypeAlias = ScriptedReply | DenizenError | Callable[[ModelRequest], "ScriptedReply | DenizenError"]


def call(tool: str, /, *, id: str = "", **args: Json) -> ToolCallPart:  # noqa: A002 - the word of the wire
    """Returns a tool call for a script."""
    return ToolCallPart(CallId(id), tool, dict(args))


class ScriptedModel:
    """A model with a script. `otherwise` is the step for every request after the end of the script; without it such a
    request fails the test.

    A step is a reply, an error to raise, or a function that returns one of the two for the request. `price_usd` is the
    price of an input token and of an output token; the cost of a reply itself is in its `usage`.
    """

    def __init__(
        self,
        *steps: ScriptStep,
        name: str = "scripted/model",
        capabilities: Capabilities | None = None,
        otherwise: ScriptStep | None = None,
        piece_chars: int = 8,
        price_usd: tuple[Decimal, Decimal] | None = None,
    ) -> None:
        self.requests: list[ModelRequest] = []
        self._steps = list(steps)
        self._name = name
        self._capabilities = capabilities or Capabilities()
        self._otherwise = otherwise
        self._piece_chars = piece_chars
        self._price_usd = price_usd

    @property
    def name(self) -> str:
        return self._name

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    @property
    def left(self) -> int:
        """The number of steps that no request has taken yet."""
        return len(self._steps)

    def script(self, *steps: ScriptStep) -> None:
        """Adds steps."""
        self._steps.extend(steps)

    async def estimate_cost_usd(self, input_tokens: int, output_tokens: int) -> Decimal | None:
        if self._price_usd is None:
            return None
        return input_tokens * self._price_usd[0] + output_tokens * self._price_usd[1]

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Streams the next step. A checkpoint before each event lets other tasks run, as a network would."""
        self.requests.append(request)
        request.check_sampling(self._capabilities.sampling, self._name)
        said = self._take(request)
        await anyio.lowlevel.checkpoint()
        if isinstance(said, DenizenError):
            raise said
        if said.before is not None:
            await said.before.pass_through()
        async for event in self._events(said, len(self.requests)):
            yield event
            await anyio.lowlevel.checkpoint()

    def _take(self, request: ModelRequest) -> ScriptedReply | DenizenError:
        if self._steps:
            step = self._steps.pop(0)
        elif self._otherwise is not None:
            step = self._otherwise
        else:
            raise AssertionError(f"the script of {self._name} has no step for request {len(self.requests)}: {request}")
        return step if isinstance(step, ScriptedReply | DenizenError) else step(request)

    async def _events(self, said: ScriptedReply, number: int) -> AsyncGenerator[ModelEvent, None]:
        for notice in said.notices:
            yield ModelNotice(notice)
        for piece in self._pieces(said.thinking):
            yield ThinkingDelta(piece)
        pieces = self._pieces(said.text)
        for place, piece in enumerate(pieces):
            if said.halfway is not None and place == len(pieces) // 2:
                await said.halfway.pass_through()
            yield TextDelta(piece)
        if said.error is not None:
            raise said.error
        yield self._reply(said, number)

    def _pieces(self, text: str) -> Sequence[str]:
        return [text[start : start + self._piece_chars] for start in range(0, len(text), self._piece_chars)]

    def _reply(self, said: ScriptedReply, number: int) -> ModelReply:
        parts: list[Part] = []
        if said.thinking:
            parts.append(ThinkingPart(said.thinking))
        if said.text:
            parts.append(TextPart(said.text))
        parts += map(ImagePart, said.images)
        for place, asked in enumerate(said.calls, 1):
            parts.append(asked if asked.id else replace(asked, id=CallId(f"call_{number}_{place}")))
        reason = said.finish_reason or ("tool_calls" if said.calls else "stop")
        return ModelReply(tuple(parts), said.usage, reason, self._name, self._name.partition("/")[0])


class ScriptedModels:
    """`denizen.ports.model.Models` of scripted models, found by alias and by name. A single model has every name."""

    def __init__(self, models: Mapping[str, ScriptedModel] | ScriptedModel) -> None:
        self._only = models if isinstance(models, ScriptedModel) else None
        self._models = {} if isinstance(models, ScriptedModel) else dict(models)
        self.closed = False

    def get(self, name: str) -> ScriptedModel:
        if self._only is not None:
            return self._only
        by_name = {model.name: model for model in self._models.values()}
        found = self._models.get(name) or by_name.get(name)
        if found is None:
            raise NotFound(f"There is no model '{name}'.", code="model_not_found", fix=f"Known: {', '.join(by_name)}.")
        return found

    async def warm(self) -> None:
        """Scripts are always ready."""

    def list_models(self) -> Sequence[ModelInfo]:
        models = [self._only] if self._only is not None else list(dict.fromkeys(self._models.values()))
        return [
            ModelInfo(
                name=model.name,
                provider=model.name.partition("/")[0],
                aliases=tuple(alias for alias, one in self._models.items() if one is model),
                fallbacks=(),
                capabilities=model.capabilities,
            )
            for model in models
        ]

    async def aclose(self) -> None:
        self.closed = True
