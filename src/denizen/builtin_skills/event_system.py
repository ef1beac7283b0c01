"""Events: emitting them, and for owners their log, the listeners, and the sources that events come from.

An emitted event is of the type `local.NAME`, which only agents emit, so a listener for it knows whose word that is.
Changes of listeners and sources are dangerous, and people are always asked: they act when nobody asks. No secret can be
named from here, and an entry that has one can only be switched or removed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Literal

from denizen.skill import (
    Effect,
    EventAccess,
    Json,
    JsonObject,
    Param,
    SeenDelivery,
    SeenEvent,
    Skill,
    Taint,
    Tier,
    ToolContext,
    ToolError,
    ToolOutput,
    quote_untrusted,
    truncate,
)

skill = Skill("event_system", description="Emits events; for owners, listeners and sources of events.")

MAX_DATA_CHARS = 600
STANDING = {Effect.SCHEDULE, Effect.SEND}

Name = Annotated[str, Param("lower case", max_length=64)]
Kind = Literal["listener", "websocket", "poll", "webhook"]
FieldPath = Annotated[str, Param("path of a field, like data.id", max_length=200)]
Message = Annotated[str, Param("{{field}} is filled in", max_length=4000)]


@skill.tool(tier=Tier.LIMITED)
async def emit_event(
    context: ToolContext,
    name: Annotated[str, Param("like site.down", max_length=200)],
    data: dict[str, str] = {},  # noqa: B006
    subject: Annotated[str, Param("what it is about", max_length=200)] = "",
) -> str:
    """Emits an event of the type local.NAME, for listeners."""
    event = await _events(context).emit(name, dict[str, Json](data), subject=subject)
    count = len(event.deliveries)
    return f"Emitted {event.key} ({event.type}) for {count} listener{'' if count == 1 else 's'}."


@skill.tool(tier=Tier.LIMITED, read_only=True, reads={Taint.OTHERS, Taint.WEB})
async def read_events(
    context: ToolContext,
    type: Annotated[str, Param("like poll.*", max_length=200)] = "",  # noqa: A002
    words: Annotated[str, Param(max_length=200)] = "",
    limit: Annotated[int, Param(ge=1, le=50)] = 10,
    failed: bool = False,  # noqa: FBT001, FBT002 - a model names it
) -> str | ToolOutput:
    """Reads the newest events and what was done about them, or the failed deliveries."""
    events = _events(context)
    lines = (
        list(map(_delivery_line, await events.list_failed()))
        if failed
        else list(map(_event_line, await events.search(type=type, words=words, limit=limit)))
    )
    return quote_untrusted("\n".join(lines), source="events") if lines else ToolOutput("There are none.", is_own=True)


@skill.tool(tier=Tier.SENSITIVE)
async def replay_event(context: ToolContext, delivery: Annotated[str, "its id"]) -> str:
    """Has a delivery that failed or was skipped tried again."""
    return _delivery_line(await _events(context).replay(delivery.strip()))


@skill.tool(tier=Tier.LIMITED, read_only=True, reads={Taint.OTHERS})
async def list_event_setup(context: ToolContext) -> str:
    """Lists listeners, websockets, polls and webhook routes."""
    found = await _events(context).list_entries()
    return quote_untrusted(json.dumps(found, ensure_ascii=False, indent=1), source="configuration")


@skill.tool(
    tier=Tier.DANGEROUS, effects=STANDING, destinations=("channel",), destructive=True, changes_configuration=True
)
async def set_listener(  # noqa: PLR0913 - what a listener is made of
    context: ToolContext,
    name: Name,
    *,
    on: Annotated[list[str], Param("types, like poll.NAME, local.*")] = [],  # noqa: B006
    action: Literal["", "agent", "post", "log"] = "",
    message: Message = "",
    channel: Annotated[str, Param("id", max_length=20)] = "",
    filter: Annotated[dict[str, str], Param("value by path; * is any")] = {},  # noqa: A002, B006
    cool_down: Annotated[int, Param("seconds", ge=0, le=86400)] = 0,
) -> str:
    """Adds a listener, or changes what is given."""
    values: JsonObject = {
        "on": on,
        "action": action,
        "message": message,
        "channel": channel,
        "filter": dict[str, Json](filter),
        "cool_down": cool_down,
    }
    return await _put(context, "listener", name, values)


@skill.tool(tier=Tier.DANGEROUS, effects=STANDING, destinations=("url",), destructive=True, changes_configuration=True)
async def set_websocket(
    context: ToolContext,
    name: Name,
    url: Annotated[str, Param("wss", max_length=1000)] = "",
    messages: Annotated[list[str], Param("sent when it opens")] = [],  # noqa: B006
    id: FieldPath = "",  # noqa: A002
    type: FieldPath = "",  # noqa: A002
) -> str:
    """Adds a WebSocket as a source of events websocket.NAME, or changes what is given."""
    return await _put(context, "websocket", name, {"url": url, "messages": messages, "id": id, "type": type})


@skill.tool(tier=Tier.DANGEROUS, effects=STANDING, destinations=("url",), destructive=True, changes_configuration=True)
async def set_poll(
    context: ToolContext,
    name: Name,
    *,
    url: Annotated[str, Param("https", max_length=1000)] = "",
    every: Annotated[int, Param("seconds; 0: as it is", ge=0, le=604800)] = 0,
    items: FieldPath = "",
    id: FieldPath = "",  # noqa: A002
    type: FieldPath = "",  # noqa: A002
) -> str:
    """Adds a JSON API whose new items are events poll.NAME, or changes what is given."""
    return await _put(context, "poll", name, {"url": url, "every": every, "items": items, "id": id, "type": type})


@skill.tool(
    tier=Tier.DANGEROUS, effects=STANDING, destinations=("channel",), destructive=True, changes_configuration=True
)
async def set_webhook(
    context: ToolContext,
    name: Name,
    action: Literal["", "agent", "log"] = "",
    message: Message = "",
    channel: Annotated[str, Param("id", max_length=20)] = "",
) -> str:
    """Adds a signed route for webhooks at /api/hooks/NAME, or changes what is given."""
    said = await _put(context, "webhook", name, {"action": action, "message": message, "channel": channel})
    return f"{said}\nThe owner finds the secret of a new route in secrets.env."


@skill.tool(tier=Tier.DANGEROUS, effects=STANDING, destructive=True, changes_configuration=True)
async def switch_event_entry(
    context: ToolContext,
    kind: Literal["listener", "websocket", "poll"],
    name: Name,
    enabled: bool,  # noqa: FBT001 - a model names it
) -> str:
    """Switches a listener or source on or off."""
    return _show_change(await _events(context).switch(kind, name, is_on=enabled))


@skill.tool(tier=Tier.DANGEROUS, destructive=True, changes_configuration=True)
async def remove_event_entry(context: ToolContext, kind: Kind, name: Name) -> str:
    """Removes a listener, source or webhook route."""
    return _show_change(await _events(context).remove(kind, name))


async def _put(context: ToolContext, kind: Kind, name: str, values: Mapping[str, Json]) -> str:
    given = {key: value for key, value in values.items() if value}
    if not given:
        raise ToolError("Say what is to be set.", is_own=True)
    return _show_change(await _events(context).put(kind, name, given))


def _show_change(diff: str) -> str:
    return f"In force now:\n{diff}" if diff else "It was so already."


def _events(context: ToolContext) -> EventAccess:
    if context.events is None:
        raise ToolError("There are no events here.")
    return context.events


def _event_line(event: SeenEvent) -> str:
    data = truncate(json.dumps(event.data, ensure_ascii=False), MAX_DATA_CHARS)
    done = "".join(f"\n  {_delivery_line(each)}" for each in event.deliveries)
    return f"{event.key} {event.time:%Y-%m-%d %H:%M:%S} {event.type} from {event.source} {event.subject}: {data}{done}"


def _delivery_line(delivery: SeenDelivery) -> str:
    note = f" ({delivery.note})" if delivery.note else ""
    return f"{delivery.id} of {delivery.event} for {delivery.listener}: {delivery.status}{note}"
