"""The wire formats of model providers, from the server's side: OpenAI chat and responses, Anthropic messages, and
Google's generateContent.

Pure functions that turn a scripted `ModelAnswer` into a JSON body or the frames of an event stream, for `model_server`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

ModelApi = Literal["chat", "responses", "messages", "generate"]
JsonBody = Mapping[str, Any]

_CREATED = 1_790_000_000


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A tool call in an answer. `args` is an object, or a text, since models also send invalid JSON."""

    tool: str
    args: Mapping[str, Any] | str = field(default_factory=dict[str, Any])
    id: str = ""

    @property
    def written(self) -> str:
        return self.args if isinstance(self.args, str) else json.dumps(self.args)


@dataclass(frozen=True, slots=True)
class AnswerTokens:
    """The token counts of an answer. `input` includes the tokens read from and written to the cache."""

    input: int = 12
    output: int = 7
    cache_read: int = 0
    cache_write: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """An answer of the model. `finish` is the finish reason in the provider's words; by default the calls decide it.

    `signature` is sent with the thinking in formats that sign it; in chat completions the name of the field,
    `thinking_field`, differs between servers. `piece_chars` is the length of streamed pieces. Calls without an id get
    one, unless `bare_ids` leaves the ids out, as some servers do.
    """

    text: str = ""
    calls: Sequence[ModelCall] = ()
    thinking: str = ""
    signature: str = "c2lnbmVk"
    thinking_field: str = "reasoning_content"
    tokens: AnswerTokens | None = field(default_factory=AnswerTokens)
    finish: str = ""
    piece_chars: int = 8
    bare_ids: bool = False
    images: Sequence[str] = ()
    """Pictures as data URIs, in the form of OpenRouter's chat completions."""

    def call_id(self, place: int) -> str:
        given = self.calls[place].id
        return given or ("" if self.bare_ids else f"call_{place}")

    def pieces(self, text: str) -> Iterator[str]:
        for start in range(0, len(text), self.piece_chars):
            yield text[start : start + self.piece_chars]


def error_body(api: ModelApi, message: str, kind: str, code: str | None) -> JsonBody:
    """Returns an error in the vendor's format."""
    if api == "messages":
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_scripted"}
    if api == "generate":
        return {"error": {"code": 0, "message": message, "status": kind}}
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def error_frame(api: ModelApi, message: str, kind: str, code: str | None) -> bytes:
    """Returns an error for the middle of a stream."""
    if api == "messages":
        return _frame(error_body(api, message, kind, code), "error")
    if api == "responses":
        error = {"type": "error", "code": code or kind, "message": message, "param": None, "sequence_number": 999}
        return _frame(error, "error")
    return _frame(error_body(api, message, kind, code))


def json_answer(api: ModelApi, answer: ModelAnswer, request: JsonBody, *, openrouter: bool = False) -> JsonBody:
    """Returns the whole answer as one body."""
    if api == "chat":
        return _chat_json(answer, request, openrouter=openrouter)
    if api == "responses":
        return _response(answer, request, "completed", _response_items(answer))
    if api == "generate":
        return _generate_chunk(answer, _generate_parts(answer), is_last=True)
    return _messages_json(answer, request)


def stream_answer(
    api: ModelApi, answer: ModelAnswer, request: JsonBody, *, openrouter: bool = False
) -> Iterator[bytes]:
    """Returns the answer as the frames of an event stream."""
    if api == "chat":
        return _chat_stream(answer, request, openrouter=openrouter)
    if api == "responses":
        return _responses_stream(answer, request)
    if api == "generate":
        return _generate_stream(answer)
    return _messages_stream(answer, request)


def _frame(data: object, event: str = "") -> bytes:
    head = f"event: {event}\n" if event else ""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return f"{head}data: {text}\n\n".encode()


# OpenAI chat completions


def _chat_usage(tokens: AnswerTokens, *, openrouter: bool) -> JsonBody:
    usage: dict[str, Any] = {
        "prompt_tokens": tokens.input,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.input + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cache_read},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }
    return usage | {"cost": 0.0125} if openrouter else usage


def _chat_calls(answer: ModelAnswer) -> list[dict[str, Any]]:
    return [
        {"id": answer.call_id(place), "type": "function", "function": {"name": call.tool, "arguments": call.written}}
        for place, call in enumerate(answer.calls)
    ]


def _chat_head(kind: str, request: JsonBody, *, openrouter: bool) -> dict[str, Any]:
    head = {"id": "chatcmpl-scripted", "object": kind, "created": _CREATED, "model": request.get("model", "")}
    return head | {"provider": "Scripted"} if openrouter else head


def _chat_finish(answer: ModelAnswer) -> str:
    return answer.finish or ("tool_calls" if answer.calls else "stop")


_DETAIL: JsonBody = {"type": "reasoning.text", "id": None, "format": "anthropic-claude-v1", "index": 0}


def _chat_thinking(answer: ModelAnswer, text: str, *, openrouter: bool) -> dict[str, Any]:
    if openrouter:
        return {"reasoning": text, "reasoning_details": [{**_DETAIL, "text": text, "signature": None}]}
    return {answer.thinking_field: text}


def _chat_images(answer: ModelAnswer) -> list[dict[str, Any]]:
    return [{"index": place, "type": "image_url", "image_url": {"url": url}} for place, url in enumerate(answer.images)]


def _chat_json(answer: ModelAnswer, request: JsonBody, *, openrouter: bool) -> JsonBody:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    if answer.thinking:
        message |= _chat_thinking(answer, answer.thinking, openrouter=openrouter)
    if answer.calls:
        message["tool_calls"] = _chat_calls(answer)
    if answer.images:
        message["images"] = _chat_images(answer)
    body = _chat_head("chat.completion", request, openrouter=openrouter)
    body["choices"] = [{"index": 0, "message": message, "finish_reason": _chat_finish(answer), "logprobs": None}]
    if answer.tokens:
        body["usage"] = _chat_usage(answer.tokens, openrouter=openrouter)
    return body


def _chat_stream(answer: ModelAnswer, request: JsonBody, *, openrouter: bool) -> Iterator[bytes]:
    head = _chat_head("chat.completion.chunk", request, openrouter=openrouter)

    def chunk(delta: JsonBody, finish: str | None = None) -> bytes:
        return _frame({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], "usage": None})

    yield chunk({"role": "assistant", "content": ""})
    for piece in answer.pieces(answer.thinking):
        yield chunk(_chat_thinking(answer, piece, openrouter=openrouter))
    if answer.thinking and openrouter:
        yield chunk({"reasoning_details": [{**_DETAIL, "text": "", "signature": answer.signature}]})
    for piece in answer.pieces(answer.text):
        yield chunk({"content": piece})
    for place, call in enumerate(_chat_calls(answer)):
        function = {"name": call["function"]["name"], "arguments": ""}
        yield chunk({"tool_calls": [{"index": place, "id": call["id"], "type": "function", "function": function}]})
        for piece in answer.pieces(call["function"]["arguments"]):
            yield chunk({"tool_calls": [{"index": place, "function": {"arguments": piece}}]})
    if answer.images:
        yield chunk({"content": "", "images": _chat_images(answer)})
    yield chunk({}, _chat_finish(answer))
    if answer.tokens and _wants_usage(request):
        yield _frame({**head, "choices": [], "usage": _chat_usage(answer.tokens, openrouter=openrouter)})
    yield _frame("[DONE]")


def _wants_usage(request: JsonBody) -> bool:
    options: JsonBody = request.get("stream_options") or dict[str, Any]()
    return bool(options.get("include_usage"))


# OpenAI responses


def _response(answer: ModelAnswer, request: JsonBody, status: str, items: Sequence[JsonBody]) -> JsonBody:
    cut = answer.finish == "max_output_tokens" and status == "completed"
    body: dict[str, Any] = {
        "id": "resp_scripted",
        "object": "response",
        "created_at": _CREATED,
        "status": "incomplete" if cut else status,
        "model": request.get("model", ""),
        "output": list(items),
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    if answer.tokens and status == "completed":
        body["usage"] = {
            "input_tokens": answer.tokens.input,
            "input_tokens_details": {"cached_tokens": answer.tokens.cache_read},
            "output_tokens": answer.tokens.output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": answer.tokens.input + answer.tokens.output,
        }
    return body


def _response_items(answer: ModelAnswer) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if answer.thinking:
        summary = [{"type": "summary_text", "text": answer.thinking}]
        items.append(
            {"type": "reasoning", "id": "rs_0", "summary": summary, "encrypted_content": answer.signature or None}
        )
    if answer.text:
        content: list[JsonBody] = [{"type": "output_text", "text": answer.text, "annotations": []}]
        items.append({"type": "message", "id": "msg_0", "role": "assistant", "status": "completed", "content": content})
    for place, call in enumerate(answer.calls):
        items.append(
            {
                "type": "function_call",
                "id": f"fc_{place}",
                "call_id": answer.call_id(place),
                "name": call.tool,
                "arguments": call.written,
                "status": "completed",
            }
        )
    return items


_BEGUN: Mapping[str, JsonBody] = {
    "message": {"content": [], "status": "in_progress"},
    "reasoning": {"summary": [], "encrypted_content": None},
    "function_call": {"arguments": "", "status": "in_progress"},
}


def _responses_stream(answer: ModelAnswer, request: JsonBody) -> Iterator[bytes]:
    items = _response_items(answer)
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": _response(answer, request, "in_progress", ())}
    ]
    for place, item in enumerate(items):
        events.extend(_item_events(answer, item, place))
    events.append({"type": "response.completed", "response": _response(answer, request, "completed", items)})
    for number, event in enumerate(events):
        yield _frame({**event, "sequence_number": number}, event["type"])


def _item_events(answer: ModelAnswer, item: dict[str, Any], place: int) -> Iterator[dict[str, Any]]:
    at = {"item_id": item["id"], "output_index": place}
    begun = item | dict(_BEGUN[item["type"]])
    yield {"type": "response.output_item.added", "output_index": place, "item": begun}
    if item["type"] == "message":
        part = item["content"][0]
        yield {"type": "response.content_part.added", **at, "content_index": 0, "part": {**part, "text": ""}}
        for piece in answer.pieces(answer.text):
            yield {"type": "response.output_text.delta", **at, "content_index": 0, "delta": piece, "logprobs": []}
        yield {"type": "response.output_text.done", **at, "content_index": 0, "text": answer.text, "logprobs": []}
        yield {"type": "response.content_part.done", **at, "content_index": 0, "part": part}
    elif item["type"] == "reasoning":
        part = item["summary"][0]
        yield {"type": "response.reasoning_summary_part.added", **at, "summary_index": 0, "part": {**part, "text": ""}}
        for piece in answer.pieces(answer.thinking):
            yield {"type": "response.reasoning_summary_text.delta", **at, "summary_index": 0, "delta": piece}
        yield {"type": "response.reasoning_summary_text.done", **at, "summary_index": 0, "text": answer.thinking}
        yield {"type": "response.reasoning_summary_part.done", **at, "summary_index": 0, "part": part}
    else:
        for piece in answer.pieces(item["arguments"]):
            yield {"type": "response.function_call_arguments.delta", **at, "delta": piece}
        done = {"name": item["name"], "arguments": item["arguments"]}
        yield {"type": "response.function_call_arguments.done", **at, **done}
    yield {"type": "response.output_item.done", "output_index": place, "item": item}


# Anthropic messages


def _messages_usage(tokens: AnswerTokens, *, output: int) -> dict[str, Any]:
    return {
        "input_tokens": tokens.input - tokens.cache_read - tokens.cache_write,
        "cache_read_input_tokens": tokens.cache_read,
        "cache_creation_input_tokens": tokens.cache_write,
        "output_tokens": output,
    }


def _messages_finish(answer: ModelAnswer) -> str:
    return answer.finish or ("tool_use" if answer.calls else "end_turn")


def _messages_json(answer: ModelAnswer, request: JsonBody) -> JsonBody:
    content: list[dict[str, Any]] = []
    if answer.thinking:
        content.append({"type": "thinking", "thinking": answer.thinking, "signature": answer.signature})
    if answer.text:
        content.append({"type": "text", "text": answer.text})
    for place, call in enumerate(answer.calls):
        args: JsonBody = dict[str, Any]() if isinstance(call.args, str) else call.args
        content.append({"type": "tool_use", "id": answer.call_id(place), "name": call.tool, "input": args})
    return _messages_head(request) | {
        "content": content,
        "stop_reason": _messages_finish(answer),
        "usage": _messages_usage(
            answer.tokens or AnswerTokens(0, 0), output=(answer.tokens or AnswerTokens(0, 0)).output
        ),
    }


def _messages_head(request: JsonBody) -> dict[str, Any]:
    return {
        "id": "msg_scripted",
        "type": "message",
        "role": "assistant",
        "model": request.get("model", ""),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _messages_stream(answer: ModelAnswer, request: JsonBody) -> Iterator[bytes]:
    tokens = answer.tokens or AnswerTokens(0, 0)

    def event(kind: str, **fields: Any) -> bytes:  # noqa: ANN401 - JSON
        return _frame({"type": kind, **fields}, kind)

    yield event("message_start", message=_messages_head(request) | {"usage": _messages_usage(tokens, output=1)})
    yield event("ping")
    for place, (block, deltas) in enumerate(_blocks(answer)):
        yield event("content_block_start", index=place, content_block=block)
        for delta in deltas:
            yield event("content_block_delta", index=place, delta=delta)
        yield event("content_block_stop", index=place)
    yield event(
        "message_delta",
        delta={"stop_reason": _messages_finish(answer), "stop_sequence": None},
        usage=_messages_usage(tokens, output=tokens.output),
    )
    yield event("message_stop")


def _blocks(answer: ModelAnswer) -> Iterator[tuple[JsonBody, list[JsonBody]]]:
    if answer.thinking:
        pieces: list[JsonBody] = [
            {"type": "thinking_delta", "thinking": piece} for piece in answer.pieces(answer.thinking)
        ]
        signed: list[JsonBody] = [{"type": "signature_delta", "signature": answer.signature}]
        yield {"type": "thinking", "thinking": "", "signature": ""}, [*pieces, *signed]
    if answer.text:
        yield (
            {"type": "text", "text": ""},
            [{"type": "text_delta", "text": piece} for piece in answer.pieces(answer.text)],
        )
    for place, call in enumerate(answer.calls):
        block: JsonBody = {"type": "tool_use", "id": answer.call_id(place), "name": call.tool, "input": {}}
        yield block, [{"type": "input_json_delta", "partial_json": piece} for piece in answer.pieces(call.written)]


# Google generateContent


def _generate_parts(answer: ModelAnswer) -> list[JsonBody]:
    """The parts of the whole answer. The signature of the thinking stands on the part behind it."""
    parts: list[dict[str, Any]] = []
    if answer.text:
        parts.append({"text": answer.text})
    for place, call in enumerate(answer.calls):
        args: JsonBody = dict[str, Any]() if isinstance(call.args, str) else call.args
        parts.append({"functionCall": {"id": answer.call_id(place), "name": call.tool, "args": args}})
    if answer.thinking:
        if parts:
            parts[0]["thoughtSignature"] = answer.signature
        parts.insert(0, {"text": answer.thinking, "thought": True})
    return list(parts)


def _generate_chunk(answer: ModelAnswer, parts: Sequence[JsonBody], *, is_last: bool) -> JsonBody:
    candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": list(parts)}}
    body: dict[str, Any] = {"candidates": [candidate], "modelVersion": "scripted", "responseId": "resp_scripted"}
    if is_last:
        candidate["finishReason"] = answer.finish or "STOP"
        if answer.tokens:
            body["usageMetadata"] = {
                "promptTokenCount": answer.tokens.input,
                "candidatesTokenCount": answer.tokens.output,
                "cachedContentTokenCount": answer.tokens.cache_read,
                "totalTokenCount": answer.tokens.input + answer.tokens.output,
            }
    return body


def _generate_stream(answer: ModelAnswer) -> Iterator[bytes]:
    """Texts come in pieces, calls whole. A signature comes with the last piece."""
    for part in _generate_parts(answer):
        pieces = list(answer.pieces(part.get("text", "")))
        for piece in pieces[:-1]:
            rest = {name: value for name, value in part.items() if name != "thoughtSignature"}
            yield _frame(_generate_chunk(answer, [{**rest, "text": piece}], is_last=False))
        last = {**part, "text": pieces[-1]} if pieces else part
        yield _frame(_generate_chunk(answer, [last], is_last=False))
    yield _frame(_generate_chunk(answer, [{"text": ""}], is_last=True))
