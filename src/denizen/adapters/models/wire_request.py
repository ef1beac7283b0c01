"""The settings and parameters of one request: what this model on this provider accepts, and nothing it would refuse.

Called by `model`, after `convert` made the messages.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from denizen.adapters.models.convert import NO_MARKS, Dialect, Marks, instructions_of
from denizen.adapters.models.settings import CacheTtl, Kind, ProviderSpec
from denizen.domain.agent import Sampling
from denizen.domain.message import Role
from denizen.domain.prompt import Stability
from denizen.ports.model import Capabilities, ModelRequest

if TYPE_CHECKING:
    from pydantic_ai.models import Model as VendorModel
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.tools import ToolDefinition

_INLINE_SYSTEM: frozenset[Kind] = frozenset({"openai", "openai-responses", "openrouter", "xai", "groq"})
_USER_FIRST: frozenset[Kind] = frozenset({"anthropic", "google"})
_KEYED_CACHE: frozenset[Kind] = frozenset({"openai", "openai-responses"})
_LONGEST_CACHE_KEY = 64
_CONVERSATION_TTL: CacheTtl = "5m"
_MOST_MARKS = 3
"""In the conversation, beside the one on the system prompt or the tools: Anthropic allows four (inventory CW1)."""


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
        **_sampling(request.sampling, capabilities, claude="claude" in vendor.model_name),
        **_tool_choice(request, capabilities, vendor),
    }
    if capabilities.cache_marks:
        settings |= _cache_marks(spec, request)
    if spec.kind in _KEYED_CACHE and request.conversation_key:
        settings["openai_prompt_cache_key"] = _cache_key(request.conversation_key)
    if spec.kind == "google":
        settings["timeout"] = spec.idle_s  # its SDK overrules the client's time-outs with twenty minutes
    if spec.kind == "openai-responses":
        settings["openai_store"] = False  # the conversation is ours; the provider need not keep it
    return settings  # pyright: ignore[reportReturnType] - a TypedDict whose vendor keys are not in its base


def _sampling(wanted: Sampling, capabilities: Capabilities, *, claude: bool) -> dict[str, Any]:
    """What the model accepts, clamped. Claude takes temperatures up to 1, and refuses temperature beside top_p."""
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
    if choice == "required" and not _can_be_forced(vendor):
        choice = "auto"
    return {"tool_choice": choice} | ({} if capabilities.parallel_calls else {"parallel_tool_calls": False})


def _can_be_forced(vendor: VendorModel) -> bool:
    profile = vendor.profile
    thinks = profile.get("thinking_enabled_by_default", False)
    while_thinking = profile.get("supports_forced_tool_choice_with_thinking", True)
    return profile.get("supports_forced_tool_choice", True) and (while_thinking or not thinks)


def marks_of(request: ModelRequest, spec: ProviderSpec, capabilities: Capabilities) -> Marks:
    """The messages that promise to keep their bytes, the last ones of them: what lies before is found from there.

    Closed blocks are kept as long as the system prompt (inventory C22), the growing tail as other conversations are.
    """
    if not capabilities.cache_marks:
        return NO_MARKS
    stable = [place for place, message in enumerate(request.messages) if message.stability < Stability.TURN]
    most = _MOST_MARKS - (1 if _ends_in_tools(request) else 0)
    messages = request.messages
    return {
        place: spec.cache_ttl if messages[place].stability is Stability.FOREVER else _CONVERSATION_TTL
        for place in stable[-most:]
    }


def _ends_in_tools(request: ModelRequest) -> bool:
    return bool(request.messages) and request.messages[-1].role is Role.TOOL


def _cache_marks(spec: ProviderSpec, request: ModelRequest) -> dict[str, Any]:
    """Three of the four marks that Anthropic allows (inventory CW1): tools, stable system prompt, conversation. Where
    messages have marks of their own, one on the system prompt, or on the tools where there is none, and one at the end
    of a round of tools.
    """
    own = "openrouter" if spec.kind == "openrouter" else "anthropic"
    if any(message.stability < Stability.TURN for message in request.messages):
        has_prompt = any(s.text.strip() and s.stability < Stability.TURN for s in request.segments)
        first = "cache_instructions" if has_prompt else "cache_tool_definitions"
        marks: dict[str, Any] = {f"{own}_{first}": spec.cache_ttl}
        return marks | ({f"{own}_cache_messages": _CONVERSATION_TTL} if _ends_in_tools(request) else {})
    return {
        f"{own}_cache_tool_definitions": spec.cache_ttl,
        f"{own}_cache_instructions": spec.cache_ttl,
        f"{own}_cache_messages": _CONVERSATION_TTL,
    }


def _cache_key(conversation_key: str) -> str:
    if len(conversation_key) <= _LONGEST_CACHE_KEY:
        return conversation_key
    return hashlib.sha256(conversation_key.encode()).hexdigest()
