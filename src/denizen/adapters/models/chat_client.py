"""One request to one model over chat completions, with nothing between it and HTTP (`ModelClient`).

For servers that speak OpenAI's protocol and are not a vendor with models of its own to know: llama.cpp, Ollama, vLLM,
LM Studio, proxies. The vendors' libraries take a second to import, which such a server need not wait for (ADR 0033).
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import anyio
import httpx2

from denizen.adapters.models.chat_request import EXTRA, THINKING_FIELDS, Body, build_body, is_base64
from denizen.adapters.models.client import ClientEvent, ModelTarget
from denizen.adapters.models.failures import (
    AttemptFailed,
    FailureContext,
    ModelFailure,
    classify_response,
    classify_transport,
    cut_off,
)
from denizen.adapters.models.prices import load_prices, price_usage
from denizen.adapters.models.reply import (
    ProviderState,
    TagSplitter,
    build_call,
    choose_finish,
    pack_state,
    parse_args,
    split_delta,
    split_tagged,
    to_utf8,
)
from denizen.domain.message import ImagePart, Part, TextPart, ThinkingPart
from denizen.domain.usage import Usage
from denizen.ports.model import RAW_ARGS, ModelReply, ModelRequest, TextDelta, ThinkingDelta

_MOST_EVENT_BYTES = 64 * 1024 * 1024
"""The limit of one chunk of a stream. A picture comes in one."""
_MOST_ANSWER_CHARS = 256 * 1024 * 1024
"""The limit of all chunks: a server that never ends must not fill the memory."""
_MOST_ERROR_CHARS = 64 * 1024
_LAST_BYTES_S = 0.2

_BROKEN = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError, RuntimeError)
"""The errors of reading a malformed chunk."""

Json: TypeAlias = Mapping[str, Any]


class ChatClient:
    """A model behind a server of chat completions."""

    def __init__(self, target: ModelTarget, http: httpx2.AsyncClient) -> None:
        self._target = target
        self._http = http
        self._url = f"{target.access.base_url.rstrip('/')}/chat/completions"
        self._headers = httpx2.Headers({"User-Agent": "denizen", "Authorization": f"Bearer {target.access.api_key}"})
        self._headers.update(target.spec.headers)
        if not target.spec.facts.is_local:
            load_prices()

    async def stream(self, request: ModelRequest, left_s: float) -> AsyncGenerator[ClientEvent]:
        """Makes one request (see `ModelClient`)."""
        body, context = build_body(request, self._target), self._target.failure_context
        answer = _Answer(self._target)
        deadline = anyio.current_time() + left_s
        try:
            async with aclosing(self._read_chunks(body, context)) as chunks:
                while True:
                    # Not one deadline around all: the reader may take its time between two deltas.
                    chunk: Json | None = None
                    with anyio.move_on_at(deadline) as limit:
                        chunk = await anext(chunks, None)
                    if limit.cancelled_caught:
                        raise TimeoutError
                    if chunk is None:
                        break
                    for delta in answer.take(chunk):
                        yield delta
                    if answer.has_begun:
                        yield None
            ending = [*answer.finish(), answer.build_reply()]
        except (TimeoutError, httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, *_BROKEN) as error:
            raise AttemptFailed(classify_transport(error, context)) from None
        if not answer.is_whole:
            raise AttemptFailed(ModelFailure(cut_off(context), retryable=True))
        for event in ending:
            yield event

    async def _read_chunks(self, body: Body, context: FailureContext) -> AsyncGenerator[Json]:
        """Yields the chunks of the answer. Raises AttemptFailed for an error that the server tells."""
        async with self._http.stream("POST", self._url, json=body, headers=self._headers) as response:
            if not response.is_success:
                said = await _read_error(response)
                raise AttemptFailed(classify_response(response.status_code, said, response.headers, context))
            events = aiter(httpx2.EventSource(response, _MOST_EVENT_BYTES))
            size_chars = 0
            async for event in events:
                if not event.data:
                    continue
                size_chars += len(event.data)
                if size_chars > _MOST_ANSWER_CHARS:
                    raise ValueError(f"the answer is longer than {_MOST_ANSWER_CHARS} characters")
                if event.data == "[DONE]":
                    # A connection that was read to its end can be kept; the answer is whole if that fails.
                    with suppress(httpx2.HTTPError, httpx2.StreamError), anyio.move_on_after(_LAST_BYTES_S):
                        await anext(events, None)
                    return
                chunk = json.loads(event.data)
                if error := chunk.get("error"):
                    raise AttemptFailed(classify_response(None, error, {}, context))
                yield chunk


async def _read_error(response: httpx2.Response) -> object:
    """Returns the body of an error: parsed where it is JSON."""
    text = ""
    async for piece in response.aiter_text():
        text += piece
        if len(text) > _MOST_ERROR_CHARS:
            break
    try:
        return json.loads(text)
    except ValueError:
        return text


@dataclass(slots=True)
class _Text:
    """Text of the answer, or thinking that came in the named field."""

    thinking_field: str
    pieces: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class _Call:
    """A tool call as far as it has come."""

    index: object
    id: str
    name: str
    args: list[str] = field(default_factory=list[str])
    extra: object = None

    @property
    def is_whole(self) -> bool:
        """Whether the arguments are an object by now."""
        args = "".join(self.args)
        return bool(args.strip()) and RAW_ARGS not in parse_args(args)


class _Answer:
    """The answer of one request, put together from its chunks."""

    def __init__(self, target: ModelTarget) -> None:
        self._target = target
        self._parts: list[_Text | _Call | ImagePart] = []
        self._splitter = TagSplitter() if target.spec.facts.wire.thinking_tags else None
        self._has_chunks = False
        self._said_finish = ""
        self._is_refused = False
        self._model = target.access.model
        self._usage: Json = {}

    @property
    def is_whole(self) -> bool:
        """Whether the server said that it had finished. Only some can be trusted to say it; for the others an orderly
        end has to do.
        """
        return (
            bool(self._said_finish)
            or self._is_refused
            or (self._has_chunks and not self._target.spec.facts.wire.says_when_done)
        )

    @property
    def has_begun(self) -> bool:
        """Whether something came that a second attempt would repeat. A first chunk often names the role alone."""
        return bool(self._parts)

    def take(self, chunk: Json) -> Iterator[TextDelta | ThinkingDelta]:
        """Adds a chunk; yields what is to be shown of it. Raises one of `_BROKEN` for a malformed one."""
        self._has_chunks = True
        self._model = chunk.get("model") or self._model
        self._usage = chunk.get("usage") or self._usage  # some send the sum so far with every chunk
        if not chunk.get("choices"):
            return
        choice: Json = chunk["choices"][0]
        self._said_finish = choice.get("finish_reason") or self._said_finish
        delta: Json = choice.get("delta") or {}
        if delta.get("refusal"):
            self._is_refused = True
            return
        name = next((name for name in THINKING_FIELDS if delta.get(name)), "")
        if name:
            self._write(name, delta[name])
            yield ThinkingDelta(delta[name])
        if text := _join_content(delta.get("content")):
            is_another = self._write("", text)
            yield from split_delta(TextDelta(f"\n{text}" if is_another else text), self._splitter)
        for call in delta.get("tool_calls") or ():
            self._add_call(call)
        self._parts.extend(_read_images(delta))

    def finish(self) -> Iterator[TextDelta | ThinkingDelta]:
        """Yields what was held back until the end."""
        return self._splitter.finish() if self._splitter else iter(())

    def build_reply(self) -> ModelReply:
        parts = tuple(self._build_parts())
        return ModelReply(
            parts=parts,
            usage=self._build_usage(),
            finish_reason=choose_finish("content_filter" if self._is_refused else self._said_finish, parts),
            model=self._target.name,
            provider=self._target.spec.name,
        )

    def _write(self, thinking_field: str, text: str) -> bool:
        """Adds text to the part that is being written. Returns whether it begins another text of the answer."""
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] - a server may send anything
            raise TypeError("a delta is no text")
        last = self._parts[-1] if self._parts else None
        if isinstance(last, _Text) and last.thinking_field == thinking_field:
            last.pieces.append(text)
            return False
        is_another = not thinking_field and any(isinstance(p, _Text) and not p.thinking_field for p in self._parts)
        self._parts.append(_Text(thinking_field, [text]))
        return is_another

    def _add_call(self, piece: Json) -> None:
        """Adds a piece of a call. The pieces of one have the same index; some servers give none, or the same to all,
        without ids at that: then a name after whole arguments begins the next call.
        """
        index, call_id = piece.get("index"), piece.get("id") or ""
        function: Json = piece.get("function") or {}
        name = function.get("name") or ""
        calls = [part for part in self._parts if isinstance(part, _Call)]
        call = next((each for each in reversed(calls) if index is None or each.index == index), None)
        if call is None or (name and (call.is_whole if not call_id else call.id and call_id != call.id)):
            call = _Call(index, call_id, "")
            self._parts.append(call)
        call.name += name if name != call.name else ""  # some repeat it with each piece, some send it in pieces
        call.extra = piece.get(EXTRA) or call.extra
        args: object = function.get("arguments") or ""
        call.args.append(args if isinstance(args, str) else json.dumps(args))

    def _build_parts(self) -> Iterator[Part]:
        home, seen = self._target.name, set[str]()
        has_tags = self._splitter is not None
        for part in self._parts:
            match part:
                case _Text("", pieces):
                    thought, answer = split_tagged("".join(pieces)) if has_tags else ("", "".join(pieces))
                    has_tags = False
                    if thought:
                        yield ThinkingPart(to_utf8(thought))
                    if answer:
                        yield TextPart(to_utf8(answer))
                case _Text(name, pieces):
                    yield ThinkingPart(to_utf8("".join(pieces)), pack_state(ProviderState(home, id=name)))
                case _Call():
                    call = build_call(part.id, part.name, "".join(part.args), seen)
                    if part.extra:
                        state = ProviderState(home, details={EXTRA: part.extra}, call=call.id)
                        yield ThinkingPart("", pack_state(state))
                    yield call
                case ImagePart():
                    yield part

    def _build_usage(self) -> Usage:
        used, spec = self._usage, self._target.spec
        details: Json = used.get("prompt_tokens_details") or {}
        read, written = int(used.get("prompt_tokens") or 0), int(used.get("completion_tokens") or 0)
        usage = Usage(
            input_tokens=read,
            # Thinking counts: xAI and Gemini have it in the sum only.
            output_tokens=max(written, int(used.get("total_tokens") or 0) - read),
            cache_read_tokens=int(details.get("cached_tokens") or 0),
            requests=1,
        )
        return replace(usage, cost_usd=price_usage(spec, (self._model, self._target.access.model), usage))


def _join_content(content: str | Sequence[str | Json] | None) -> str:
    """Returns the text of a delta, which some servers send as a list of parts."""
    if not content:
        return ""
    if isinstance(content, str):
        return content
    return "".join(part if isinstance(part, str) else part.get("text") or "" for part in content)


def _read_images(delta: Json) -> Iterator[ImagePart]:
    """Yields the pictures, which proxies send beside the text as OpenRouter does. Leaves out what is malformed: an
    answer must not fail because of it.
    """
    for row in delta.get("images") or ():
        image: Json = row.get("image_url") or {}
        url = str(image.get("url", ""))
        head, _, data = url.removeprefix("data:").partition(";base64,")
        if url.startswith("data:image/") and is_base64(data):
            yield ImagePart(url, head)
