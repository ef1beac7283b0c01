"""One request as a body of chat completions (https://platform.openai.com/docs/api-reference/chat), for `chat_client`.

Only what every server of the protocol knows is sent, beside what `WireTraits` says of its kind. Bytes are as stable as
in `request`: a longer history begins with the same messages as the shorter one.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from denizen.adapters.models.client import ModelTarget
from denizen.adapters.models.message_text import EMPTY_MESSAGE, join_parts, read_part, unforge, write_note
from denizen.adapters.models.reply import unpack_state
from denizen.adapters.models.request import choose_sampling, find_call_states, limit_output
from denizen.domain.errors import InvalidInput
from denizen.domain.message import ImagePart, Role, ThinkingPart, ToolCallPart, ToolResultPart
from denizen.domain.prompt import PromptMessage, order_segments
from denizen.domain.tool import ToolSpec
from denizen.ports.model import RAW_ARGS, ModelRequest

Body: TypeAlias = dict[str, Any]

THINKING_FIELDS = ("reasoning", "reasoning_content")
"""The fields of thinking: the first in Ollama, vLLM and proxies, the second in DeepSeek and llama.cpp."""
EXTRA = "extra_content"
"""The field of a call that Gemini wants back."""


def build_body(request: ModelRequest, target: ModelTarget) -> Body:
    """Returns the body of a streamed request. Raises InvalidInput when the conversation ends in an assistant message
    that this model cannot continue.
    """
    capabilities, facts = target.capabilities, target.spec.facts
    limit = "max_completion_tokens" if facts.wire.max_completion_tokens else "max_tokens"
    body: Body = {
        "model": target.access.model,
        "messages": _merge_system([*_system_messages(request, target), *_build_messages(request.messages, target)]),
        "stream": True,
        "stream_options": {"include_usage": True},
        limit: limit_output(request, capabilities),
        **choose_sampling(request, capabilities, model=target.access.model),
    }
    if request.tools:
        body |= {"tools": [_build_tool(tool) for tool in request.tools], "tool_choice": request.tool_choice}
        if not (capabilities.parallel_calls and request.parallel_calls):
            body["parallel_tool_calls"] = False
    if request.output_schema is not None:
        form: Body = {"name": request.output_name, "schema": request.output_schema}
        # A strict server refuses an open schema, such as a client may send.
        is_open = request.output_schema.get("type") == "object" and request.output_schema.get(
            "additionalProperties", True
        )
        if facts.wire.strict and not is_open:
            form["strict"] = True
        is_bound = capabilities.json_schema and not request.takes_any_object
        body["response_format"] = {"type": "json_schema", "json_schema": form} if is_bound else {"type": "json_object"}
    if capabilities.image_output and facts.wire.modalities:
        body["modalities"] = ["image", "text"]
    return body


def _system_messages(request: ModelRequest, target: ModelTarget) -> Iterator[Body]:
    for segment in order_segments(request.segments):
        if segment.text.strip():
            yield {"role": "system", "content": segment.text}
    if request.output_schema is not None and (request.takes_any_object or not target.capabilities.json_schema):
        schema = json.dumps(request.output_schema, ensure_ascii=False)
        words = f"Answer with one JSON object that fits this schema, and with nothing else:\n{schema}"
        yield {"role": "system", "content": words}


def _merge_system(messages: Sequence[Body]) -> list[Body]:
    """Returns the messages with the system prompt in one: the chat templates of open weights refuse a second one."""
    first = next((place for place, each in enumerate(messages) if each["role"] != "system"), len(messages))
    if first == 0:
        return list(messages)
    prompt = "\n\n".join(message["content"] for message in messages[:first])
    return [{"role": "system", "content": prompt}, *messages[first:]]


def _build_messages(messages: Sequence[PromptMessage], target: ModelTarget) -> list[Body]:
    wire: list[Body] = []
    for message in messages:
        match message.role:
            case Role.TOOL:
                wire.extend(_build_results(message))
            case Role.ASSISTANT:
                wire.extend(_build_reply(message, target.name))
            case Role.SYSTEM if target.spec.facts.wire.inline_system:
                wire.append({"role": "system", "content": join_parts(message.parts)})
            case Role.SYSTEM:
                wire.append({"role": "user", "content": write_note(message.parts)})
            case Role.USER:
                wire.append({"role": "user", "content": _build_content(message, sees=target.capabilities.images)})
    if wire and wire[-1]["role"] == "assistant":
        _prepare_prefill(wire, target)
    return wire


def _prepare_prefill(wire: list[Body], target: ModelTarget) -> None:
    """Cuts trailing white space off the answer that the model continues, and the answer when nothing is left."""
    if not target.capabilities.prefill:
        raise InvalidInput(
            "The conversation may not end with the model's own message.",
            code="prefill_unsupported",
            why="This model does not continue text that was begun for it.",
        )
    if wire[-1].keys() != {"role", "content"}:
        raise InvalidInput("A model can only continue text.", code="prefill_unsupported")
    text = wire.pop()["content"].rstrip()
    if text:
        wire.append({"role": "assistant", "content": text})


def _build_content(message: PromptMessage, *, sees: bool) -> str | list[Body]:
    content: list[Body] = []
    for part in message.parts:
        if isinstance(part, ImagePart) and sees and _is_sound(part):
            content.append({"type": "image_url", "image_url": {"url": part.url}})
        elif text := read_part(part):
            content.append({"type": "text", "text": unforge(text)})
    if not content:
        return EMPTY_MESSAGE
    return content[0]["text"] if len(content) == 1 and "text" in content[0] else content


def _is_sound(part: ImagePart) -> bool:
    """Returns whether an image can be sent; a broken data URI would make the server refuse the whole conversation."""
    if not part.url.startswith("data:"):
        return True
    head, _, data = part.url.partition(",")
    return head.endswith(";base64") and is_base64(data)


def is_base64(data: str) -> bool:
    """Returns whether the data can be decoded, and is something."""
    try:
        return bool(base64.b64decode(data, validate=True))
    except (binascii.Error, ValueError):
        return False


def _build_results(message: PromptMessage) -> Iterator[Body]:
    for part in message.parts:
        if isinstance(part, ToolResultPart):
            yield {"role": "tool", "tool_call_id": part.call_id, "content": unforge(part.text)}


def _build_reply(message: PromptMessage, home: str) -> Iterator[Body]:
    """Yields an assistant message, unless it says nothing. The model's own thinking goes back in the field in which it
    came; that of another model is left out.
    """
    texts: list[str] = []
    thoughts: dict[str, list[str]] = {}
    of_calls = find_call_states(message.parts, home)
    calls: list[Body] = []
    for part in message.parts:
        match part:
            case ThinkingPart():
                state = unpack_state(part.signature)
                if state is not None and state.home == home and state.id in THINKING_FIELDS:
                    thoughts.setdefault(state.id, []).append(part.text)
            case ToolCallPart():
                args = {} if RAW_ARGS in part.args else part.args
                written = json.dumps(args, ensure_ascii=False, separators=(",", ":"))
                call: Body = {"id": part.id, "type": "function", "function": {"name": part.tool, "arguments": written}}
                state = of_calls.get(part.id)
                if state is not None and state.details and EXTRA in state.details:
                    call[EXTRA] = state.details[EXTRA]
                calls.append(call)
            case _:
                texts.extend([text] if (text := read_part(part)) else [])
    if not texts and not calls:
        return
    reply: Body = {"role": "assistant", **{name: "\n\n".join(told) for name, told in thoughts.items()}}
    yield reply | {"content": "\n\n".join(texts) if texts else None} | ({"tool_calls": calls} if calls else {})


def _build_tool(tool: ToolSpec) -> Body:
    bare: Body = {"type": "object", "properties": {}}
    function = {"name": tool.name, "description": tool.description, "parameters": {**bare, **tool.parameters}}
    return {"type": "function", "function": function}
