"""One request in the vendor-neutral form that pydantic-ai sends: messages, system prompt, tools and settings. `reply`
is the way back.

Messages are byte-stable: the same request gives the same messages, and a longer history begins with the same messages
as the shorter one. Settings are what this model on this provider accepts, and nothing it would refuse.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from denizen.adapters.models.message_text import EMPTY_MESSAGE, HIDDEN_IMAGE, join_parts, read_part, unforge, write_note
from denizen.adapters.models.providers import CacheTtl, ProviderSpec
from denizen.adapters.models.reply import ProviderState, unpack_state
from denizen.domain.agent import SamplingSettings
from denizen.domain.errors import InvalidInput
from denizen.domain.message import ImagePart, Part, Role, ThinkingPart, ToolCallPart, ToolResultPart
from denizen.domain.prompt import PromptMessage, Segment, Stability, order_segments
from denizen.domain.record import record
from denizen.domain.tool import ToolSpec
from denizen.ports.model import RAW_ARGS, Capabilities, ModelRequest

if TYPE_CHECKING:
    from pydantic_ai.messages import (
        InstructionPart,
        ModelMessage,
        ModelResponse,
        ModelResponsePart,
        ToolReturnPart,
        UserContent,
    )
    from pydantic_ai.messages import ModelRequest as VendorRequest
    from pydantic_ai.models import Model as VendorModel
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.tools import ToolDefinition

_EARLIER = "(The conversation began earlier; the first messages are not shown.)"


Marks: TypeAlias = Mapping[int, CacheTtl]
"""The places of messages, of the user or of results, at whose end the provider keeps the prompt, and for how long."""
NO_MARKS: Marks = MappingProxyType({})


@record
class MessageDialect:
    """The form of messages that a provider takes. `home` is the model that thinking goes back to; others do not get it.

    `inline_system`: system messages may stand within the conversation; else they are user text in a `<system-note>`.
    `user_first`: the conversation has to begin with a user message. `flags_errors`: failed tool results are marked.
    """

    home: str
    images: bool
    inline_system: bool = False
    user_first: bool = False
    flags_errors: bool = False


def build_instructions(segments: Sequence[Segment]) -> list[InstructionPart]:
    """Returns the system prompt, most stable first. What changes each turn is marked, so that the rest is cached."""
    from pydantic_ai.messages import InstructionPart

    return [
        InstructionPart(content=segment.text, dynamic=segment.stability >= Stability.TURN)
        for segment in order_segments(segments)
        if segment.text.strip()
    ]


def build_tools(tools: Sequence[ToolSpec]) -> list[ToolDefinition]:
    """Returns the tools in order. Never strict: strict schemas are rewritten, compiled on first use, and refused."""
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


def build_messages(
    messages: Sequence[PromptMessage], dialect: MessageDialect, *, prefill: bool, marks: Marks = NO_MARKS
) -> list[ModelMessage]:
    """Returns the conversation. With `prefill` it may end in assistant text, which the model continues (trailing space
    cut). A mark on the last message is not set here, but with the settings of the request.

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


def _wire_messages(messages: Sequence[PromptMessage], dialect: MessageDialect, marks: Marks) -> Iterator[ModelMessage]:
    from pydantic_ai.messages import CachePoint, SystemPromptPart
    from pydantic_ai.messages import ModelRequest as VendorRequest

    results: list[ToolReturnPart] = []
    before: CachePoint | None = None  # at the end of results, where only the message behind them can have it
    for place, message in enumerate(messages):
        mark = CachePoint(ttl=marks[place]) if place in marks and place < len(messages) - 1 else None
        if message.role is Role.TOOL:
            # The results of one step travel together, however many messages the engine kept them in.
            results.extend(_build_results(message, dialect))
            before = mark
            continue
        if results:
            yield VendorRequest(parts=results)
            results = []
        if message.role is Role.ASSISTANT:
            response = _build_response(message, dialect)
            if response.parts:
                yield response
        elif message.role is Role.SYSTEM and dialect.inline_system:
            yield VendorRequest(parts=[SystemPromptPart(join_parts(message.parts))])
        elif message.role is Role.SYSTEM:
            yield _user_request([write_note(message.parts)])
        else:
            content = list(_user_content(message.parts, dialect)) or [EMPTY_MESSAGE]
            yield _user_request([each for each in (before, *content, mark) if each is not None])
            before = None
    if results:
        yield VendorRequest(parts=results)


def _user_request(content: Sequence[UserContent]) -> VendorRequest:
    from pydantic_ai.messages import ModelRequest as VendorRequest
    from pydantic_ai.messages import UserPromptPart

    only = content[0] if len(content) == 1 else None
    return VendorRequest(parts=[UserPromptPart(only if isinstance(only, str) else content)])


def _user_content(parts: Sequence[Part], dialect: MessageDialect) -> Iterator[UserContent]:
    for part in parts:
        if isinstance(part, ImagePart) and dialect.images:
            yield _image(part)
        elif text := read_part(part):
            yield unforge(text)


def _image(part: ImagePart) -> UserContent:
    from pydantic_ai.messages import BinaryContent, ImageUrl

    if not part.url.startswith("data:"):
        return ImageUrl(part.url, media_type=part.media_type or None)
    head, _, body = part.url.removeprefix("data:").partition(",")
    media_type = part.media_type or head.split(";", 1)[0] or "image/png"
    try:
        data = base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        return HIDDEN_IMAGE
    # The name of the image must not depend on anything but its bytes; pydantic-ai derives it from them.
    return BinaryContent(data, media_type=media_type) if data and ";base64" in head else HIDDEN_IMAGE


def _build_results(message: PromptMessage, dialect: MessageDialect) -> Iterator[ToolReturnPart]:
    from pydantic_ai.messages import ToolReturnPart

    for part in message.parts:
        if isinstance(part, ToolResultPart):
            yield ToolReturnPart(
                tool_name=part.tool,
                content=unforge(part.text),
                tool_call_id=part.call_id,
                outcome="failed" if part.is_error and dialect.flags_errors else "success",
            )


def _build_response(message: PromptMessage, dialect: MessageDialect) -> ModelResponse:
    """Returns an assistant message. Thinking of another model is left out, and so is text that is only white space."""
    from pydantic_ai import messages as wire

    of_calls = find_call_states(message.parts, dialect.home)
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
                if text := read_part(part):
                    parts.append(wire.TextPart(text))
    return wire.ModelResponse(parts=parts, provider_name=author)


def find_call_states(parts: Sequence[Part], home: str) -> dict[str, ProviderState]:
    """Returns what the provider wants back with tool calls, by the call's id."""
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


_LONGEST_CACHE_KEY = 64
_FIVE_MINUTES_S = 300.0
_ALL_MARKS = 4
"""Anthropic's limit of marks in one request."""
_MOST_MARKS = 3
"""The marks in the conversation, beside the one on the system prompt or the tools."""


def get_dialect(spec: ProviderSpec, name: str, capabilities: Capabilities) -> MessageDialect:
    """Returns the form of messages for this model. `name` is our full name of it."""
    wire = spec.facts.wire
    return MessageDialect(
        home=name,
        images=capabilities.images,
        inline_system=wire.inline_system and "claude" not in name and "gemini" not in name,
        user_first=wire.user_first,
        flags_errors=wire.flags_errors,
    )


def build_parameters(
    request: ModelRequest, capabilities: Capabilities, tools: list[ToolDefinition]
) -> ModelRequestParameters:
    """Returns system prompt, tools (given in the vendor's form) and the form of the output.

    A schema constrains the output where the model can be constrained; elsewhere it becomes an instruction.
    """
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.output import OutputObjectDefinition

    output = None
    if request.output_schema is not None:
        output = OutputObjectDefinition(json_schema=dict(request.output_schema), name=request.output_name)
    is_native = output is not None and capabilities.json_schema and not request.takes_any_object
    return ModelRequestParameters(
        function_tools=tools,
        instruction_parts=build_instructions(request.segments),
        output_object=output,
        output_mode="text" if output is None else "native" if is_native else "prompted",
    )


def build_settings(
    request: ModelRequest, spec: ProviderSpec, capabilities: Capabilities, vendor: VendorModel, left_s: float
) -> ModelSettings:
    """Returns all other settings. `left_s` is what remains of the request's time."""
    settings: dict[str, Any] = {
        "max_tokens": limit_output(request, capabilities),
        "request_timeout": left_s,
        **choose_sampling(request, capabilities, model=vendor.model_name),
        **_tool_choice(request, capabilities, vendor),
    }
    if request.reasoning:
        settings["thinking"] = True  # left out for models that cannot
    if capabilities.image_output and spec.facts.wire.modalities:
        settings["extra_body"] = {"modalities": ["image", "text"]}
    if capabilities.cache_marks:
        settings |= _cache_marks(spec, request, capabilities)
    if spec.facts.wire.prompt_cache_key and request.conversation_key:
        settings["openai_prompt_cache_key"] = _cache_key(request.conversation_key)
    if spec.facts.protocol == "google":
        settings["timeout"] = spec.idle_s  # its SDK overrules the client's time-outs with twenty minutes
    if spec.facts.protocol == "openai-responses":
        settings["openai_store"] = False  # the conversation is ours; the provider need not keep it
    return settings  # pyright: ignore[reportReturnType] - a TypedDict whose vendor keys are not in its base


def limit_output(request: ModelRequest, capabilities: Capabilities) -> int:
    """Returns how many tokens the answer may have: what is asked for, at most what the model can."""
    most = capabilities.max_output_tokens
    return request.max_output_tokens if most is None else min(request.max_output_tokens, most)


def choose_sampling(request: ModelRequest, capabilities: Capabilities, *, model: str) -> dict[str, Any]:
    """Returns the sampling that the model accepts, clamped. Claude takes temperatures up to 1, refuses temperature
    beside top_p, and both while it reasons. Raises InvalidInput where the asker insists on something else.
    """
    claude = "claude" in model
    wanted = SamplingSettings() if claude and request.reasoning else request.sampling
    chosen: dict[str, Any] = {}
    if wanted.temperature is not None and "temperature" in capabilities.sampling:
        chosen["temperature"] = min(max(wanted.temperature, 0.0), 1.0 if claude else 2.0)
    if wanted.top_p is not None and "top_p" in capabilities.sampling and not (claude and chosen):
        chosen["top_p"] = min(max(wanted.top_p, 0.0), 1.0)
    if wanted.seed is not None and "seed" in capabilities.sampling:
        chosen["seed"] = wanted.seed
    request.check_sampling({name for name, value in chosen.items() if value == getattr(wanted, name)}, model)
    return chosen


def _tool_choice(request: ModelRequest, capabilities: Capabilities, vendor: VendorModel) -> dict[str, Any]:
    """Returns the choice of tools. A call can be demanded of most models only; the others are left to choose."""
    if not request.tools:
        return {}
    choice, profile = request.tool_choice, vendor.profile
    thinks = request.reasoning or profile.get("thinking_enabled_by_default", False)
    while_thinking = profile.get("supports_forced_tool_choice_with_thinking", True)
    can_be_forced = profile.get("supports_forced_tool_choice", True) and (while_thinking or not thinks)
    if choice == "required" and not can_be_forced:
        choice = "auto"
    is_parallel = capabilities.parallel_calls and request.parallel_calls
    return {"tool_choice": choice} | ({} if is_parallel else {"parallel_tool_calls": False})


def plan_cache_marks(request: ModelRequest, spec: ProviderSpec, capabilities: Capabilities) -> Marks:
    """Plans the messages at whose end the provider keeps the prompt: the last ones that promise to keep their bytes,
    and the end of a round of tools. The provider finds what lies before the first by itself, and nothing is kept that
    the next request does not contain.

    Closed blocks are kept as long as the system prompt, a conversation as its rhythm asks (`ModelRequest.keep_s`), and
    what a participant does with tools for five minutes.
    """
    if not capabilities.cache_marks:
        return NO_MARKS
    messages, end = request.messages, _lasting(request.messages)
    places = [place for place, message in enumerate(messages[:end]) if message.stability < Stability.TURN]
    if end and messages[end - 1].role is Role.TOOL:
        places = sorted({*places, end - 1})
    return {place: _choose_ttl(messages[place].stability, request, spec) for place in places[-_MOST_MARKS:]}


def _lasting(messages: Sequence[PromptMessage]) -> int:
    """Returns how many messages there are before the notes of this request, which stand last."""
    end = len(messages)
    while end and messages[end - 1].stability >= Stability.REQUEST:
        end -= 1
    return end


def _choose_ttl(stability: Stability, request: ModelRequest, spec: ProviderSpec) -> CacheTtl:
    """Returns how long to keep a message. Anthropic refuses an hour behind five minutes, so it is never that."""
    if stability is Stability.FOREVER:
        return spec.cache_ttl
    is_long = stability < Stability.TURN and request.keep_s > _FIVE_MINUTES_S
    return spec.cache_ttl if is_long else "5m"


def _cache_marks(spec: ProviderSpec, request: ModelRequest, capabilities: Capabilities) -> dict[str, Any]:
    """Returns the marks that no message carries: the system prompt, the tools while there is one left of the four, and
    the end of the last message.
    """
    own = spec.facts.wire.cache_marks or "anthropic"  # an override may mark prompts for a proxy of another kind
    marks = plan_cache_marks(request, spec, capabilities)
    has_prompt = any(s.text.strip() and s.stability < Stability.TURN for s in request.segments)
    first = ["instructions"] if has_prompt else []
    first += ["tool_definitions"] if request.tools else []
    chosen: dict[str, Any] = {f"{own}_cache_{place}": spec.cache_ttl for place in first[: _ALL_MARKS - len(marks)]}
    last = len(request.messages) - 1
    return chosen | ({f"{own}_cache_messages": marks[last]} if last in marks else {})


def _cache_key(conversation_key: str) -> str:
    if len(conversation_key) <= _LONGEST_CACHE_KEY:
        return conversation_key
    return hashlib.sha256(conversation_key.encode()).hexdigest()
