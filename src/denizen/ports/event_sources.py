"""Listening to WebSockets and asking REST resources of others, and keeping how that went."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Protocol

from denizen.domain.event_source import EventSourceState, PollSource, WebSocketSource
from denizen.domain.feed import FeedVersion
from denizen.domain.json import Json
from denizen.domain.record import record


@record
class ResourceReading:
    """A resource that was read. Its content does not count where nothing `has_changed` since that version."""

    content: Json
    version: FeedVersion
    has_changed: bool = True


class ResourceReader(Protocol):
    """Reads JSON from the web."""

    async def read(self, source: PollSource, known: FeedVersion) -> ResourceReading:
        """Reads the resource. Raises what `ports.fetch.Fetcher` does, InvalidInput (`poll_unreadable`) for what is no
        JSON, and Unavailable (`poll_status`) for an error of its server.
        """
        ...


class SocketConnector(Protocol):
    """Connects to WebSockets."""

    def connect(self, source: WebSocketSource) -> AbstractAsyncContextManager[AsyncIterator[Json]]:
        """Connects, sends the messages of the source, and gives what comes in: JSON as its value, all else as text. The
        messages end with Unavailable (`websocket_lost`). Connecting raises Unavailable, and NotAllowed for a private
        address.
        """
        ...


class EventSourceRepository(Protocol):
    """The states of sources, and the ids of the items that polls have seen. Part of a unit of work."""

    async def list_states(self) -> Sequence[EventSourceState]: ...

    async def add(self, state: EventSourceState) -> bool:
        """False, and nothing changes, when that source has a state."""
        ...

    async def claim(self, key: str, *, before: datetime, at: datetime) -> bool:
        """Notes that the source is looked at. Of several that claim the same look one gets True; False when it was
        looked at after `before`.
        """
        ...

    async def set_state(self, state: EventSourceState) -> bool:
        """False when the source has no state any more."""
        ...

    async def remove(self, keys: Sequence[str]) -> None:
        """Removes the states of these sources with what they have seen."""
        ...

    async def list_seen(self, key: str) -> Collection[str]: ...

    async def add_seen(self, key: str, items: Sequence[str], *, keep: int) -> None:
        """Notes items as seen; those that are there already stay. Keeps the newest of each source, so many."""
        ...
