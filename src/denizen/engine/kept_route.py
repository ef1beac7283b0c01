"""What an answer keeps of the route of its turn, for the next questions of its session: in the meta of its message.

Written by `steps`, read by `routing` and `gather`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from denizen.domain.json import JsonObject
from denizen.domain.message import Message, Role
from denizen.domain.routing import Earlier, Route, route_from_json, route_to_json

ROUTE = "route"


def kept_with(route: Route, keep_s: float) -> JsonObject:
    """A provider keeps the prompt for `keep_s`."""
    return {**route_to_json(route), "keep_s": keep_s}


def find_earlier(message: Message) -> Earlier | None:
    """None for an answer of a turn that was not routed."""
    if ROUTE not in message.meta:
        return None
    row = cast("Mapping[str, Any]", message.meta[ROUTE])
    return Earlier(route_from_json(row), message.created_at, float(row["keep_s"]))


def turns_on(messages: Sequence[Message], route: Route | None) -> list[tuple[datetime, datetime]]:
    """When each question was asked, and when what came of it ended; the last is the one to answer. Of a routed turn
    only those on its model: each model has a cache of its own, whose rhythm is that of its own turns.
    """
    turns: list[tuple[datetime, datetime, str]] = []
    for message in messages:
        began_at, model = message.created_at, ""
        if message.role is not Role.USER and turns:
            began_at, _, model = turns.pop()
        earlier = find_earlier(message)
        turns.append((began_at, message.created_at, earlier.route.model if earlier else model))
    wanted = None if route is None else route.model
    return [(began_at, end) for began_at, end, model in turns[:-1] if wanted in (None, model)] + [
        (began_at, end) for began_at, end, _ in turns[-1:]
    ]
