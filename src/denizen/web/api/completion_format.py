"""What an OpenAI-compatible client asks for: the body of `POST /v1/chat/completions`, checked and in our terms.

Pure. The last user message triggers the turn; what came before is the history that the client carries; system and
developer messages become instructions. What is not known is ignored, as OpenAI's servers do; what would be silently
wrong is refused: tools of the client (the agent runs its own, behind the gate) and several choices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast
from denizen.domain.errors import InvalidInput
from denizen.domain.message import ImagePart, Part, Role, TextPart, text_of
from denizen.domain.prompt import PromptMessage
from denizen.web.http.request import JsonBody, field_error, read_flag, read_number, read_text
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from denizen.domain.events import TextAdded, TurnFinished
from denizen.domain.usage import Usage

MAX_TOKENS = 1_000_000
MAX_USER_CHARS = 200
"""Of the name that a client gives its user; it stands before each message that is found again."""
_INSTRUCTING = frozenset({"system", "developer"})
_TALKING = {"user": Role.USER, "assistant": Role.ASSISTANT}


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """`model` names an agent; empty is the default agent. `session` is empty unless the body's metadata name one."""

    model: str
    parts: tuple[Part, ...]
    supplied: tuple[PromptMessage, ...]
    instructions: str
    session: str = ""
    user: str = ""
    stream: bool = False
    include_usage: bool = False
    max_output_tokens: int | None = None
    temperature: float | None = None


def parse_completion(body: JsonBody) -> CompletionRequest:
    """Raises InvalidInput, naming the field."""
    _refuse_what_is_not_done(body)
    messages = _messages(body)
    instructions = [text_of(_parts(m, i)) for i, m in enumerate(messages) if read_text(m, "role") in _INSTRUCTING]
    talk = [_talk(m, i) for i, m in enumerate(messages) if read_text(m, "role") not in _INSTRUCTING]
    if not talk or talk[-1].role is not Role.USER:
        raise InvalidInput(
            "The last message must be the user's.",
            code="messages_invalid",
            fix="End `messages` with a message of role `user`.",
        )
    if not talk[-1].parts:
        raise InvalidInput("The last message is empty.", code="message_empty", fix="Write something to answer.")
    model = read_text(body, "model")
    stream = read_flag(body, "stream")
    return CompletionRequest(
        model="" if model == "default" else model,
        parts=talk[-1].parts,
        supplied=tuple(message for message in talk[:-1] if message.parts),
        instructions="\n\n".join(filter(None, instructions)),
        session=read_text(_object(body, "metadata"), "session"),
        user=_line(read_text(body, "user"))[:MAX_USER_CHARS],
        stream=stream,
        include_usage=stream and read_flag(_object(body, "stream_options"), "include_usage"),
        max_output_tokens=_max_tokens(body),
        temperature=read_number(body, "temperature", low=0, high=2),
    )


def _refuse_what_is_not_done(body: JsonBody) -> None:
    if body.get("tools") or body.get("functions"):
        raise InvalidInput(
            "Tools of the client are not taken.",
            code="tools_unsupported",
            why="an agent runs its own tools, and each call passes its gate",
            fix="Leave `tools` out, and give the tools to the agent in the configuration.",
        )
    if body.get("n") not in (None, 1):
        raise InvalidInput("Only one choice can be asked for.", code="n_unsupported", fix="Leave `n` out.")


def _max_tokens(body: JsonBody) -> int | None:
    for name in ("max_completion_tokens", "max_tokens"):
        value = read_number(body, name, low=1, high=MAX_TOKENS)
        if value is not None:
            return int(value)
    return None


def _line(text: str) -> str:
    return " ".join(text.split())


def _object(body: JsonBody, name: str) -> JsonBody:
    value: Any = body.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise field_error(name, "an object")
    return cast("JsonBody", value)


def _messages(body: JsonBody) -> Sequence[JsonBody]:
    value: Any = body.get("messages")
    if not isinstance(value, list) or not value:
        raise field_error("messages", "a list with at least one message")
    messages = cast("list[Any]", value)
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            raise field_error(f"messages[{index}]", "an object")
    return cast("list[JsonBody]", messages)


def _talk(message: JsonBody, index: int) -> PromptMessage:
    name = read_text(message, "role")
    role = _TALKING.get(name)
    if role is None or message.get("tool_calls") or message.get("function_call"):
        what = "a tool call" if role else f"role '{name}'"
        raise InvalidInput(
            f"messages[{index}] has {what}, which is not taken.",
            code="messages_invalid",
            why="an agent runs its own tools, and keeps their calls and results itself",
            fix="Send messages of role system, developer, user and assistant, without tool calls.",
        )
    return PromptMessage(role, _parts(message, index))


def _parts(message: JsonBody, index: int) -> tuple[Part, ...]:
    content: Any = message.get("content")
    if content is None:
        return ()
    if isinstance(content, str):
        return (TextPart(content),) if content.strip() else ()
    if not isinstance(content, list):
        raise field_error(f"messages[{index}].content", "a string or a list of parts")
    items = enumerate(cast("list[Any]", content))
    return tuple(_part(item, f"messages[{index}].content[{number}]") for number, item in items)


def _part(item: object, where: str) -> Part:
    if not isinstance(item, dict):
        raise field_error(where, "an object")
    part = cast("JsonBody", item)
    kind = read_text(part, "type")
    if kind in {"text", "refusal"}:
        return TextPart(read_text(part, kind))
    if kind == "image_url":
        return _image(part.get("image_url"), where)
    raise InvalidInput(
        f"{where} has type '{kind}', which is not taken.", code="part_unsupported", fix="Send text and image_url parts."
    )


def _image(value: object, where: str) -> ImagePart:
    """OpenAI's form is `{"url": ...}`; some clients send the URL itself."""
    url = cast("JsonBody", value).get("url") if isinstance(value, dict) else value
    if not isinstance(url, str) or not url.startswith(("https://", "data:image/")):
        raise InvalidInput(
            f"{where} needs the URL of a picture.", code="image_invalid", fix="Send an https URL or a data URL."
        )
    media_type = url[len("data:") :].partition(";")[0].partition(",")[0] if url.startswith("data:") else ""
    return ImagePart(url, media_type)


DONE = b"data: [DONE]\n\n"
PARAGRAPH = "\n\n"


class CompletionWriter:
    """Makes the objects of one completion, which share an id, a time and a model."""

    def __init__(self, turn_id: str, model: str, *, created: int, include_usage: bool = False) -> None:
        self._head: dict[str, Any] = {"id": f"chatcmpl-{turn_id}", "created": created, "model": model}
        self._include_usage = include_usage

    def completion(self, finished: TurnFinished, finish_reason: str) -> dict[str, Any]:
        """Pictures and reasoning stand beside the text, under the names that OpenRouter and others use."""
        message: dict[str, Any] = {"role": "assistant", "content": finished.reply, "refusal": None}
        if finished.reasoning:
            message["reasoning_content"] = finished.reasoning
        message |= _pictures(finished.images)
        usage = finished.usage
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason}
        return {**self._head, "object": "chat.completion", "choices": [choice], "usage": usage_json(usage)}

    def opening(self) -> bytes:
        return self._chunk({"role": "assistant", "content": ""})

    def text(self, text: str) -> bytes:
        return self._chunk({"content": text})

    def reasoning(self, text: str) -> bytes:
        return self._chunk({"reasoning_content": text})

    def pictures(self, images: Sequence[str]) -> bytes:
        """Empty for none."""
        return self._chunk(_pictures(images)) if images else b""

    def ending(self, finish_reason: str, usage: Usage) -> bytes:
        """The chunk with the finish reason, the one with the usage when it was asked for, and the end of the stream."""
        chunks = [self._chunk({}, finish_reason)]
        if self._include_usage:
            chunks.append(
                sse({**self._head, "object": "chat.completion.chunk", "choices": [], "usage": usage_json(usage)})
            )
        return b"".join([*chunks, DONE])

    def _chunk(self, delta: Mapping[str, Any], finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        body = {**self._head, "object": "chat.completion.chunk", "choices": [choice]}
        return sse({**body, "usage": None} if self._include_usage else body)


class StreamedText:
    """The answer's text as far as the client has it. What was sent cannot be taken back on this wire.

    A reader that joined late (a repeated request) missed the beginning, so it gets the whole answer at the end.
    """

    def __init__(self) -> None:
        self._follows = False
        self._current = ""
        self._has_sent = False

    @property
    def is_followed(self) -> bool:
        """Whether the reader was there from the beginning."""
        return self._follows

    def begin(self) -> None:
        """The turn starts now: what follows is complete."""
        self._follows = True

    def add(self, event: TextAdded) -> str:
        """The text to send for the event, often empty."""
        if event.retract:
            self._current = ""
        if not self._follows:
            return ""
        text = event.text if self._current else event.text.lstrip()
        return self._send(text)

    def finish(self, reply: str) -> str:
        """What is still missing of the final reply."""
        if not self._current:
            return self._send(reply)
        return self._send(reply[len(self._current) :]) if reply.startswith(self._current) else ""

    def _send(self, text: str) -> str:
        if not text:
            return ""
        breaks = self._has_sent and not self._current
        self._current += text
        self._has_sent = True
        return PARAGRAPH + text if breaks else text


def _pictures(images: Sequence[str]) -> dict[str, Any]:
    shown = [{"index": place, "type": "image_url", "image_url": {"url": url}} for place, url in enumerate(images)]
    return {"images": shown} if shown else {}


def sse(body: object) -> bytes:
    """One server-sent event with JSON in it."""
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
