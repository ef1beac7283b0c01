"""Our prompt in a vendor-neutral form that pydantic-ai sends (inventory V14, S12). The way back is `reply`.

Byte-stable: the same request gives the same messages, and a longer history begins with the same messages as the
shorter one. Called by `model`, once for each request.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from denizen.adapters.models.opaque import State, unpack_state
from denizen.adapters.models.settings import CacheTtl
from denizen.domain.errors import InvalidInput
from denizen.domain.message import (
    FilePart,
    ImagePart,
    Part,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from denizen.domain.prompt import PromptMessage, Segment, Stability, order_segments
from denizen.domain.tool import ToolSpec
from denizen.ports.model import RAW_ARGS

if TYPE_CHECKING:
    from pydantic_ai.messages import (
        InstructionPart,
        ModelMessage,
        ModelResponse,
        ModelResponsePart,
        ToolReturnPart,
        UserContent,
    )
    from pydantic_ai.messages import (
        ModelRequest as VendorRequest,
    )
    from pydantic_ai.tools import ToolDefinition

_NOTE = "system-note"
_EARLIER = "(The conversation began earlier; the first messages are not shown.)"
_BLIND = "(an image that cannot be shown here)"


Marks: TypeAlias = Mapping[int, CacheTtl]
"""The places of messages, of the user or of results, at whose end the provider keeps the prompt, and for how long."""
NO_MARKS: Marks = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a provider takes. `home` is the model that thinking goes back to; others do not get it.

    `inline_system`: system messages may stand within the conversation; else they are user text in a `<system-note>`.
    `user_first`: the conversation has to begin with a user message. `flags_errors`: failed tool results are marked.
    """

    home: str
    images: bool
    inline_system: bool = False
    user_first: bool = False
    flags_errors: bool = False


def instructions_of(segments: Sequence[Segment]) -> list[InstructionPart]:
    """The system prompt, most stable first. What changes each turn is marked, so that the rest can be cached."""
    from pydantic_ai.messages import InstructionPart

    return [
        InstructionPart(content=segment.text, dynamic=segment.stability >= Stability.TURN)
        for segment in order_segments(segments)
        if segment.text.strip()
    ]


def tools_of(tools: Sequence[ToolSpec]) -> list[ToolDefinition]:
    """The tools in the given order. Never strict: strict schemas are rewritten, compiled on first use, and refused."""
    from pydantic_ai.tools import ToolDefinition

    bare: dict[str, object] = {"type": "object", "properties": {}}
    return [
        ToolDefinition(
            name=tool.name,
            description=tool.description,
            parameters_json_schema={**bare, **tool.parameters},
            strict=False,
        )
        for tool in tools
    ]


def messages_of(
    messages: Sequence[PromptMessage], dialect: Dialect, *, prefill: bool, marks: Marks = NO_MARKS
) -> list[ModelMessage]:
    """The conversation. With `prefill` it may end in assistant text, which the model continues (trailing space cut).
    A mark on the last message is not set here, but with the settings of the request.

    Raises InvalidInput when it ends in an assistant message otherwise: most models refuse that.
    """
    from pydantic_ai.messages import ModelResponse

    wire = list(_wire_messages(messages, dialect, marks))
    if dialect.user_first and wire and isinstance(wire[0], ModelResponse):
        wire.insert(0, _user_request([_EARLIER]))
    if wire and isinstance(wire[-1], ModelResponse):
        if not prefill:
            raise InvalidInput(
                "The conversation may not end with the model's own message.",
                code="prefill_unsupported",
                why="This model does not continue text that was begun for it.",
            )
        _trim_end(wire)
    return wire


def _wire_messages(messages: Sequence[PromptMessage], dialect: Dialect, marks: Marks) -> Iterator[ModelMessage]:
    from pydantic_ai.messages import CachePoint, SystemPromptPart
    from pydantic_ai.messages import ModelRequest as VendorRequest

    results: list[ToolReturnPart] = []
    before: CachePoint | None = None  # at the end of results, where only the message behind them can have it
    for place, message in enumerate(messages):
        mark = CachePoint(ttl=marks[place]) if place in marks and place < len(messages) - 1 else None
        if message.role is Role.TOOL:
            # The results of one step travel together, however many messages the engine kept them in.
            results.extend(_results_of(message, dialect))
            before = mark
            continue
        if results:
            yield VendorRequest(parts=results)
            results = []
        if message.role is Role.ASSISTANT:
            response = _response_of(message, dialect)
            if response.parts:
                yield response
        elif message.role is Role.SYSTEM and dialect.inline_system:
            yield VendorRequest(parts=[SystemPromptPart(_text_of(message.parts))])
        elif message.role is Role.SYSTEM:
            yield _user_request([f"<{_NOTE}>\n{_text_of(message.parts)}\n</{_NOTE}>"])
        else:
            content = list(_user_content(message.parts, dialect)) or ["(empty message)"]
            yield _user_request([each for each in (before, *content, mark) if each is not None])
            before = None
    if results:
        yield VendorRequest(parts=results)


def _user_request(content: Sequence[UserContent]) -> VendorRequest:
    from pydantic_ai.messages import ModelRequest as VendorRequest
    from pydantic_ai.messages import UserPromptPart

    only = content[0] if len(content) == 1 else None
    return VendorRequest(parts=[UserPromptPart(only if isinstance(only, str) else content)])


def _user_content(parts: Sequence[Part], dialect: Dialect) -> Iterator[UserContent]:
    for part in parts:
        if isinstance(part, ImagePart) and dialect.images:
            yield _image(part)
        elif text := _readable(part):
            yield _unforged(text)


def _readable(part: Part) -> str:
    """A part in words; empty when it says nothing."""
    match part:
        case TextPart(text):
            return text if text.strip() else ""
        case FilePart(name, media_type, size_bytes, text):
            head = f"[file {name}, {media_type or 'unknown type'}, {size_bytes} bytes]"
            return f"{head}\n{text}" if text else head
        case ImagePart():
            return _BLIND
        case _:
            return ""


def _text_of(parts: Sequence[Part]) -> str:
    return "\n".join(text for part in parts if (text := _readable(part)))


def _unforged(text: str) -> str:
    """Text from outside, unable to pose as a note of ours."""
    return text.replace(_NOTE, "system note") if _NOTE in text else text


def _image(part: ImagePart) -> UserContent:
    from pydantic_ai.messages import BinaryContent, ImageUrl

    if not part.url.startswith("data:"):
        return ImageUrl(part.url, media_type=part.media_type or None)
    head, _, body = part.url.removeprefix("data:").partition(",")
    media_type = part.media_type or head.split(";", 1)[0] or "image/png"
    try:
        data = base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        return _BLIND
    # The name of the image must not depend on anything but its bytes; pydantic-ai derives it from them.
    return BinaryContent(data, media_type=media_type) if data and ";base64" in head else _BLIND


def _results_of(message: PromptMessage, dialect: Dialect) -> Iterator[ToolReturnPart]:
    from pydantic_ai.messages import ToolReturnPart

    for part in message.parts:
        if isinstance(part, ToolResultPart):
            yield ToolReturnPart(
                tool_name=part.tool,
                content=_unforged(part.text),
                tool_call_id=part.call_id,
                outcome="failed" if part.is_error and dialect.flags_errors else "success",
            )


def _response_of(message: PromptMessage, dialect: Dialect) -> ModelResponse:
    """An assistant message. Thinking of another model is left out; so are words that are only white space."""
    from pydantic_ai import messages as wire

    of_calls = _call_states(message.parts, dialect.home)
    parts: list[ModelResponsePart] = []
    author: str | None = None
    for part in message.parts:
        match part:
            case ThinkingPart():
                state = unpack_state(part.signature)
                if state is None or state.home != dialect.home or state.call:
                    continue
                author = state.vendor
                parts.append(
                    wire.ThinkingPart(
                        content=part.text,
                        id=state.id,
                        signature=state.signature,
                        provider_name=state.vendor,
                        provider_details=state.details,
                    )
                )
            case ToolCallPart():
                state = of_calls.get(part.id)
                author = state.vendor if state else author
                parts.append(
                    wire.ToolCallPart(
                        tool_name=part.tool,
                        args={} if RAW_ARGS in part.args else dict(part.args),
                        tool_call_id=part.id,
                        id=state.id if state else None,
                        provider_name=state.vendor if state else None,
                        provider_details=state.details if state else None,
                    )
                )
            case _:
                if text := _readable(part):
                    parts.append(wire.TextPart(text))
    return wire.ModelResponse(parts=parts, provider_name=author)


def _call_states(parts: Sequence[Part], home: str) -> dict[str, State]:
    """What the provider wants back with tool calls, by the call's id."""
    states = (unpack_state(part.signature) for part in parts if isinstance(part, ThinkingPart))
    return {state.call: state for state in states if state is not None and state.home == home and state.call}


def _trim_end(wire: list[ModelMessage]) -> None:
    """Cuts trailing white space off the prefill (providers refuse it), and the prefill when nothing is left.

    Raises InvalidInput when the prefill is anything but text.
    """
    from pydantic_ai import messages as types

    last = wire[-1]
    if not all(isinstance(part, types.TextPart) for part in last.parts):
        raise InvalidInput("A model can only continue text.", code="prefill_unsupported")
    text = "\n".join(part.content for part in last.parts if isinstance(part, types.TextPart)).rstrip()
    if text:
        wire[-1] = types.ModelResponse(parts=[types.TextPart(text)])
    else:
        wire.pop()
