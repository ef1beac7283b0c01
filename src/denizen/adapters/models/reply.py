"""The reply of a provider in our form: deltas while it streams, the whole reply at the end. `request` is the way there.

A provider wants some things back unchanged: the id of an item, encrypted content, for some a mark on a tool call. All
of it travels as compact JSON in the `signature` of a `ThinkingPart`, with the model that it belongs to (`home`),
because another model refuses it (`ProviderState`).

Open-weight models write their thinking into the text, between tags at its beginning. The vendor's layer knows the tags
only when they arrive alone, and servers cut streams as they like, so `TagSplitter` separates them.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

from denizen.domain.ids import CallId, fresh
from denizen.domain.json import JsonObject
from denizen.domain.message import ImagePart, Part, TextPart, ThinkingPart, ToolCallPart
from denizen.domain.record import record
from denizen.domain.usage import Usage
from denizen.ports.model import RAW_ARGS, FinishReason, ModelReply, TextDelta, ThinkingDelta


@record
class ProviderState:
    """The data that a provider wants back unchanged. `call` is set when it belongs to the tool call with that id
    instead of to the thinking itself.
    """

    home: str
    vendor: str | None = None
    id: str | None = None
    signature: str | None = None
    details: dict[str, Any] | None = None
    call: str = ""


def pack_state(state: ProviderState) -> str:
    """Returns the state as one string, empty when there is nothing to give back. Leaves out what is not JSON."""
    if not (state.id or state.signature or state.details):
        return ""
    fields = {
        "home": state.home,
        "vendor": state.vendor,
        "id": state.id,
        "signature": state.signature,
        "details": _json_only(state.details),
        "call": state.call,
    }
    return json.dumps({name: value for name, value in fields.items() if value}, separators=(",", ":"), sort_keys=True)


def unpack_state(text: str) -> ProviderState | None:
    """Returns the state in a string of `pack_state`; None for anything else."""
    if not text.startswith("{"):
        return None
    try:
        found: object = json.loads(text)
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    fields = cast("Mapping[str, Any]", found)
    home = fields.get("home")
    if not isinstance(home, str):
        return None
    return ProviderState(
        home=home,
        vendor=_text(fields.get("vendor")),
        id=_text(fields.get("id")),
        signature=_text(fields.get("signature")),
        details=cast("dict[str, Any]", fields["details"]) if isinstance(fields.get("details"), dict) else None,
        call=_text(fields.get("call")) or "",
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _json_only(details: dict[str, Any] | None) -> dict[str, Any] | None:
    try:
        json.dumps(details, allow_nan=False)
    except (TypeError, ValueError):
        return None
    return details


_OPEN = ("<think>", "<thinking>")
_CLOSE = {"<think>": "</think>", "<thinking>": "</thinking>"}


class TagSplitter:
    """Separates thinking from text as it arrives. A tag counts only before any other text: later ones are talk."""

    def __init__(self) -> None:
        self._held = ""
        self._close = ""
        self._in_text = False
        self._answered = False

    def feed(self, text: str) -> Iterator[TextDelta | ThinkingDelta]:
        """Yields what is certain by now; the rest is held until more comes."""
        if self._in_text:
            yield from self._say(text)
            return
        self._held += text
        if not self._close:
            yield from self._begin()
        if self._close:
            yield from self._think()

    def finish(self) -> Iterator[TextDelta | ThinkingDelta]:
        """Yields what was still held when the stream ended."""
        held, self._held = self._held, ""
        if held:
            yield ThinkingDelta(held) if self._close else TextDelta(held)

    def _begin(self) -> Iterator[TextDelta]:
        """Removes the opening tag, or finds that there is none."""
        start = self._held.lstrip()
        for tag in _OPEN:
            if start.startswith(tag):
                self._close, self._held = _CLOSE[tag], start.removeprefix(tag)
                return
        if not any(tag.startswith(start) for tag in _OPEN):
            self._in_text = self._answered = True
            held, self._held = self._held, ""
            yield TextDelta(held)

    def _think(self) -> Iterator[TextDelta | ThinkingDelta]:
        thought, closed, rest = self._held.partition(self._close)
        if closed:
            self._in_text, self._held = True, ""
            if thought:
                yield ThinkingDelta(thought)
            yield from self._say(rest)
            return
        # The end may be the beginning of the closing tag.
        keep = next((n for n in range(len(self._close) - 1, 0, -1) if self._held.endswith(self._close[:n])), 0)
        certain, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        if certain:
            yield ThinkingDelta(certain)

    def _say(self, text: str) -> Iterator[TextDelta]:
        """Yields the answer; white space between the thinking and it belongs to neither."""
        answer = text if self._answered else text.lstrip()
        if answer:
            self._answered = True
            yield TextDelta(answer)


def split_tagged(text: str) -> tuple[str, str]:
    """Returns the thinking at the beginning of a whole text, and the answer."""
    splitter = TagSplitter()
    found = [*splitter.feed(text), *splitter.finish()]
    thought = "".join(piece.text for piece in found if isinstance(piece, ThinkingDelta))
    return thought, "".join(piece.text for piece in found if isinstance(piece, TextDelta))


def split_delta(
    delta: TextDelta | ThinkingDelta | None, splitter: TagSplitter | None
) -> Iterable[TextDelta | ThinkingDelta]:
    """Returns the delta with thinking separated from text, as far as that is certain."""
    if isinstance(delta, TextDelta) and splitter is not None:
        return splitter.feed(delta.text)
    return () if delta is None else (delta,)


if TYPE_CHECKING:
    from pydantic_ai import messages as wire

_FINISH: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "model_length": "length",  # Mistral's word for a full context
    "max_tokens": "length",
    "content_filter": "content_filter",
    "tool_call": "tool_calls",  # pydantic-ai's word
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "error": "error",
    "insufficient_system_resource": "error",  # DeepSeek's word for an overload
}
_TAGGED = "content"
"""pydantic-ai's id of thinking that a model wrote between tags in its text. No provider wants that back."""


class DeltaReader:
    """Reads the events of one stream as deltas to show at once. Tool calls are not among them: they count when they are
    whole. Several texts stand on lines of their own, as they do in the reply (`join_text`).
    """

    def __init__(self) -> None:
        self._text: int | None = None

    def take(self, event: wire.ModelResponseStreamEvent) -> TextDelta | ThinkingDelta | None:
        from pydantic_ai import messages as wire

        match event:
            case wire.PartStartEvent(part=wire.TextPart(content=text)) if text:
                return self._say(event.index, text)
            case wire.PartStartEvent(part=wire.ThinkingPart(content=text)) if text:
                return ThinkingDelta(text)
            case wire.PartDeltaEvent(delta=wire.TextPartDelta(content_delta=text)) if text:
                return self._say(event.index, text)
            case wire.PartDeltaEvent(delta=wire.ThinkingPartDelta(content_delta=text)) if text:
                return ThinkingDelta(text)
            case _:
                return None

    def _say(self, part: int, text: str) -> TextDelta:
        is_another = self._text not in (None, part)
        self._text = part
        return TextDelta(f"\n{text}" if is_another else text)


@record
class ReplyAuthor:
    """The model that replied. `model` is our full name of it, which thinking is marked with; `free` models cost
    nothing. `tags`: its text may begin with thinking between tags.
    """

    model: str
    provider: str
    free: bool
    tags: bool


def parse_reply(response: wire.ModelResponse, speaker: ReplyAuthor) -> ModelReply:
    """Returns the whole reply."""
    parts = tuple(_parts(response.parts, speaker))
    return ModelReply(
        parts=parts,
        usage=parse_usage(response, free=speaker.free),
        finish_reason=choose_finish(response.finish_reason, parts),
        model=speaker.model,
        provider=speaker.provider,
    )


def parse_args(written: str | dict[str, Any] | None) -> JsonObject:
    """Returns the arguments of a tool call. Text that is not a JSON object comes back under `RAW_ARGS`; nothing gives
    `{}`.

    An object that the model wrote as a string is parsed once more.
    """
    if written is None or (isinstance(written, str) and not written.strip()):
        return {}
    if isinstance(written, dict):
        return cast("JsonObject", written) if _is_sound(written) else {RAW_ARGS: json.dumps(written, default=str)}
    found = _load(written)
    if isinstance(found, str):
        found = _load(found)
    if isinstance(found, dict) and _is_sound(cast("object", found)):
        return cast("JsonObject", found)
    return {RAW_ARGS: to_utf8(written)}


def parse_usage(response: wire.ModelResponse, *, free: bool) -> Usage:
    """Returns tokens and money: the provider's own charge, else that of the price list; None when nobody knows."""
    used = response.usage
    return Usage(
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cache_read_tokens=used.cache_read_tokens,
        cache_write_tokens=used.cache_write_tokens,
        cost_usd=Decimal(0) if free else _cost(response),
        requests=1,
    )


def _cost(response: wire.ModelResponse) -> Decimal | None:
    charged = (response.provider_details or {}).get("cost")
    if isinstance(charged, int | float) and not isinstance(charged, bool):
        return Decimal(str(charged))
    if not response.usage.has_values():
        return None
    if response.usage.cost is not None:
        return response.usage.cost
    try:
        return response.cost().total_price
    except (LookupError, ValueError, AssertionError):
        return None


def _parts(parts: Iterable[wire.ModelResponsePart], speaker: ReplyAuthor) -> Iterator[Part]:
    from pydantic_ai import messages as wire

    home, tags = speaker.model, speaker.tags
    seen: set[str] = set()
    for part in parts:
        match part:
            case wire.TextPart(content=text):
                thought, answer = split_tagged(text) if tags else ("", text)
                tags = False
                if thought:
                    yield ThinkingPart(to_utf8(thought))
                if answer:
                    yield TextPart(to_utf8(answer))
            case wire.ThinkingPart(content=text):
                state = ProviderState(home, part.provider_name, part.id, part.signature, part.provider_details)
                signature = "" if part.id == _TAGGED else pack_state(state)
                if text or signature:
                    yield ThinkingPart(to_utf8(text), signature)
            case wire.ToolCallPart():
                call = build_call(
                    part.tool_call_id, part.tool_name, cast("str | dict[str, Any] | None", part.args), seen
                )
                details = ProviderState(
                    home=home,
                    vendor=part.provider_name,
                    id=part.id,
                    signature=None,
                    details=part.provider_details,
                    call=call.id,
                )
                if kept := pack_state(details):
                    yield ThinkingPart("", kept)
                yield call
            case wire.FilePart(content=file) if file.media_type.startswith("image/") and file.data:
                yield ImagePart(f"data:{file.media_type};base64,{b64encode(file.data).decode()}", file.media_type)
            case _:
                continue  # other files and provider-side tools: nothing asks for them


def build_call(given_id: str, tool: str, args: str | dict[str, Any] | None, seen: set[str]) -> ToolCallPart:
    """Returns a call, under an id that no other call of the reply has (`seen`): results find their call by it."""
    given = to_utf8(given_id)
    call_id = fresh("call") if not given or given in seen else given
    seen.add(call_id)
    return ToolCallPart(CallId(call_id), to_utf8(tool), parse_args(args))


def choose_finish(said: str | None, parts: tuple[Part, ...]) -> FinishReason:
    """Returns the reason. Servers that say `stop`, or nothing, beside tool calls mean the calls."""
    reason = _FINISH.get(said or "stop", "stop")
    if reason == "stop" and any(isinstance(part, ToolCallPart) for part in parts):
        return "tool_calls"
    return reason


def _load(text: str) -> object:
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _is_sound(value: object) -> bool:
    """Returns whether the value can be written as UTF-8 JSON: no half surrogate pairs, no NaN, no endless nesting."""
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def to_utf8(text: str) -> str:
    """Returns text that can be stored: half surrogate pairs become question marks."""
    return text.encode("utf-8", "replace").decode()
