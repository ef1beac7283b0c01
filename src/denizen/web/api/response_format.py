"""The OpenAI wire format of `/v1/responses`: reads requests, writes responses and the events of a stream. Pure.

Items of the input become the messages of chat completions, which `client_messages` reads: a call and its result are
items of their own here. A response goes on from an earlier one with `previous_response_id`, whose turn is kept here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from denizen.domain.demands import write_call_id
from denizen.domain.errors import InvalidInput, NotFound
from denizen.domain.events import TurnFinished
from denizen.domain.ids import TurnId
from denizen.domain.message import ToolCallPart
from denizen.domain.record import record
from denizen.domain.usage import Usage
from denizen.web.api.client_messages import read_conversation
from denizen.web.api.completion_format import (
    PARAGRAPH,
    CompletionRequest,
    read_model,
    read_user,
    tell_skipped,
    write_arguments,
)
from denizen.web.api.model_options import (
    check_fields,
    read_child,
    read_demands,
    read_max_tokens,
    read_output_form,
    read_tools,
)
from denizen.web.http.event_stream import encode_sse
from denizen.web.http.request import JsonBody, field_error, read_flag, read_text

KNOWN = (
    *(
        "model",
        "input",
        "instructions",
        "previous_response_id",
        "stream",
        "stream_options",
        "store",
        "metadata",
        "user",
    ),
    *("max_output_tokens", "temperature", "top_p", "text", "tools", "tool_choice", "parallel_tool_calls"),
)
NEUTRAL_FIELDS = (
    *("background", "conversation", "include", "max_tool_calls", "prompt", "reasoning", "service_tier", "top_logprobs"),
    "truncation",
)
_TEXT_KINDS = frozenset({"input_text", "output_text", "text"})
_STORED, _UNSTORED = "resp_", "resp_unstored_"
_ID = re.compile(r"resp_([0-9a-f]{24})")


@record(kw_only=True)
class ResponseRequest:
    """A request for a response. `asked` is the question, `previous` the turn that it goes on from. `shown` are the
    fields that a response repeats.
    """

    asked: CompletionRequest
    previous: TurnId | None
    is_stored: bool
    shown: Mapping[str, Any]


def parse_response(body: JsonBody) -> ResponseRequest:
    """Returns the request in a body. Raises InvalidInput, which names the wrong field, and NotFound for the id of a
    response that cannot be.
    """
    check_fields(body, KNOWN, NEUTRAL_FIELDS)
    previous = _read_previous(read_text(body, "previous_response_id"))
    talk = read_conversation(list(_read_items(body)), "input", is_continued=previous is not None)
    text = read_child(body, "text")
    if read_text(text, "verbosity", "medium") != "medium":
        raise InvalidInput("`text.verbosity` is not supported.", code="verbosity_unsupported", fix="Leave it out.")
    tools = read_tools(body, is_flat=True)
    demands = read_demands(body, tools, read_output_form(read_child(text, "format"), "text.format", is_flat=True))
    instructions, metadata = read_text(body, "instructions"), read_child(body, "metadata")
    is_stored = read_flag(body, "store", default=True)
    most = read_max_tokens(body, "max_output_tokens")
    read_flag(read_child(body, "stream_options"), "include_obfuscation")
    return ResponseRequest(
        asked=CompletionRequest(
            model=read_model(body),
            parts=talk.parts,
            history=talk.history,
            instructions="\n\n".join(filter(None, (instructions, talk.instructions))),
            user=read_user(body),
            stream=read_flag(body, "stream"),
            max_output_tokens=most,
            demands=demands,
        ),
        previous=previous,
        is_stored=is_stored,
        shown={
            "instructions": instructions or None,
            "max_output_tokens": most,
            "metadata": dict(metadata),
            "parallel_tool_calls": read_flag(body, "parallel_tool_calls", default=True),
            "previous_response_id": read_text(body, "previous_response_id") or None,
            "store": is_stored,
            "temperature": demands.sampling.temperature,
            "text": {"format": {"type": "text"}, **text},
            "tool_choice": body.get("tool_choice") or "auto",
            "tools": list(cast("Sequence[object]", body.get("tools") or ())),
            "top_p": demands.sampling.top_p,
            "truncation": body.get("truncation") or "auto",
            "user": body.get("user"),
        },
    )


def _read_previous(text: str) -> TurnId | None:
    if not text:
        return None
    if text.startswith(_UNSTORED):
        raise NotFound(
            "The previous response was not stored.",
            code="previous_response_not_found",
            why="it was asked for with `store: false`",
            fix="Send the conversation in `input`, or let responses be stored.",
        )
    found = _ID.fullmatch(text)
    if found is None:
        raise NotFound(
            "There is no such previous response.",
            code="previous_response_not_found",
            fix="Send the `id` of a response of this server.",
        )
    return TurnId(f"turn_{found[1]}")


def _read_items(body: JsonBody) -> Iterator[JsonBody]:
    """Yields the input as messages of chat completions."""
    value: Any = body.get("input")
    if isinstance(value, str):
        yield {"role": "user", "content": value}
        return
    if not isinstance(value, list) or not 1 <= len(cast("list[Any]", value)) <= 2000:
        raise field_error("input", "a text, or a list of 1 to 2000 items")
    calls: list[JsonBody] = []
    for index, item in enumerate(cast("list[Any]", value)):
        if not isinstance(item, dict):
            raise field_error(f"input[{index}]", "an object")
        read = _read_item(cast("JsonBody", item), f"input[{index}]")
        if read is None:
            continue
        if read.get("tool_calls"):  # calls of one reply are items side by side
            calls += cast("list[JsonBody]", read["tool_calls"])
            continue
        if calls:
            yield {"role": "assistant", "content": None, "tool_calls": calls}
            calls = []
        yield read
    if calls:
        yield {"role": "assistant", "content": None, "tool_calls": calls}


def _read_item(item: JsonBody, where: str) -> JsonBody | None:
    match read_text(item, "type", "message"):
        case "message":
            return {"role": item.get("role"), "content": _read_content(item.get("content"), where)}
        case "function_call":
            function = {"name": item.get("name"), "arguments": item.get("arguments")}
            call = {"id": item.get("call_id"), "type": "function", "function": function}
            return {"role": "assistant", "tool_calls": [call]}
        case "function_call_output":
            content = _read_content(item.get("output"), where)
            return {"role": "tool", "tool_call_id": item.get("call_id"), "content": content}
        case "reasoning":  # of another server; ours sends none
            return None
        case kind:
            raise InvalidInput(
                f"{where} has type '{kind[:100]}', which is not supported.",
                code="item_unsupported",
                fix="Send items of type message, function_call and function_call_output.",
            )


def _read_content(value: Any, where: str) -> Any:  # noqa: ANN401 - checked where messages are read
    if not isinstance(value, list):
        return value
    parts: list[object] = []
    for given in cast("list[Any]", value):
        part: JsonBody = cast("JsonBody", given) if isinstance(given, dict) else {}
        kind = read_text(part, "type")
        if kind in _TEXT_KINDS:
            parts.append({"type": "text", "text": part.get("text")})
        elif kind == "input_image" and part.get("file_id") is None:
            parts.append({"type": "image_url", "image_url": part.get("image_url")})
        elif kind == "refusal":
            parts.append(part)
        else:
            raise InvalidInput(
                f"{where} has a part of type '{kind[:100]}', which is not supported.",
                code="part_unsupported",
                fix="Send input_text, output_text and input_image parts, pictures with `image_url`.",
            )
    return parts


class ResponseWriter:
    """Writes a response and the events of its stream, which are numbered."""

    def __init__(self, turn_id: TurnId, model: str, wanted: ResponseRequest, *, created: int) -> None:
        self._turn_id = turn_id
        bare = turn_id.removeprefix("turn_")
        self._head: dict[str, Any] = {
            "id": f"{_STORED if wanted.is_stored else _UNSTORED}{bare}",
            "object": "response",
            "created_at": created,
            "model": model,
            "background": False,
            "service_tier": "default",
            **wanted.shown,
        }
        self._message_id = f"msg_{bare}"
        self._number = -1
        self._text: list[str] = []
        self._is_open = False

    def response(self, finished: TurnFinished, finish_reason: str) -> dict[str, Any]:
        """Returns the whole response."""
        text = PARAGRAPH.join(filter(None, (finished.reply, finished.cards)))
        return self._response(finished, finish_reason, text)

    def _response(self, finished: TurnFinished, finish_reason: str, text: str) -> dict[str, Any]:
        is_cut = finish_reason == "length"
        message = [self._message(text, "incomplete" if is_cut else "completed")] if text or not finished.calls else []
        return {
            **self._head,
            "status": "incomplete" if is_cut else "completed",
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
            "output": [*message, *map(self._call, finished.calls)],
            "usage": _usage_json(finished.usage),
            **tell_skipped(finished),
        }

    def opening(self) -> bytes:
        """Returns the first events of a stream."""
        begun: dict[str, Any] = {
            **self._head,
            "status": "in_progress",
            "error": None,
            "incomplete_details": None,
            "output": [],
            "usage": None,
        }
        return self._event("response.created", response=begun) + self._event("response.in_progress", response=begun)

    def text(self, text: str) -> bytes:
        """Returns the events for more text."""
        opening = b"" if self._is_open else self._open_message()
        self._text.append(text)
        return opening + self._text_event("response.output_text.delta", delta=text, logprobs=[])

    def ending(self, finished: TurnFinished, finish_reason: str) -> bytes:
        """Returns the last events of a stream."""
        events: list[bytes] = []
        if not self._is_open and not finished.calls:
            events.append(self._open_message())
        response = self._response(finished, finish_reason, "".join(self._text))
        if self._is_open:
            [message, *_] = response["output"]
            [part] = message["content"]
            events.append(self._text_event("response.output_text.done", text=part["text"], logprobs=[]))
            events.append(self._text_event("response.content_part.done", part=part))
            events.append(self._event("response.output_item.done", output_index=0, item=message))
        for place, call in enumerate(response["output"][int(self._is_open) :], int(self._is_open)):
            at = {"output_index": place, "item_id": call["id"]}
            begun = {**call, "arguments": "", "status": "in_progress"}
            events.append(self._event("response.output_item.added", output_index=place, item=begun))
            written = call["arguments"]
            events.append(self._event("response.function_call_arguments.delta", **at, delta=written))
            events.append(
                self._event("response.function_call_arguments.done", **at, arguments=written, name=call["name"])
            )
            events.append(self._event("response.output_item.done", output_index=place, item=call))
        events.append(self._event(f"response.{response['status']}", response=response))
        return b"".join(events)

    def failure(self, error: Mapping[str, Any]) -> bytes:
        """Returns the event of an error in the middle of a stream."""
        # The fields as documented, and as OpenAI's servers send them, by which its client knows to raise.
        return self._event("error", code=error.get("code"), message=error.get("message"), param=None, error=dict(error))

    def _open_message(self) -> bytes:
        self._is_open = True
        message: dict[str, Any] = {**self._message("", "in_progress"), "content": []}
        part: dict[str, Any] = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        return self._event("response.output_item.added", output_index=0, item=message) + self._text_event(
            "response.content_part.added", part=part
        )

    def _message(self, text: str, status: str) -> dict[str, Any]:
        content: list[dict[str, Any]] = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]
        return {"id": self._message_id, "type": "message", "role": "assistant", "status": status, "content": content}

    def _call(self, call: ToolCallPart) -> dict[str, Any]:
        call_id = write_call_id(self._turn_id, call.id)
        return {
            "id": f"fc_{call_id}",
            "type": "function_call",
            "call_id": call_id,
            "name": call.tool,
            "arguments": write_arguments(call),
            "status": "completed",
        }

    def _text_event(self, kind: str, **fields: object) -> bytes:
        return self._event(kind, item_id=self._message_id, output_index=0, content_index=0, **fields)

    def _event(self, kind: str, **fields: object) -> bytes:
        self._number += 1
        return encode_sse(kind, {"type": kind, "sequence_number": self._number, **fields})


def _usage_json(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
