"""The conversation that a client of `/v1` carries, as it sends it: texts, pictures, calls and results. Pure.

Ids of calls stay as the client has them; `engine/inspection/exchange` finds the turns that they are of.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from denizen.domain.errors import InvalidInput
from denizen.domain.ids import CallId
from denizen.domain.message import ImagePart, Part, Role, TextPart, ToolCallPart, ToolResultPart, join_text
from denizen.domain.prompt import PromptMessage
from denizen.domain.record import record
from denizen.ports.model import RAW_ARGS
from denizen.web.http.openapi import Schema
from denizen.web.http.request import JsonBody, field_error, read_text

MAX_MESSAGES = 2000
"""More than any context holds. 100,000 in one request would hold everybody up for seconds."""
MAX_PARTS = 1000
MAX_ID_CHARS = 200
CALL_ID: Schema = {"type": "string", "minLength": 1, "maxLength": MAX_ID_CHARS}
PICTURE: Schema = {"type": "string", "pattern": "^(https://|data:image/)"}
_INSTRUCTION_ROLES = frozenset({"system", "developer"})
_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "tool": Role.TOOL}


@record
class ClientConversation:
    """`parts` are what is to be answered: the last message, or the results at the end."""

    parts: tuple[Part, ...]
    history: tuple[PromptMessage, ...]
    instructions: str

    @property
    def text(self) -> str:
        return join_text(self.parts)


def read_messages(body: JsonBody, name: str) -> Sequence[JsonBody]:
    """Raises InvalidInput."""
    value: Any = body.get(name)
    messages = cast("list[Any]", value) if isinstance(value, list) else []
    if not 1 <= len(messages) <= MAX_MESSAGES:
        raise field_error(name, f"a list of 1 to {MAX_MESSAGES} messages")
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            raise field_error(f"{name}[{index}]", "an object")
    return cast("list[JsonBody]", messages)


def read_conversation(messages: Sequence[JsonBody], where: str, *, is_continued: bool = False) -> ClientConversation:
    """Raises InvalidInput, which names the wrong message. `is_continued`: calls may stand before the first message."""
    instructions: list[str] = []
    chat: list[PromptMessage] = []
    tools: dict[str, str] = {}
    for index, message in enumerate(messages):
        at = f"{where}[{index}]"
        if read_text(message, "role") in _INSTRUCTION_ROLES:
            instructions.append(join_text(_read_parts(message, at)))
            continue
        read = _read_message(message, at, tools, is_continued=is_continued)
        tools |= {part.id: part.tool for part in read.parts if isinstance(part, ToolCallPart)}
        chat.append(read)
    end = len(chat)
    while end and chat[end - 1].role is Role.TOOL:
        end -= 1
    results = tuple(part for message in chat[end:] for part in message.parts)
    if not results and (not chat or chat[-1].role is not Role.USER):
        raise InvalidInput(
            "The last message must be the user's, or results of tools.",
            code="messages_invalid",
            fix=f"End `{where}` with a message of role `user`.",
        )
    parts, before = (results, chat[:end]) if results else (chat[-1].parts, chat[:-1])
    if not parts:
        raise InvalidInput("The last message is empty.", code="message_empty", fix="Write something to answer.")
    told = tuple(message for message in before if message.parts)
    return ClientConversation(parts, told, "\n\n".join(filter(None, instructions)))


def _read_message(message: JsonBody, where: str, tools: Mapping[str, str], *, is_continued: bool) -> PromptMessage:
    name = read_text(message, "role")
    role = _ROLES.get(name)
    if role is None or message.get("function_call"):
        what = "a call without an id" if role else f"role '{name}'"
        raise InvalidInput(
            f"{where} has {what}, which is not supported.",
            code="messages_invalid",
            fix="Send messages of role system, developer, user, assistant and tool, with calls in `tool_calls`.",
        )
    if role is Role.TOOL:
        call_id = _read_id(message, "tool_call_id", where)
        if call_id not in tools and not is_continued:
            raise InvalidInput(
                f"{where} is the result of a call that is not there.",
                code="messages_invalid",
                fix="Send the assistant message with this call in `tool_calls` before its result.",
            )
        text = join_text(_read_parts(message, where))
        return PromptMessage(role, (ToolResultPart(CallId(call_id), tools.get(call_id, "tool"), text),))
    parts = _read_parts(message, where)
    if role is Role.ASSISTANT:
        parts = (*parts, *_read_calls(message, where))
    elif message.get("tool_calls"):
        raise field_error(f"{where}.tool_calls", "left out: only an assistant calls tools")
    return PromptMessage(role, parts)


def _read_id(body: JsonBody, name: str, where: str) -> str:
    value = read_text(body, name)
    if not 0 < len(value) <= MAX_ID_CHARS:
        raise field_error(f"{where}.{name}", f"the id of a call, of at most {MAX_ID_CHARS} characters")
    return value


def _read_calls(message: JsonBody, where: str) -> tuple[ToolCallPart, ...]:
    value: Any = message.get("tool_calls")
    calls = cast("list[Any]", [] if value is None else value)
    if not isinstance(calls, list) or len(calls) > MAX_PARTS:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise field_error(f"{where}.tool_calls", f"a list of at most {MAX_PARTS} calls")
    return tuple(_read_call(call, f"{where}.tool_calls[{number}]") for number, call in enumerate(calls))


def _read_call(item: object, where: str) -> ToolCallPart:
    call: JsonBody = cast("JsonBody", item) if isinstance(item, dict) else {}
    function: Any = call.get("function")
    if not isinstance(function, dict) or call.get("type", "function") != "function":
        raise field_error(where, "a call of a function, with `id` and `function`")
    named = cast("JsonBody", function)
    name = read_text(named, "name")
    if not name:
        raise field_error(f"{where}.function.name", "the name of a tool")
    return ToolCallPart(CallId(_read_id(call, "id", where)), name, read_arguments(read_text(named, "arguments")))


def read_arguments(text: str) -> dict[str, Any]:
    """Returns the arguments of a call; what is no JSON object as it was written."""
    if not text.strip():
        return {}
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return {RAW_ARGS: text}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {RAW_ARGS: text}


def _read_parts(message: JsonBody, where: str) -> tuple[Part, ...]:
    content: Any = message.get("content")
    if content is None:
        return ()
    if isinstance(content, str):
        return (TextPart(content),) if content.strip() else ()
    if not isinstance(content, list) or len(cast("list[Any]", content)) > MAX_PARTS:
        raise field_error(f"{where}.content", f"a string or a list of at most {MAX_PARTS} parts")
    items = enumerate(cast("list[Any]", content))
    return tuple(_read_part(item, f"{where}.content[{number}]") for number, item in items)


def _read_part(item: object, where: str) -> Part:
    if not isinstance(item, dict):
        raise field_error(where, "an object")
    part = cast("JsonBody", item)
    kind = read_text(part, "type")
    if kind in {"text", "refusal"}:
        return TextPart(read_text(part, kind))
    if kind == "image_url":
        # OpenAI's form is `{"url": ...}`; some clients send the URL itself.
        value: object = part.get("image_url")
        url = cast("JsonBody", value).get("url") if isinstance(value, dict) else value
        if not isinstance(url, str) or not url.startswith(("https://", "data:image/")):
            raise InvalidInput(
                f"{where} needs the URL of a picture.", code="image_invalid", fix="Send an https URL or a data URL."
            )
        media_type = url[len("data:") :].partition(";")[0].partition(",")[0] if url.startswith("data:") else ""
        return ImagePart(url, media_type)
    raise InvalidInput(
        f"{where} has type '{kind}', which is not supported.",
        code="part_unsupported",
        fix="Send text and image_url parts.",
    )
