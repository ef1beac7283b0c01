"""What the tests of the model adapter share: the wires to test, and ways to build a model and to ask it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from denizen.adapters.models.catalog import ModelCatalog, ModelsSpec, build_models
from denizen.adapters.models.model import RetryPolicy
from denizen.adapters.models.providers import AliasSpec, ModelSpec, ProviderKind, ProviderSpec
from denizen.domain.message import Part, Role, TextPart, ToolCallPart, list_calls
from denizen.domain.prompt import PromptMessage, Segment, Stability
from denizen.domain.tool import ToolSpec
from denizen.ports.model import Model, ModelEvent, ModelReply, ModelRequest, TextDelta
from denizen.testing.model_server import ModelServer

SECRET = "sk-live-0123456789abcdefghij"

LOOK = ToolSpec(
    "look",
    "Looks something up.",
    {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]},
    source="tests",
)


@dataclass(frozen=True)
class Wire:
    """A kind of provider with a model that takes everything its format has."""

    kind: ProviderKind
    model: str

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.model}"

    def url(self, server: ModelServer) -> str:
        return {"anthropic": server.url, "google": server.url, "openrouter": server.openrouter_url}.get(
            self.kind, server.openai_url
        )


ANTHROPIC = Wire("anthropic", "claude-haiku-4-5")
OPENAI = Wire("openai", "gpt-4o")
RESPONSES = Wire("openai-responses", "gpt-5")
OPENROUTER = Wire("openrouter", "anthropic/claude-haiku-4.5")
OLLAMA = Wire("ollama", "qwen3:8b")
XAI = Wire("xai", "grok-4")
GROQ = Wire("groq", "llama-3.3-70b-versatile")
GOOGLE = Wire("google", "gemini-2.5-flash")
COMPATIBLE = Wire("openai-compatible", "some-model")
WIRES = (ANTHROPIC, OPENAI, RESPONSES, OPENROUTER, OLLAMA, XAI, GROQ, GOOGLE, COMPATIBLE)
CHAT_WIRES = (OPENAI, OPENROUTER, OLLAMA, XAI, GROQ, COMPATIBLE)


@dataclass
class RecordingSleep:
    """Sleeps in no time, and remembers for how long. Without chance: pauses are at their longest."""

    slept: list[float] = field(default_factory=list[float])

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    @property
    def pace(self) -> RetryPolicy:
        return RetryPolicy(sleep=self.sleep, chance=lambda: 1.0)


class SingleAttempt(RecordingSleep):
    """Gives up after the first attempt."""

    @property
    def pace(self) -> RetryPolicy:
        return RetryPolicy(attempts=1)


def provider(wire: Wire, server: ModelServer, **more: Any) -> ProviderSpec:
    settings: dict[str, Any] = {"api_key": lambda: SECRET, "key_name": "SOME_KEY", "base_url": wire.url(server)}
    return ProviderSpec(name=wire.kind, kind=wire.kind, **(settings | more))


def catalog(
    server: ModelServer,
    *wires: Wire,
    pauses: RecordingSleep | None = None,
    overrides: Mapping[str, object] | None = None,
    aliases: Sequence[AliasSpec] = (),
    **more: Any,
) -> ModelCatalog:
    spec = ModelsSpec(
        providers=[provider(wire, server, **more) for wire in wires],
        models=[ModelSpec(wire.name, overrides or {}) for wire in wires],
        aliases=aliases,
    )
    return build_models(spec, pace=(pauses or RecordingSleep()).pace)


class BuildCatalog(Protocol):
    """A fixture: `catalog` for the running server, closed when the test ends."""

    def __call__(
        self,
        *wires: Wire,
        pauses: RecordingSleep | None = None,
        overrides: Mapping[str, object] | None = None,
        aliases: Sequence[AliasSpec] = (),
        **more: Any,
    ) -> ModelCatalog: ...


def user(*parts: Part | str) -> PromptMessage:
    return PromptMessage(Role.USER, tuple(TextPart(part) if isinstance(part, str) else part for part in parts))


def assistant(*parts: Part | str) -> PromptMessage:
    return PromptMessage(Role.ASSISTANT, tuple(TextPart(part) if isinstance(part, str) else part for part in parts))


def make_request(*messages: PromptMessage | str, **more: Any) -> ModelRequest:
    """A request with a persona, a stable and a fresh segment."""
    segments = (
        Segment("persona", "You are Dennis.", Stability.FOREVER),
        Segment("guild", "This is a library.", Stability.SESSION),
        Segment("now", "It is noon.", Stability.TURN),
    )
    said = tuple(message if isinstance(message, PromptMessage) else user(message) for message in messages)
    fields: dict[str, Any] = {"segments": segments, "messages": said} | more
    return ModelRequest(**fields)


@dataclass
class StreamRecord:
    """Everything that a stream gave."""

    events: list[ModelEvent]

    @property
    def reply(self) -> ModelReply:
        last = self.events[-1]
        assert isinstance(last, ModelReply)
        return last

    @property
    def deltas(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, TextDelta)]

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.reply.parts if isinstance(part, TextPart))

    @property
    def calls(self) -> tuple[ToolCallPart, ...]:
        return list_calls(self.reply.parts)


async def read_stream(model: Model, request: ModelRequest) -> StreamRecord:
    return StreamRecord([event async for event in model.stream(request)])
