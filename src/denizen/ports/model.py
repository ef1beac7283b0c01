"""Language models: one request in, a stream of events out, the whole reply last.

Implemented by `adapters/models` (providers) and `denizen.testing.scripted_model`. The engine owns the loop; a model
makes exactly one request. Retries happen inside, before any output; falling back to another model happens inside too.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Sequence
from dataclasses import field
from decimal import Decimal
from typing import Literal, Protocol

from denizen.domain.agent import SamplingSettings
from denizen.domain.errors import InvalidInput
from denizen.domain.json import JsonObject
from denizen.domain.message import Part
from denizen.domain.prompt import PromptMessage, Segment
from denizen.domain.record import record
from denizen.domain.tool import ToolSpec
from denizen.domain.usage import Usage

FinishReason = Literal["stop", "length", "tool_calls", "content_filter", "error"]
ToolChoice = Literal["auto", "required", "none"]

RAW_ARGS = "__raw__"
"""The only key of `ToolCallPart.args` when the model wrote arguments that are no JSON object: what it wrote, as text.

The loop tells the model what was wrong with it; towards providers such a call has no arguments.
"""


@record
class Capabilities:
    """The abilities of one model; detected by name, overridden in the configuration.

    `small` models get plan-then-act and at most five tools. `sampling` names the parameters that are accepted.
    `json_schema` tells that output can be constrained to a schema. `image_output` models answer with pictures too.
    `context_tokens` bounds prompt plus output.
    """

    native_tools: bool = True
    parallel_calls: bool = True
    images: bool = False
    prefill: bool = False
    cache_marks: bool = False
    json_schema: bool = True
    small: bool = False
    sampling: frozenset[str] = frozenset({"temperature", "top_p", "seed"})
    context_tokens: int = 128_000
    max_output_tokens: int | None = None
    image_output: bool = False

    @property
    def takes_tools(self) -> bool:
        """In whatever way. A model that draws and has no native tool calls cannot be made to plan them either."""
        return self.native_tools or not self.image_output


@record
class ModelRequest:
    """Everything that one request needs. `segments` come most stable first and become the system prompt.

    `output_schema` asks for a JSON object that fits the schema (used by planning), named `output_name`.
    `conversation_key` is stable for one session; providers that route by it keep their prompt cache warm. `keep_s` says
    how long the conversation is worth keeping in a cache: about when the next request with it is expected.
    """

    segments: tuple[Segment, ...]
    messages: tuple[PromptMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice = "auto"
    max_output_tokens: int = 4096
    sampling: SamplingSettings = field(default_factory=SamplingSettings)
    output_schema: JsonObject | None = None
    output_name: str = "output"
    conversation_key: str = ""
    reasoning: bool = False
    """Whether a model that can be told to is to think first."""
    parallel_calls: bool = True
    """Whether one reply may call several tools."""
    keep_s: float = 300.0

    @property
    def takes_any_object(self) -> bool:
        """Whether the output may be any JSON object, which servers have a form of their own for."""
        return self.output_schema is not None and self.output_schema.keys() <= {"type"}

    def check_sampling(self, kept: Collection[str], model: str) -> None:
        """Raises InvalidInput when the model would not get what the asker insists on."""
        lost = sorted(self.sampling.demanded - set(kept))
        if lost:
            raise InvalidInput(
                f"The model {model} does not take `{lost[0]}` as it is given.",
                code="parameter_unsupported",
                why="the agent's model has no such setting, or only another range, or not beside the others",
                fix=f"Leave `{lost[0]}` out, or ask an agent with another model.",
            )


@record
class TextDelta:
    """A piece of the answer, as it streams in."""

    text: str


@record
class ThinkingDelta:
    """A piece of the model's reasoning, as it streams in."""

    text: str


@record
class ModelNotice:
    """The model is not answering yet, and why: weights loading, waiting before a retry, falling back."""

    text: str


@record
class ModelReply:
    """The whole reply, last event of the stream. `model` is the one that answered (a fallback may have)."""

    parts: tuple[Part, ...]
    usage: Usage
    finish_reason: FinishReason
    model: str
    provider: str


ModelEvent = TextDelta | ThinkingDelta | ModelNotice | ModelReply


class Model(Protocol):
    """One configured model, with its retries and fallbacks.

    `stream` raises Unavailable (network, overload, time-out, after its retries), NeedsAttention (key refused, model
    unknown to the provider, no weights) or InvalidInput (the provider refused the request as such). It never retries
    once output began.
    """

    @property
    def name(self) -> str: ...

    @property
    def capabilities(self) -> Capabilities: ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]: ...

    async def estimate_cost_usd(self, input_tokens: int, output_tokens: int) -> Decimal | None:
        """Returns the price of so many tokens when nothing is cached, with fallbacks the dearest; None when unknown."""
        ...


@record
class ModelInfo:
    """A model for lists. `provider` is the configured provider's name; `aliases` are the names agents may use.

    `is_embedded` marks the built-in small model, about which people should be told.
    """

    name: str
    provider: str
    aliases: tuple[str, ...]
    fallbacks: tuple[str, ...]
    capabilities: Capabilities
    is_embedded: bool = False


class Models(Protocol):
    """The models of one generation of the configuration."""

    def get(self, name: str) -> Model:
        """By alias or as `provider/model`. Raises NotFound, naming the nearest known."""
        ...

    def list_models(self) -> Sequence[ModelInfo]: ...

    async def warm(self) -> None:
        """Does beforehand what the first request would have to wait for. Raises what that request would raise."""
        ...

    async def aclose(self) -> None:
        """Closes connections and child processes; the models must not be used afterwards."""
        ...
