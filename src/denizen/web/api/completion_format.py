"""The OpenAI wire format of chat completions: reads requests, writes completions, chunks and lists of models. Pure.

The last user message triggers the turn, or the results of the client's tools at the end. The messages before are the
history that the client carries; system and developer messages become instructions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from denizen.domain.demands import AnswerDemands, write_call_id
from denizen.domain.events import TextAdded, TurnFinished
from denizen.domain.ids import TurnId
from denizen.domain.message import Part, Role, ToolCallPart, ToolResultPart
from denizen.domain.prompt import PromptMessage
from denizen.domain.record import record
from denizen.domain.turn import TurnStatus
from denizen.domain.usage import Usage
from denizen.ports.model import RAW_ARGS
from denizen.web.api.client_messages import read_conversation, read_messages
from denizen.web.api.model_options import (
    check_fields,
    read_child,
    read_demands,
    read_max_tokens,
    read_output_form,
    read_tools,
)
from denizen.web.http.request import JsonBody, read_flag, read_text

DONE = b"data: [DONE]\n\n"
PARAGRAPH = "\n\n"
# The name that a client gives its user precedes each of the user's messages in later prompts, so it must be short.
MAX_USER_CHARS = 200

KNOWN = (
    *("model", "messages", "stream", "stream_options", "max_completion_tokens", "max_tokens", "temperature", "top_p"),
    *("seed", "stop", "tools", "tool_choice", "parallel_tool_calls", "response_format", "user", "metadata", "task"),
)
NEUTRAL_FIELDS = (
    *("n", "logprobs", "top_logprobs", "frequency_penalty", "presence_penalty", "logit_bias", "modalities", "audio"),
    *("prediction", "reasoning_effort", "verbosity", "service_tier", "web_search_options", "functions"),
    "function_call",
)

_TASK_BEGIN, _TASK_TALK = "### Task:", "<chat_history>"


@record(kw_only=True)
class CompletionRequest:
    """A request for a completion. `model` names an agent, empty for the default one; `history` is the conversation
    before `parts`, as the client sent it; `session` is empty unless the body's metadata name one. `is_task`: a program
    wants a title or the like for a conversation, which is none itself.
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
    demands: AnswerDemands = field(default_factory=AnswerDemands)
    is_task: bool = False


def parse_completion(body: JsonBody) -> CompletionRequest:
    """Returns the request in a body. Raises InvalidInput, which names the wrong field."""
    check_fields(body, KNOWN, NEUTRAL_FIELDS)
    talk = read_conversation(read_messages(body, "messages"), "messages")
    metadata = read_child(body, "metadata")
    stream = read_flag(body, "stream")
    demands = read_demands(
        body,
        read_tools(body, is_flat=False),
        read_output_form(read_child(body, "response_format"), "response_format", is_flat=False),
    )
    session = read_text(metadata, "session")
    told = [*talk.history, PromptMessage(Role.USER, talk.parts)]
    has_calls = any(isinstance(part, ToolCallPart | ToolResultPart) for message in told for part in message.parts)
    is_alone = not (session or has_calls or demands.tools.specs or demands.output)
    text = talk.text
    is_task = bool(read_text(body, "task") or read_text(metadata, "task")) or (
        not talk.history and text.lstrip().startswith(_TASK_BEGIN) and _TASK_TALK in text
    )
    return CompletionRequest(
        model=read_model(body),
        parts=talk.parts,
        history=talk.history,
        instructions=talk.instructions,
        session=session,
        user=read_user(body),
        stream=stream,
        include_usage=stream and read_flag(read_child(body, "stream_options"), "include_usage"),
        max_output_tokens=read_max_tokens(body, "max_completion_tokens", "max_tokens"),
        demands=demands,
        is_task=is_task and is_alone,
    )


def read_model(body: JsonBody) -> str:
    """Returns the name of an agent, empty for the default one."""
    model = read_text(body, "model")
    return "" if model == "default" else model


def read_user(body: JsonBody) -> str:
    return " ".join(read_text(body, "user").split())[:MAX_USER_CHARS]


class CompletionWriter:
    """Writes the objects of one completion, which share an id, a time and a model. The first chunk of a stream has one
    before it that names the role.
    """

    def __init__(self, turn_id: TurnId, model: str, *, created: int, include_usage: bool = False) -> None:
        self._turn_id = turn_id
        self._head: dict[str, Any] = {"id": f"chatcmpl-{turn_id}", "created": created, "model": model}
        self._include_usage = include_usage
        self._is_open = False

    def completion(self, finished: TurnFinished, finish_reason: str) -> dict[str, Any]:
        # Reasoning and pictures are no part of OpenAI's format; OpenRouter and others use these names for them.
        content = PARAGRAPH.join(filter(None, (finished.reply, finished.cards)))
        has_calls = bool(finished.calls)
        message: dict[str, Any] = {
            "role": "assistant",
            "content": content or (None if has_calls else ""),
            "refusal": None,
        }
        if has_calls:
            message["tool_calls"] = [self._call(call) for call in finished.calls]
        if finished.reasoning:
            message["reasoning_content"] = finished.reasoning
        message |= _pictures(finished.images)
        usage = finished.usage
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason}
        done = {**self._head, "object": "chat.completion", "choices": [choice], "usage": usage_json(usage)}
        return done | tell_skipped(finished)

    def text(self, text: str) -> bytes:
        return self._chunk({"content": text})

    def reasoning(self, text: str) -> bytes:
        return self._chunk({"reasoning_content": text})

    def calls(self, calls: Sequence[ToolCallPart]) -> bytes:
        """Returns chunks with calls of the client's tools: of each its name, then its arguments; empty for none."""
        chunks: list[bytes] = []
        for index, each in enumerate(calls):
            call = self._call(each)
            written = call["function"]["arguments"]
            begin = {"index": index, **call, "function": {**call["function"], "arguments": ""}}
            chunks.append(self._chunk({"tool_calls": [begin]}))
            chunks.append(self._chunk({"tool_calls": [{"index": index, "function": {"arguments": written}}]}))
        return b"".join(chunks)

    def _call(self, call: ToolCallPart) -> dict[str, Any]:
        function = {"name": call.tool, "arguments": write_arguments(call)}
        return {"id": write_call_id(self._turn_id, call.id), "type": "function", "function": function}

    def pictures(self, images: Sequence[str]) -> bytes:
        """Returns a chunk with pictures; empty for none."""
        return self._chunk(_pictures(images)) if images else b""

    def ending(self, finish_reason: str, usage: Usage, finished: TurnFinished | None = None) -> bytes:
        """Returns the chunk with the finish reason, the one with the usage if it was asked for, and the end marker."""
        chunks = [self._chunk({}, finish_reason, tell_skipped(finished) if finished else None)]
        if self._include_usage:
            chunks.append(
                encode_data(
                    {**self._head, "object": "chat.completion.chunk", "choices": [], "usage": usage_json(usage)}
                )
            )
        return b"".join([*chunks, DONE])

    def _chunk(
        self, delta: Mapping[str, Any], finish_reason: str | None = None, more: Mapping[str, Any] | None = None
    ) -> bytes:
        opening = b""
        if not self._is_open:
            self._is_open = True
            opening = self._chunk({"role": "assistant", "content": ""})
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        body = {**self._head, "object": "chat.completion.chunk", "choices": [choice], **(more or {})}
        return opening + encode_data({**body, "usage": None} if self._include_usage else body)


def tell_skipped(finished: TurnFinished) -> dict[str, Any]:
    """Returns the field, no part of OpenAI's format, that tells an answer of no words from a turn that was skipped."""
    return {"skipped": True} if finished.status is TurnStatus.SKIPPED else {}


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


def write_arguments(call: ToolCallPart) -> str:
    """Returns the arguments as JSON; what the model wrote, where that is none."""
    raw = call.args.get(RAW_ARGS)
    return raw if isinstance(raw, str) else json.dumps(call.args, ensure_ascii=False)


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
