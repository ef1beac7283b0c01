"""The OpenAI wire format: reads requests for completions, writes completions, chunks and lists of models. Pure.

The last user message triggers the turn. The messages before it are the history that the client carries; system and
developer messages become instructions. Unknown fields are ignored, as OpenAI's servers do. Requests that would go
silently wrong are refused: tools of the client (the agent runs its own, behind the gate) and several choices.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from denizen.domain.errors import InvalidInput
from denizen.domain.events import TextAdded, TurnFinished
from denizen.domain.message import ImagePart, Part, Role, TextPart, join_text
from denizen.domain.prompt import PromptMessage
from denizen.domain.record import record
from denizen.domain.usage import Usage
from denizen.web.http.request import JsonBody, field_error, read_flag, read_number, read_text

DONE = b"data: [DONE]\n\n"
PARAGRAPH = "\n\n"
MAX_TOKENS = 1_000_000
MAX_MESSAGES = 2000
"""More than any context holds. 100,000 in one request would hold everybody up for seconds."""
MAX_PARTS = 1000
# The name that a client gives its user precedes each of the user's messages in later prompts, so it must be short.
MAX_USER_CHARS = 200
_INSTRUCTION_ROLES = frozenset({"system", "developer"})
_CHAT_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT}


@record
class CompletionRequest:
    """A request for a completion. `model` names an agent, empty for the default one; `history` is the conversation
    before the last message, as the client sent it; `session` is empty unless the body's metadata name one.
    """

    model: str
    parts: tuple[Part, ...]
    history: tuple[PromptMessage, ...]
    instructions: str
    session: str = ""
    user: str = ""
    stream: bool = False
    include_usage: bool = False
    max_output_tokens: int | None = None
    temperature: float | None = None


def parse_completion(body: JsonBody) -> CompletionRequest:
    """Returns the request in a body. Raises InvalidInput, which names the wrong field."""
    _refuse_unsupported(body)
    instructions: list[str] = []
    chat: list[PromptMessage] = []
    for index, message in enumerate(_read_messages(body)):
        if read_text(message, "role") in _INSTRUCTION_ROLES:
            instructions.append(join_text(_read_parts(message, index)))
        else:
            chat.append(_read_message(message, index))
    if not chat or chat[-1].role is not Role.USER:
        raise InvalidInput(
            "The last message must be the user's.",
            code="messages_invalid",
            fix="End `messages` with a message of role `user`.",
        )
    if not chat[-1].parts:
        raise InvalidInput("The last message is empty.", code="message_empty", fix="Write something to answer.")
    model = read_text(body, "model")
    stream = read_flag(body, "stream")
    return CompletionRequest(
        model="" if model == "default" else model,
        parts=chat[-1].parts,
        history=tuple(message for message in chat[:-1] if message.parts),
        instructions="\n\n".join(filter(None, instructions)),
        session=read_text(_read_child(body, "metadata"), "session"),
        user=" ".join(read_text(body, "user").split())[:MAX_USER_CHARS],
        stream=stream,
        include_usage=stream and read_flag(_read_child(body, "stream_options"), "include_usage"),
        max_output_tokens=_read_max_tokens(body),
        temperature=read_number(body, "temperature", low=0, high=2),
    )


def _refuse_unsupported(body: JsonBody) -> None:
    if body.get("tools") or body.get("functions"):
        raise InvalidInput(
            "Tools of the client are not supported.",
            code="tools_unsupported",
            why="an agent runs its own tools, and each call passes its gate",
            fix="Leave `tools` out, and give the tools to the agent in the configuration.",
        )
    if body.get("n") not in (None, 1):
        raise InvalidInput("Only one choice is supported.", code="n_unsupported", fix="Leave `n` out.")


def _read_max_tokens(body: JsonBody) -> int | None:
    for name in ("max_completion_tokens", "max_tokens"):
        value = read_number(body, name, low=1, high=MAX_TOKENS)
        if value is not None:
            return int(value)
    return None


def _read_child(body: JsonBody, name: str) -> JsonBody:
    value: Any = body.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise field_error(name, "an object")
    return cast("JsonBody", value)


def _read_messages(body: JsonBody) -> Sequence[JsonBody]:
    value: Any = body.get("messages")
    messages = cast("list[Any]", value) if isinstance(value, list) else []
    if not 1 <= len(messages) <= MAX_MESSAGES:
        raise field_error("messages", f"a list of 1 to {MAX_MESSAGES} messages")
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            raise field_error(f"messages[{index}]", "an object")
    return cast("list[JsonBody]", messages)


def _read_message(message: JsonBody, index: int) -> PromptMessage:
    name = read_text(message, "role")
    role = _CHAT_ROLES.get(name)
    if role is None or message.get("tool_calls") or message.get("function_call"):
        what = "a tool call" if role else f"role '{name}'"
        raise InvalidInput(
            f"messages[{index}] has {what}, which is not supported.",
            code="messages_invalid",
            why="an agent runs its own tools, and keeps their calls and results itself",
            fix="Send messages of role system, developer, user and assistant, without tool calls.",
        )
    return PromptMessage(role, _read_parts(message, index))


def _read_parts(message: JsonBody, index: int) -> tuple[Part, ...]:
    content: Any = message.get("content")
    if content is None:
        return ()
    if isinstance(content, str):
        return (TextPart(content),) if content.strip() else ()
    if not isinstance(content, list) or len(cast("list[Any]", content)) > MAX_PARTS:
        raise field_error(f"messages[{index}].content", f"a string or a list of at most {MAX_PARTS} parts")
    items = enumerate(cast("list[Any]", content))
    return tuple(_read_part(item, f"messages[{index}].content[{number}]") for number, item in items)


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


class CompletionWriter:
    """Writes the objects of one completion, which share an id, a time and a model. The first chunk of a stream has one
    before it that names the role.
    """

    def __init__(self, turn_id: str, model: str, *, created: int, include_usage: bool = False) -> None:
        self._head: dict[str, Any] = {"id": f"chatcmpl-{turn_id}", "created": created, "model": model}
        self._include_usage = include_usage
        self._is_open = False

    def completion(self, finished: TurnFinished, finish_reason: str) -> dict[str, Any]:
        # Reasoning and pictures are no part of OpenAI's format; OpenRouter and others use these names for them.
        content = PARAGRAPH.join(filter(None, (finished.reply, finished.cards)))
        message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None}
        if finished.reasoning:
            message["reasoning_content"] = finished.reasoning
        message |= _pictures(finished.images)
        usage = finished.usage
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason}
        return {**self._head, "object": "chat.completion", "choices": [choice], "usage": usage_json(usage)}

    def text(self, text: str) -> bytes:
        return self._chunk({"content": text})

    def reasoning(self, text: str) -> bytes:
        return self._chunk({"reasoning_content": text})

    def pictures(self, images: Sequence[str]) -> bytes:
        """Returns a chunk with pictures; empty for none."""
        return self._chunk(_pictures(images)) if images else b""

    def ending(self, finish_reason: str, usage: Usage) -> bytes:
        """Returns the chunk with the finish reason, the one with the usage if it was asked for, and the end marker."""
        chunks = [self._chunk({}, finish_reason)]
        if self._include_usage:
            chunks.append(
                encode_data(
                    {**self._head, "object": "chat.completion.chunk", "choices": [], "usage": usage_json(usage)}
                )
            )
        return b"".join([*chunks, DONE])

    def _chunk(self, delta: Mapping[str, Any], finish_reason: str | None = None) -> bytes:
        opening = b""
        if not self._is_open:
            self._is_open = True
            opening = self._chunk({"role": "assistant", "content": ""})
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        body = {**self._head, "object": "chat.completion.chunk", "choices": [choice]}
        return opening + encode_data({**body, "usage": None} if self._include_usage else body)


class StreamedText:
    """The text that a client of a stream has received. OpenAI's format cannot take back what was sent.

    A reader that joined late (a repeated request) missed the beginning, so it gets the whole answer at the end.
    """

    def __init__(self) -> None:
        self._follows = False
        self._current = ""
        self._has_sent = False

    @property
    def is_followed(self) -> bool:
        """Whether the reader has followed from the beginning."""
        return self._follows

    def begin(self) -> None:
        """Marks that the turn starts now, so that the reader gets all of it."""
        self._follows = True

    def add(self, event: TextAdded) -> str:
        """Returns the text to send for the event, often empty."""
        if event.retract:
            self._current = ""
        if not self._follows:
            return ""
        text = event.text if self._current else event.text.lstrip()
        return self._send(text)

    def finish(self, reply: str) -> str:
        """Returns the part of the final reply that was not sent yet."""
        if not self._current:
            return self._send(reply)
        return self._send(reply[len(self._current) :]) if reply.startswith(self._current) else ""

    def _send(self, text: str) -> str:
        if not text:
            return ""
        breaks = self._has_sent and not self._current  # a retracted text stays visible, so the new one is set apart
        self._current += text
        self._has_sent = True
        return PARAGRAPH + text if breaks else text


def _pictures(images: Sequence[str]) -> dict[str, Any]:
    shown = [{"index": place, "type": "image_url", "image_url": {"url": url}} for place, url in enumerate(images)]
    return {"images": shown} if shown else {}


def encode_data(body: object) -> bytes:
    """Returns one unnamed server-sent event with JSON in it."""
    return b"data: " + json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


def usage_json(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }


def model_json(name: str, created: int) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": created, "owned_by": "denizen"}


def models_json(names: Iterable[str], created: int) -> dict[str, Any]:
    return {"object": "list", "data": [model_json(name, created) for name in names]}
