"""What an OpenAI-compatible client reads: completions, chunks of a stream, usage, the list of models. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from denizen.domain.events import TextAdded, TurnFinished
from denizen.domain.usage import Usage

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
