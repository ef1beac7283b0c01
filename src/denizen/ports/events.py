"""The port of events: the log of what happened, and the deliveries of events to listeners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Protocol

from denizen.domain.cloud_event import CloudEvent, matches_type
from denizen.domain.event_listener import EventDelivery, EventListener
from denizen.domain.event_source import EventSource, PollSource, WebSocketSource
from denizen.domain.ids import TurnId
from denizen.domain.record import record
from denizen.ports.webhooks import WebhookRoute


@record(kw_only=True)
class EventSettings:
    """The listeners by their keys, those of the routes of webhooks among them, and these routes by name; None while
    webhooks are off. `websockets` and `polls` are the sources that are listened to and asked from here, by name.
    """

    listeners: Mapping[str, EventListener] = field(default_factory=dict[str, EventListener])
    routes: Mapping[str, WebhookRoute] | None = None
    websockets: Mapping[str, WebSocketSource] = field(default_factory=dict[str, WebSocketSource])
    polls: Mapping[str, PollSource] = field(default_factory=dict[str, PollSource])

    @property
    def sources(self) -> Mapping[str, EventSource]:
        """All sources that are listened to or asked from here, by key."""
        return {each.key: each for each in (*self.websockets.values(), *self.polls.values())}

    def awaits(self, kind: str, source: str) -> bool:
        """Tells whether any listener waits for events of that type from that source; a source that ends with `/` means
        all that begin with it. Nothing else is kept, or even looked at.
        """
        is_whole = not source.endswith("/")
        return any(
            matches_type(pattern, kind)
            for each in self.listeners.values()
            if not each.source or (each.source == source if is_whole else each.source.startswith(source))
            for pattern in each.on
        )


@record(kw_only=True)
class EventSearch:
    """A search in the log, the newest first. `type` may have `*`; `words` are a part of source, subject, actor
    or data; `before` is a position in the log.
    """

    type: str = ""
    source: str = ""
    words: str = ""
    before: int | None = None
    limit: int = 50


@record
class LoggedEvent:
    """An event and its position in the log."""

    position: int
    event: CloudEvent


class EventRepository(Protocol):
    """Events and their deliveries. Part of a unit of work."""

    async def append(self, event: CloudEvent) -> bool:
        """Adds the event, in the place of the oldest where there are many. False when it is there already."""
        ...

    async def find(self, key: str) -> CloudEvent | None: ...

    async def search(self, wanted: EventSearch) -> Sequence[LoggedEvent]: ...

    async def forget(self, keys: Sequence[str]) -> int:
        """Removes these events, with their deliveries. Returns how many there were."""
        ...

    async def forget_actor(self, actor: str) -> int:
        """Removes the events of somebody, with their deliveries. Returns how many."""
        ...

    async def add_deliveries(self, deliveries: Sequence[EventDelivery]) -> None: ...

    async def update(self, delivery: EventDelivery, *, attempts: int) -> bool:
        """Writes how the delivery goes on. False, and nothing changes, where it has another number of attempts: another
        process was faster.
        """
        ...

    async def find_delivery(self, key: str) -> EventDelivery | None: ...

    async def find_by_turn(self, turn_id: TurnId) -> EventDelivery | None:
        """Returns the delivery whose turn that is."""
        ...

    async def list_deliveries(self, events: Sequence[str]) -> Sequence[EventDelivery]:
        """Returns the deliveries of these events."""
        ...

    async def list_failed(self, *, limit: int) -> Sequence[EventDelivery]:
        """Returns those that have failed, the newest first."""
        ...

    async def list_due(self, *, now: datetime, limit: int) -> Sequence[EventDelivery]:
        """Returns those that are to be tried now, the oldest first."""
        ...

    async def list_ended(self, *, limit: int) -> Sequence[EventDelivery]:
        """Returns the started ones whose turns have ended or are not kept, the oldest first. Those that wait for
        people, for days maybe, are not among them.
        """
        ...

    async def find_digest(self, listener: str, *, after: datetime) -> datetime | None:
        """Returns when the listener acts for the events that it collects; None where it collects none."""
        ...

    async def list_digest(self, delivery: EventDelivery) -> Sequence[EventDelivery]:
        """Returns the deliveries of its listener that wait for the same moment as this one, the oldest first."""
        ...

    async def find_upcoming(self, *, after: datetime) -> datetime | None: ...
