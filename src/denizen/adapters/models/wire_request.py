"""The settings and parameters of one request: what this model on this provider accepts, and nothing it would refuse.

Called by `model`, after `convert` made the messages.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from denizen.adapters.models.convert import NO_MARKS, Dialect, Marks, instructions_of
from denizen.adapters.models.settings import CacheTtl, Kind, ProviderSpec
from denizen.domain.agent import SamplingSettings
from denizen.domain.message import Role
from denizen.domain.prompt import PromptMessage, Stability
from denizen.ports.model import Capabilities, ModelRequest

if TYPE_CHECKING:
    from pydantic_ai.models import Model as VendorModel
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.tools import ToolDefinition

_INLINE_SYSTEM: frozenset[Kind] = frozenset({"openai", "openai-responses", "openrouter", "xai", "groq"})
_USER_FIRST: frozenset[Kind] = frozenset({"anthropic", "google"})
_KEYED_CACHE: frozenset[Kind] = frozenset({"openai", "openai-responses"})
_TELLS_MODALITIES: frozenset[Kind] = frozenset({"openrouter", "openai-compatible"})
_LONGEST_CACHE_KEY = 64
_FIVE_MINUTES_S = 300.0
_ALL_MARKS = 4
"""Anthropic allows no more (inventory CW1)."""
_MOST_MARKS = 3
"""In the conversation, beside the one on the system prompt or the tools."""


def dialect_of(spec: ProviderSpec, name: str, capabilities: Capabilities) -> Dialect:
    """How messages have to look for this model. `name` is our full name of it."""
    return Dialect(
        home=name,
        images=capabilities.images,
        inline_system=spec.kind in _INLINE_SYSTEM and "claude" not in name and "gemini" not in name,
        user_first=spec.kind in _USER_FIRST,
        flags_errors=spec.kind == "anthropic",
    )


def parameters_of(
    request: ModelRequest, capabilities: Capabilities, tools: list[ToolDefinition]
) -> ModelRequestParameters:
    """System prompt, tools (given in the vendor's form) and the form of the output.

    A schema constrains the output where the model can be constrained; elsewhere it becomes an instruction.
    """
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.output import OutputObjectDefinition

    output = None
    if request.output_schema is not None:
        output = OutputObjectDefinition(json_schema=dict(request.output_schema), name=request.output_name)
    return ModelRequestParameters(
        function_tools=tools,
        instruction_parts=instructions_of(request.segments),
        output_object=output,
        output_mode="text" if output is None else "native" if capabilities.json_schema else "prompted",
    )


def settings_of(
    request: ModelRequest, spec: ProviderSpec, capabilities: Capabilities, vendor: VendorModel, left_s: float
) -> ModelSettings:
    """Everything else. `left_s` is what remains of the request's time."""
    most = capabilities.max_output_tokens
    settings: dict[str, Any] = {
        "max_tokens": request.max_output_tokens if most is None else min(request.max_output_tokens, most),
        "request_timeout": left_s,
        **_sampling(request, capabilities, claude="claude" in vendor.model_name),
        **_tool_choice(request, capabilities, vendor),
    }
    if request.reasoning:
        settings["thinking"] = True  # left out for models that cannot
    if capabilities.image_output and spec.kind in _TELLS_MODALITIES:
        settings["extra_body"] = {"modalities": ["image", "text"]}
    if capabilities.cache_marks:
        settings |= _cache_marks(spec, request, capabilities)
    if spec.kind in _KEYED_CACHE and request.conversation_key:
        settings["openai_prompt_cache_key"] = _cache_key(request.conversation_key)
    if spec.kind == "google":
        settings["timeout"] = spec.idle_s  # its SDK overrules the client's time-outs with twenty minutes
    if spec.kind == "openai-responses":
        settings["openai_store"] = False  # the conversation is ours; the provider need not keep it
    return settings  # pyright: ignore[reportReturnType] - a TypedDict whose vendor keys are not in its base


def _sampling(request: ModelRequest, capabilities: Capabilities, *, claude: bool) -> dict[str, Any]:
    """What the model accepts, clamped. Claude takes temperatures up to 1, refuses temperature beside top_p, and both
    while it reasons.
    """
    wanted = SamplingSettings() if claude and request.reasoning else request.sampling
    chosen: dict[str, Any] = {}
    if wanted.temperature is not None and "temperature" in capabilities.sampling:
        chosen["temperature"] = min(max(wanted.temperature, 0.0), 1.0 if claude else 2.0)
    if wanted.top_p is not None and "top_p" in capabilities.sampling and not (claude and chosen):
        chosen["top_p"] = min(max(wanted.top_p, 0.0), 1.0)
    if wanted.seed is not None and "seed" in capabilities.sampling:
        chosen["seed"] = wanted.seed
    return chosen


def _tool_choice(request: ModelRequest, capabilities: Capabilities, vendor: VendorModel) -> dict[str, Any]:
    """A call can be demanded of most models only; the others are left to choose."""
    if not request.tools:
        return {}
    choice = request.tool_choice
    if choice == "required" and not _can_be_forced(vendor, reasons=request.reasoning):
        choice = "auto"
    return {"tool_choice": choice} | ({} if capabilities.parallel_calls else {"parallel_tool_calls": False})


def _can_be_forced(vendor: VendorModel, *, reasons: bool) -> bool:
    profile = vendor.profile
    thinks = reasons or profile.get("thinking_enabled_by_default", False)
    while_thinking = profile.get("supports_forced_tool_choice_with_thinking", True)
    return profile.get("supports_forced_tool_choice", True) and (while_thinking or not thinks)


def marks_of(request: ModelRequest, spec: ProviderSpec, capabilities: Capabilities) -> Marks:
    """The messages at whose end the provider is to keep the prompt: the last ones that promise to keep their bytes, and
    the end of a round of tools. What lies before the first is found from there, and nothing that the next request does
    not show is in what is kept.

    Closed blocks are kept as long as the system prompt (inventory C22), a conversation as its rhythm has it
    (`ModelRequest.keep_s`), and what a participant does with tools for five minutes.
    """
    if not capabilities.cache_marks:
        return NO_MARKS
    messages, end = request.messages, _lasting(request.messages)
    places = [place for place, message in enumerate(messages[:end]) if message.stability < Stability.TURN]
    if end and messages[end - 1].role is Role.TOOL:
        places = sorted({*places, end - 1})
    return {place: _ttl_of(messages[place].stability, request, spec) for place in places[-_MOST_MARKS:]}


def _lasting(messages: Sequence[PromptMessage]) -> int:
    """How many messages there are before the notes of this request, which stand last."""
    end = len(messages)
    while end and messages[end - 1].stability >= Stability.REQUEST:
        end -= 1
    return end


def _ttl_of(stability: Stability, request: ModelRequest, spec: ProviderSpec) -> CacheTtl:
    """Never an hour behind five minutes, which Anthropic refuses."""
    if stability is Stability.FOREVER:
        return spec.cache_ttl
    is_long = stability < Stability.TURN and request.keep_s > _FIVE_MINUTES_S
    return spec.cache_ttl if is_long else "5m"


def _cache_marks(spec: ProviderSpec, request: ModelRequest, capabilities: Capabilities) -> dict[str, Any]:
    """The marks that no message carries (inventory CW1): the system prompt, the tools while there is one left of the
    four, and the end of the last message.
    """
    own = "openrouter" if spec.kind == "openrouter" else "anthropic"
    marks = marks_of(request, spec, capabilities)
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
