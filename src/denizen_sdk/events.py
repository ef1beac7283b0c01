"""Events: what happened, and what listeners did about it. For owners.

Times are ISO 8601 in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from denizen_sdk.calls import ClientCalls, quote_segment
from denizen_sdk.records import from_json, record


@record(kw_only=True)
class EventDeliveryInfo:
    """An event on its way to a listener. `status` is waiting, started, done, skipped or failed; `note` says why."""

    id: str
    event: str
    listener: str
    status: str
    attempts: int
    due_at: str
    note: str = ""
    turn_id: str = ""


@record(kw_only=True)
class EventInfo:
    """An event, with the attributes of CloudEvents. `key` names it here; `cause` is the key of the event from which it
    follows, `depth` how many stand before it. `position` is its place in the log.
    """

    key: str
    id: str
    source: str
    type: str
    time: str
    subject: str
    actor: str
    data: Mapping[str, Any]
    cause: str
    depth: int
    deliveries: tuple[EventDeliveryInfo, ...] = ()
    position: int = 0


@record(kw_only=True)
class ListenerInfo:
    """A listener, or a route of webhooks (`webhook:NAME`). `on` are the types of events, `action` is agent, post or
    log, and `cool_down_s` how long it waits after it has acted.
    """

    key: str
    on: tuple[str, ...]
    source: str
    action: str
    agent: str
    channel: str
    cool_down_s: float
    per_hour: int


@record(kw_only=True)
class EventSourceInfo:
    """A WebSocket (`websocket:NAME`) or a poll (`poll:NAME`). `type` begins the types of its events. `status` is
    waiting, working or failing, as it was when somebody looked (`looked_at`); `failure` says why, `failures` how often
    in a row.
    """

    key: str
    type: str
    address: str
    status: str
    looked_at: str = ""
    failures: int = 0
    failure: str = ""


class EventCalls(ClientCalls):
    """The calls of `/api/events`. All raise NetworkError, and ApiError (403 for everybody but owners)."""

    async def list_events(
        self, *, kind: str = "", source: str = "", words: str = "", before: int = 0, limit: int = 50
    ) -> list[EventInfo]:
        """Returns the newest events; `kind` is a type and may have `*`. `before` is the `position` of the last one of a
        page.
        """
        query = {"type": kind, "source": source, "words": words, "before": before, "limit": limit}
        return await self._list(EventInfo, "/api/events", **query)

    async def get_event(self, key: str) -> EventInfo:
        """Raises ApiError (404) for an event that is not kept."""
        return await self._get(EventInfo, f"/api/events/{quote_segment(key)}")

    async def emit_event(
        self, name: str, data: Mapping[str, Any] | None = None, *, subject: str = "", key: str = ""
    ) -> EventInfo:
        """Emits an event of the type `denizen.emitted.NAME`. The same `key` twice is one event."""
        body = {"name": name, "subject": subject, "data": dict(data or {}), "key": key}
        return from_json(EventInfo, await self._connection.request("POST", "/api/events", body=body))

    async def list_failed_deliveries(self) -> Sequence[EventDeliveryInfo]:
        """Returns the deliveries that have failed, the newest first."""
        return await self._list(EventDeliveryInfo, "/api/events/failed")

    async def replay_delivery(self, delivery: str) -> EventDeliveryInfo:
        """Has a delivery that failed or was skipped tried once more. Raises ApiError: 404, or 409 for another one."""
        path = f"/api/events/deliveries/{quote_segment(delivery)}/replay"
        return from_json(EventDeliveryInfo, await self._connection.request("POST", path))

    async def list_listeners(self) -> list[ListenerInfo]:
        """Returns the listeners in force, and the routes of webhooks."""
        return await self._list(ListenerInfo, "/api/listeners")

    async def list_event_sources(self) -> list[EventSourceInfo]:
        """Returns the WebSockets and polls in force, and how they are."""
        return await self._list(EventSourceInfo, "/api/event-sources")
