"""Keeps the connections to the WebSockets of the configuration, and an event of each message.

A message with an id of its own is one event however often it comes. What is sent while nobody is connected is lost:
a WebSocket does not send it again.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import anyio

from denizen.domain.clock import Clock
from denizen.domain.cloud_event import CloudEvent
from denizen.domain.errors import DenizenError, LimitExceeded
from denizen.domain.event_source import (
    CONNECTED,
    EventSourceState,
    WebSocketSource,
    find_message_id,
    make_event,
    plan_reconnect_s,
)
from denizen.domain.ids import fresh
from denizen.domain.json import Json
from denizen.engine.configuration.generation import Runtime
from denizen.engine.event_bus.bus import EventBus
from denizen.ports.event_sources import SocketConnector
from denizen.ports.store import Store

CONFIRM_EVERY_S = 60.0
"""How often one notes that a connection is still there."""
STEADY = timedelta(minutes=1)
"""A connection that was there for so long did not break for the reason that the one before had."""
FAILURE_CHARS = 500
MAX_PER_MINUTE = 120
"""So many messages of a source are kept in a minute, so that it does not crowd out other events."""
MAX_SENT_PER_MINUTE = 60_000
"""A server that sends more in a minute, wanted or not, is disconnected: reading it would leave no time for others."""

_log = logging.getLogger("denizen.events")


@dataclass(slots=True)
class _MinuteCount:
    """How many messages a source has sent in a minute, and how many of them a listener waits for."""

    minute: int
    sent: int = 0
    wanted: int = 0


class SocketListener:
    """One for a process. `run` keeps the connections until it is cancelled. WebSockets are those in force at the
    moment; one whose configuration has not changed keeps its connection.
    """

    def __init__(
        self,
        runtime: Runtime,
        store: Store,
        clock: Clock,
        bus: EventBus,
        connector: SocketConnector,
        *,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._runtime = runtime
        self._store = store
        self._clock = clock
        self._bus = bus
        self._connector = connector
        self._chance = chance
        self._taken: dict[str, _MinuteCount] = {}

    async def run(self) -> None:
        """Keeps the connections, until it is cancelled. Each change of the configuration is followed."""
        open_now: dict[str, tuple[WebSocketSource, anyio.CancelScope]] = {}
        async with anyio.create_task_group() as group:
            while True:
                swapped, wanted = self._runtime.swapped.next, self._runtime.current.events.websockets
                for name, (source, scope) in list(open_now.items()):
                    if wanted.get(name) != source:
                        scope.cancel()
                        del open_now[name]
                known = self._runtime.current.events.sources
                async with self._store.work() as work:
                    states = await work.event_sources.list_states()
                    await work.event_sources.remove([each.key for each in states if each.key not in known])
                for name, source in wanted.items():
                    if name not in open_now:
                        open_now[name] = source, anyio.CancelScope()
                        group.start_soon(self._listen, *open_now[name])
                await swapped.wait()

    async def _listen(self, source: WebSocketSource, scope: anyio.CancelScope) -> None:
        """Stays connected until the scope is cancelled."""
        failures = 0
        with scope:
            while True:
                began = self._clock.now()
                try:
                    async with self._connector.connect(source) as messages:
                        await self._note(source)
                        await self._publish_connected(source)
                        async with anyio.create_task_group() as group:
                            group.start_soon(self._confirm, source)
                            async for message in messages:
                                await self._publish(source, message)
                            group.cancel_scope.cancel()
                except* DenizenError as errors:
                    failures = 1 if self._clock.now() - began >= STEADY else failures + 1
                    await self._note_failure(source, _first(errors), failures)
                await anyio.sleep(plan_reconnect_s(failures, self._chance()))

    async def _publish(self, source: WebSocketSource, message: Json) -> None:
        minute = int(self._clock.monotonic_s() // 60)
        count = self._taken.get(source.key)
        if count is None or count.minute != minute:
            count = self._taken[source.key] = _MinuteCount(minute)
        count.sent += 1
        if count.sent > MAX_SENT_PER_MINUTE:
            raise LimitExceeded(
                f"The server has sent more than {MAX_SENT_PER_MINUTE} messages within a minute.",
                code="websocket_flood",
                fix="Subscribe to less, by `messages` or the address.",
            )
        key = find_message_id(source, message) or fresh("message")
        event = make_event(source, message, key=key, now=self._clock.now())
        if not self._bus.awaits(event.type, event.source):
            return
        count.wanted += 1
        if count.wanted <= MAX_PER_MINUTE:
            await self._bus.publish(event)
        elif count.wanted == MAX_PER_MINUTE + 1:
            _log.warning("a websocket sends too much; the rest of this minute is dropped", extra={"source": source.key})

    async def _publish_connected(self, source: WebSocketSource) -> None:
        _log.info("a websocket is connected", extra={"source": source.key})
        if self._bus.awaits(CONNECTED, source.source):
            now = self._clock.now()
            await self._bus.publish(
                CloudEvent(id=fresh("connection"), source=source.source, type=CONNECTED, time=now, subject=source.name)
            )

    async def _confirm(self, source: WebSocketSource) -> None:
        while True:
            await anyio.sleep(CONFIRM_EVERY_S)
            await self._note(source)

    async def _note_failure(self, source: WebSocketSource, error: DenizenError, failures: int) -> None:
        if failures == 1:
            _log.warning("a websocket is not connected", extra={"source": source.key, **error.fields})
        await self._note(source, failures=failures, failure=error.explain()[:FAILURE_CHARS])

    async def _note(self, source: WebSocketSource, *, failures: int = 0, failure: str = "") -> None:
        now = self._clock.now()
        state = EventSourceState(
            key=source.key, url=source.url, looked_at=now, failures=failures, failure=failure, was_reached=not failures
        )
        async with self._store.work() as work:
            if not await work.event_sources.set_state(state):
                await work.event_sources.add(state)


def _first(errors: BaseExceptionGroup[DenizenError]) -> DenizenError:
    """Returns the first error of a group, however deep it stands."""
    inner = errors.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner
