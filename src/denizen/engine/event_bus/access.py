"""The events of a server as the tools of one call may see and change them.

Anybody's turn may emit events, of a type that only agents emit; all else is for owners, since events tell of everybody
and listeners act for the server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from denizen.domain.cloud_event import CloudEvent
from denizen.domain.errors import NotAllowed
from denizen.domain.event_listener import EventDelivery
from denizen.domain.json import Json, JsonObject
from denizen.domain.principal import RoleName
from denizen.domain.record import record
from denizen.engine.event_bus.log import Emission, EventLog
from denizen.ports.event_configuration import EventConfiguration, EventEntryKind
from denizen.ports.events import EventSearch
from denizen.ports.toolset import CallScope
from denizen.skill import EventAccess, SeenDelivery, SeenEvent


class EventTools:
    """One for a process. Without a log and a configuration, as in a command, nothing can be done."""

    def __init__(self) -> None:
        self._log: EventLog | None = None
        self._configuration: EventConfiguration | None = None

    def open_log(self, log: EventLog) -> None:
        self._log = log

    def open_configuration(self, configuration: EventConfiguration) -> None:
        """Lets agents change the entries of this configuration from now on."""
        self._configuration = configuration

    @property
    def log(self) -> EventLog:
        """Raises NotAllowed where there is none."""
        if self._log is None:
            raise _closed()
        return self._log

    @property
    def configuration(self) -> EventConfiguration:
        """Raises NotAllowed where there is none."""
        if self._configuration is None:
            raise _closed()
        return self._configuration

    def open(self, scope: CallScope) -> EventAccess:
        """The events for the call of this scope."""
        return _ScopedEvents(self, scope)


@record
class _ScopedEvents:
    """`denizen.skill.EventAccess`."""

    tools: EventTools
    scope: CallScope

    async def emit(self, name: str, data: JsonObject, *, subject: str = "") -> SeenEvent:
        scope = self.scope
        emission = Emission(name=name, subject=subject, data=data, key=scope.options.idempotency_key)
        turns = [scope.turn_id, *([scope.delegator.turn_id] if scope.delegator else [])]
        event = await self.tools.log.emit_within(scope.principal, emission, turns)
        _, deliveries = await self.tools.log.get(event.key)
        return _show_event(event, deliveries)

    async def search(self, *, type: str = "", words: str = "", limit: int = 20) -> Sequence[SeenEvent]:  # noqa: A002
        self._check_owner("read the log of events")
        found = await self.tools.log.search(EventSearch(type=type, words=words, limit=limit))
        return [_show_event(each.event, each.deliveries) for each in found]

    async def list_failed(self) -> Sequence[SeenDelivery]:
        self._check_owner("read the log of events")
        return _show(await self.tools.log.list_failed())

    async def replay(self, delivery: str) -> SeenDelivery:
        self._check_owner("have events delivered again")
        return _show([await self.tools.log.replay(delivery)])[0]

    async def list_entries(self) -> Mapping[str, Mapping[str, Json]]:
        self._check_owner("see the listeners and sources")
        entries = await self.tools.configuration.list_entries()
        states = {each.source.key: each.status.value for each in await self.tools.log.list_sources()}
        shown: dict[str, Mapping[str, Json]] = {kind.value: named for kind, named in entries.items()}
        return {**shown, "states": states}

    async def put(self, kind: str, name: str, values: Mapping[str, Json]) -> str:
        self._check_owner("change listeners and sources")
        return await self.tools.configuration.put(self.scope.principal, EventEntryKind(kind), name, values)

    async def switch(self, kind: str, name: str, *, is_on: bool) -> str:
        self._check_owner("switch listeners and sources")
        configuration = self.tools.configuration
        return await configuration.switch(self.scope.principal, EventEntryKind(kind), name, is_on=is_on)

    async def remove(self, kind: str, name: str) -> str:
        self._check_owner("remove listeners and sources")
        return await self.tools.configuration.remove(self.scope.principal, EventEntryKind(kind), name)

    def _check_owner(self, what: str) -> None:
        """Raises NotAllowed unless an owner asks, whatever the gate decided."""
        if RoleName.OWNER not in self.scope.principal.roles:
            raise NotAllowed(f"Only an owner may {what}.", code="owners_only", fix="Ask an owner.")


def _show_event(event: CloudEvent, deliveries: Sequence[EventDelivery]) -> SeenEvent:
    return SeenEvent(
        key=event.key,
        type=event.type,
        time=event.time,
        source=event.source,
        subject=event.subject,
        data=event.data,
        deliveries=_show(deliveries),
    )


def _show(deliveries: Sequence[EventDelivery]) -> tuple[SeenDelivery, ...]:
    return tuple(
        SeenDelivery(id=each.id, event=each.event, listener=each.listener, status=each.status.value, note=each.note)
        for each in deliveries
    )


def _closed() -> NotAllowed:
    return NotAllowed("Events are looked after while the server runs only.", code="configuration_closed")
