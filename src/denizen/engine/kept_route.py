"""What an answer keeps of the route of its turn, for the next question of its session: in the meta of its message.

Written by `steps`, read by `routing`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from denizen.domain.json import JsonObject
from denizen.domain.message import Message
from denizen.domain.routing import Earlier, Route, route_from_json, route_to_json

ROUTE = "route"


def kept_with(route: Route, *, keep_s: float, input_tokens: int) -> JsonObject:
    """`input_tokens` of the last request, which a provider keeps for `keep_s`."""
    return {**route_to_json(route), "keep_s": keep_s, "input_tokens": input_tokens}


def find_earlier(message: Message) -> Earlier | None:
    """None for an answer of a turn that was not routed."""
    if ROUTE not in message.meta:
        return None
    row = cast("Mapping[str, Any]", message.meta[ROUTE])
    return Earlier(route_from_json(row), message.created_at, float(row["keep_s"]), int(row["input_tokens"]))
