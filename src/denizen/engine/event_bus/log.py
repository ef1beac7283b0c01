"""The log of events, for those who look after the server: searching it, emitting events, and replaying deliveries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

from denizen.domain.clock import Clock
from denizen.domain.cloud_event import EMITTED, EVENT_NAME, LOCAL, CloudEvent, check_nesting
from denizen.domain.errors import InvalidInput, NotFound
from denizen.domain.event_listener import EventDelivery, EventListener
from denizen.domain.event_source import SourceReport, report_source
from denizen.domain.ids import TurnId, fresh
from denizen.domain.json import Json, JsonObject
from denizen.domain.principal import Principal
from denizen.domain.record import record
from denizen.engine.configuration.generation import Runtime
from denizen.engine.event_bus.bus import EventBus
from denizen.ports.events import EventSearch
from denizen.ports.store import Store

SOURCE = "/denizen"
"""The source of events that are emitted here."""


@record(kw_only=True)
class EventEntry:
    """An event in the log, at its position, with its deliveries."""

    position: int
    event: CloudEvent
    deliveries: Sequence[EventDelivery] = ()


@record(kw_only=True)
class Emission:
    """An event that somebody emits. `key` names it: the same one of the same principal is one event."""

    name: str
    subject: str = ""
    data: JsonObject = field(default_factory=dict[str, Json])
    key: str = ""


class EventLog:
    """One for a process. Its callers check that whoever asks may see all events."""

    def __init__(self, runtime: Runtime, store: Store, clock: Clock, bus: EventBus) -> None:
        self._runtime = runtime
        self._store = store
        self._clock = clock
        self._bus = bus

    async def search(self, wanted: EventSearch) -> Sequence[EventEntry]:
        """Returns the newest events that fit."""
        async with self._store.work(write=False) as work:
            found = await work.events.search(wanted)
            deliveries = await work.events.list_deliveries([each.event.key for each in found])
        by_event: dict[str, list[EventDelivery]] = {}
        for delivery in deliveries:
            by_event.setdefault(delivery.event, []).append(delivery)
        return [
            EventEntry(position=each.position, event=each.event, deliveries=by_event.get(each.event.key, ()))
            for each in found
        ]

    async def get(self, key: str) -> tuple[CloudEvent, Sequence[EventDelivery]]:
        """Returns an event and its deliveries. Raises NotFound."""
        async with self._store.work(write=False) as work:
            event = await work.events.find(key)
            if event is None:
                raise NotFound(
                    f"There is no event '{key[:60]}' in the log.",
                    code="event_unknown",
                    fix="`denizen events list` lists what is kept.",
                )
            return event, await work.events.list_deliveries([key])

    async def list_failed(self, *, limit: int = 100) -> Sequence[EventDelivery]:
        """Returns the deliveries that have failed, the newest first."""
        async with self._store.work(write=False) as work:
            return await work.events.list_failed(limit=limit)

    async def emit(self, by: Principal, emission: Emission) -> CloudEvent:
        """Keeps an event that somebody emits, and returns it. Raises InvalidInput for what is no name, and for data
        that is nested too deeply.
        """
        event = self._make_event(by, emission, EMITTED)
        await self._bus.publish(event)
        return event

    async def emit_within(self, by: Principal, emission: Emission, turns: Sequence[TurnId]) -> CloudEvent:
        """As `emit`, for a tool: the type says that an agent emits it. It follows from the event that caused one of
        these turns, so that events which follow from each other end (`MAX_DEPTH`).
        """
        event = self._make_event(by, emission, LOCAL)
        async with self._store.work(write=False) as work:
            for turn in turns:
                delivery = await work.events.find_by_turn(turn)
                before = await work.events.find(delivery.event) if delivery else None
                if before is not None:
                    event = replace(event, cause=before.key, depth=before.depth + 1)
                    break
        await self._bus.publish(event)
        return event

    def _make_event(self, by: Principal, emission: Emission, prefix: str) -> CloudEvent:
        if not EVENT_NAME.fullmatch(emission.name):
            raise InvalidInput(
                f"'{emission.name[:60]}' cannot be the name of an event.",
                code="event_name",
                fix="Use lower-case letters, digits, _ and -, in up to five parts with dots, such as site.down.",
            )
        check_nesting(emission.data)
        return CloudEvent(
            id=f"{by.key}:{emission.key}" if emission.key else fresh("emit"),
            source=SOURCE,
            type=f"{prefix}{emission.name}",
            time=self._clock.now(),
            subject=emission.subject,
            actor=by.key,
            data=emission.data,
        )

    async def replay(self, delivery_id: str) -> EventDelivery:
        """As `EventBus.replay`."""
        return await self._bus.replay(delivery_id)

    async def list_sources(self) -> Sequence[SourceReport]:
        """Returns the WebSockets and polls in force, with how they are."""
        async with self._store.work(write=False) as work:
            states = {each.key: each for each in await work.event_sources.list_states()}
        now, sources = self._clock.now(), self._runtime.current.events.sources
        return [report_source(each, states.get(key), now) for key, each in sources.items()]

    def list_listeners(self) -> Sequence[EventListener]:
        """Returns the listeners in force, those of routes behind the others."""
        return list(self._runtime.current.events.listeners.values())
