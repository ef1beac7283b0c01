"""The vendors' checks of a request: wrong roles, calls without results, too many cache marks, blank text.

`model_server` applies them, so that a wrong prompt fails in tests as it would at the vendor.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from denizen.testing.model_wire import JsonBody, ModelApi
from denizen.testing.prompt_cache import list_blocks

CACHE_MARKS = 4


def check_request(api: ModelApi, body: JsonBody) -> str:
    """Returns the reason why a vendor would answer 400, empty when it would not."""
    if api == "messages":
        return _check_messages(body)
    return _check_chat(body) if api == "chat" else ""


def _check_chat(body: JsonBody) -> str:
    open_calls: set[str] = set()
    for message in _objects(body.get("messages")):
        role = message.get("role")
        if role == "tool":
            if message.get("tool_call_id") not in open_calls:
                return "messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
            open_calls.discard(str(message.get("tool_call_id")))
            continue
        if open_calls:
            return "an assistant message with 'tool_calls' must be followed by tool messages for each 'tool_call_id'"
        if role == "assistant":
            open_calls = {str(call.get("id")) for call in _objects(message.get("tool_calls"))}
    return "" if not open_calls else "an assistant message with 'tool_calls' is not followed by its tool messages"


def _check_messages(body: JsonBody) -> str:
    if not body.get("max_tokens"):
        return "max_tokens: Field required"
    messages = list(_objects(body.get("messages")))
    if not messages or messages[0].get("role") != "user":
        return 'messages: first message must use the "user" role'
    if _count_marks(body) > CACHE_MARKS:
        return f"A maximum of {CACHE_MARKS} blocks with cache_control may be provided. Found {_count_marks(body)}."
    if _is_long_behind_short(body):
        return "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"
    open_calls: set[str] = set()
    for place, message in enumerate(messages):
        blocks = list(_objects(message.get("content")))
        results = {str(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result"}
        if results != open_calls:
            return f"messages.{place}: `tool_use` ids and `tool_result` blocks do not match: {results ^ open_calls}"
        if any(block.get("type") == "text" and not str(block.get("text")).strip() for block in blocks):
            return f"messages.{place}: text content blocks must contain non-whitespace text"
        open_calls = {str(block.get("id")) for block in blocks if block.get("type") == "tool_use"}
    last = messages[-1]
    if last.get("role") == "assistant" and str(_last_text(last)).endswith((" ", "\n")):
        return "messages: final assistant content cannot end with trailing whitespace"
    return ""


def _last_text(message: JsonBody) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    texts = [str(block.get("text", "")) for block in _objects(content)]
    return texts[-1] if texts else ""


def _count_marks(value: object) -> int:
    if isinstance(value, dict):
        entries = cast("dict[str, object]", value)
        return int("cache_control" in entries) + sum(_count_marks(entry) for entry in entries.values())
    if isinstance(value, list):
        return sum(_count_marks(entry) for entry in cast("list[object]", value))
    return 0


def _is_long_behind_short(body: JsonBody) -> bool:
    ttls = [block.ttl for block in list_blocks(body) if block.ttl]
    return "1h" in ttls[ttls.index("5m") :] if "5m" in ttls else False


def _objects(value: object) -> Iterable[JsonBody]:
    """The objects of a JSON list; nothing when it is no list."""
    entries = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("JsonBody", entry) for entry in entries if isinstance(entry, dict)]
