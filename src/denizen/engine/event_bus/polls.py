"""Asks the REST resources of the configuration, and keeps an event of each new item, once.

An item is noted as seen in the same moment in which its event is kept. So of several processes one keeps it, and a
crash neither loses nor repeats it.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime

import anyio

from denizen.domain.clock import Clock
from denizen.domain.errors import DenizenError, InvalidInput
from denizen.domain.event_source import (
    MAX_ITEMS,
    EventSourceState,
    PollSource,
    ResourceListing,
    make_event,
    plan_next_look,
    read_listing,
)
from denizen.domain.feed import FeedVersion
from denizen.domain.ids import fresh
from denizen.engine.configuration.generation import Runtime
from denizen.engine.event_bus.bus import EventBus
from denizen.ports.event_sources import ResourceReader, ResourceReading
from denizen.ports.store import Store

AT_ONCE = 4
"""So many resources are asked at a time."""
LONGEST_LISTING = 2000
"""A list with more items is refused: its items could not be told from those that were seen."""
KEPT_SEEN = 10_000
"""So many seen items are remembered for each resource."""
FAILURE_CHARS = 500
LOOK_EVERY_S = 60.0

_log = logging.getLogger("denizen.events")


class ResourcePoller:
    """One for a process. `run` asks what is due, until it is cancelled. Resources are those in force at the moment."""

    def __init__(self, runtime: Runtime, store: Store, clock: Clock, bus: EventBus, reader: ResourceReader) -> None:
        self._runtime = runtime
        self._store = store
        self._clock = clock
        self._bus = bus
        self._reader = reader

    async def run(self) -> None:
        """Asks what is due, until it is cancelled. Without resources it waits for a change of the configuration."""
        while True:
            swapped = self._runtime.swapped.next
            wait_s = await self.poll_due()
            with anyio.move_on_after(wait_s):
                await swapped.wait()

    async def poll_due(self) -> float | None:
        """Asks every resource that is due. Returns how many seconds to wait for the next; None without resources."""
        polls = self._runtime.current.events.polls.values()
        if not polls:
            return None
        async with self._store.work(write=False) as work:
            states = {each.key: each for each in await work.event_sources.list_states()}
        now, limiter = self._clock.now(), anyio.CapacityLimiter(AT_ONCE)
        async with anyio.create_task_group() as group:
            for source in polls:
                state = states.get(source.key)
                if state is None or state.url != source.url or plan_next_look(source, state) <= now:
                    group.start_soon(self._poll, source, state, limiter)
        async with self._store.work(write=False) as work:
            states = {each.key: each for each in await work.event_sources.list_states()}
        upcoming = [plan_next_look(each, states[each.key]) for each in polls if each.key in states]
        now = self._clock.now()
        return min([max((each - now).total_seconds(), 1.0) for each in upcoming] + [LOOK_EVERY_S])

    async def _poll(self, source: PollSource, state: EventSourceState | None, limiter: anyio.CapacityLimiter) -> None:
        async with limiter:
            now = self._clock.now()
            claimed = await self._claim(source, state, now)
            if claimed is None:
                return
            try:
                reading = await self._reader.read(source, claimed.version)
                listing = _read_listing(source, reading, is_known=claimed.was_reached)
            except DenizenError as error:
                _log.warning("a resource could not be read", extra={"source": source.key, **error.fields})
                failure = error.explain()[:FAILURE_CHARS]
                await self._note(replace(claimed, failures=claimed.failures + 1, failure=failure))
                return
            await self._keep_new(source, claimed, reading, listing)

    async def _claim(
        self, source: PollSource, state: EventSourceState | None, now: datetime
    ) -> EventSourceState | None:
        """Returns the state from which the look goes on; None where another process does it."""
        async with self._store.work() as work:
            if state is not None and state.url == source.url:
                is_mine = await work.event_sources.claim(source.key, before=state.looked_at, at=now)
                return replace(state, looked_at=now) if is_mine else None
            if state is not None:
                await work.event_sources.remove([source.key])
            new = EventSourceState(key=source.key, url=source.url, looked_at=now)
            return new if await work.event_sources.add(new) else None

    async def _keep_new(
        self, source: PollSource, state: EventSourceState, reading: ResourceReading, listing: ResourceListing
    ) -> None:
        """Keeps an event of each new item. While more is left than is taken at a time, the server is not asked whether
        anything has changed, so that the rest comes with the next time.
        """
        now, is_quiet = self._clock.now(), not (state.was_reached or source.takes_first)
        async with self._store.work() as work:
            seen = await work.event_sources.list_seen(source.key)
            new = listing.choose_new(seen)
            taken = new if is_quiet else new[:MAX_ITEMS]
            version = reading.version if len(taken) == len(new) else FeedVersion()
            read = replace(state, version=version, failures=0, failure="", was_reached=True)
            if not await work.event_sources.set_state(read):
                return  # it was taken out meanwhile
            await work.event_sources.add_seen(
                source.key, [each.id for each in taken], keep=1 if listing.is_state else KEPT_SEEN
            )
            for item in () if is_quiet else taken:
                key = fresh("poll") if listing.is_state else item.id
                event = make_event(source, item.content, key=key, now=now)
                if self._bus.awaits(event.type, event.source):
                    await self._bus.keep(work, event)
        if taken and not is_quiet:
            self._bus.wake()
            _log.info("a resource has new items", extra={"source": source.key, "items": len(taken)})

    async def _note(self, state: EventSourceState) -> None:
        async with self._store.work() as work:
            await work.event_sources.set_state(state)


def _read_listing(source: PollSource, reading: ResourceReading, *, is_known: bool) -> ResourceListing:
    if not reading.has_changed:
        return ResourceListing()
    listing = read_listing(source, reading.content, is_known=is_known)
    if len(listing.items) > LONGEST_LISTING:
        raise InvalidInput(
            f"The resource lists {len(listing.items)} items.",
            code="poll_too_long",
            fix=f"Ask for at most {LONGEST_LISTING} at a time, by its own parameters in the address.",
        )
    return listing
