"""The log of events, and the deliveries of events to listeners."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache, partial
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import (
    EnumValue,
    EscapedText,
    JsonText,
    UtcTime,
    id_columns,
    metadata,
    position_column,
    texts,
    times,
)
from denizen.adapters.store.repository import Row, SqlRepository, insert_rows, read_record, write_record
from denizen.adapters.store.turns import turns
from denizen.domain.cloud_event import CloudEvent
from denizen.domain.event_listener import EventDelivery, EventDeliveryStatus
from denizen.domain.ids import TurnId
from denizen.domain.turn import TurnStatus
from denizen.ports.events import EventSearch, LoggedEvent

MAX_EVENTS = 20_000
MAX_AGE = timedelta(days=30)
"""So many events are kept, for so long. Those with a delivery that is not over stay longer."""

events = sa.Table(
    "events",
    metadata,
    position_column(),
    sa.Column("key", sa.Text(), nullable=False, unique=True),
    *texts("id", "source", "type", "subject", "actor"),
    sa.Column("data", JsonText(), nullable=False),
    *times("time"),
    sa.Column("cause", sa.Text(), nullable=False),
    sa.Column("depth", sa.Integer(), nullable=False),
    sa.Index("ix_events_actor", "actor"),
)
event_deliveries = sa.Table(
    "event_deliveries",
    metadata,
    *id_columns(),
    sa.Column("event", sa.Text(), nullable=False),
    *texts("listener"),
    sa.Column("status", EnumValue(EventDeliveryStatus), nullable=False),
    *times("due_at", "created_at"),
    sa.Column("attempts", sa.Integer(), nullable=False),
    *texts("note"),
    sa.Column("turn_id", sa.Text()),
    sa.Index("ix_event_deliveries_event", "event"),
    sa.Index("ix_event_deliveries_status", "status", "due_at"),
    sa.Index("ix_event_deliveries_turn_id", "turn_id"),
)

_EVENT = sa.select(events).where(events.c.key == sa.bindparam("which"))
_OPEN = (EventDeliveryStatus.WAITING, EventDeliveryStatus.STARTED)
_OLD = (
    sa.select(events.c.key)
    .where(
        sa.or_(
            events.c.position <= sa.select(sa.func.max(events.c.position)).scalar_subquery() - MAX_EVENTS,
            events.c.time < sa.bindparam("before", type_=UtcTime()),
        ),
        events.c.key.not_in(sa.select(event_deliveries.c.event).where(event_deliveries.c.status.in_(_OPEN))),
    )
    .order_by(events.c.position)
    .limit(100)
)
_KEYS = sa.select(events.c.key).where(events.c.key.in_(sa.bindparam("which", expanding=True)))
_OF_ACTOR = sa.select(events.c.key).where(events.c.actor == sa.bindparam("whose", type_=EscapedText()))
_DELIVERY = sa.select(event_deliveries).where(event_deliveries.c.id == sa.bindparam("which"))
_OF_TURN = sa.select(event_deliveries).where(event_deliveries.c.turn_id == sa.bindparam("which"))
_OF_EVENTS = (
    sa.select(event_deliveries)
    .where(event_deliveries.c.event.in_(sa.bindparam("which", expanding=True)))
    .order_by(event_deliveries.c.position)
)
_MOST = sa.bindparam("most", type_=sa.Integer())
_FAILED = (
    sa.select(event_deliveries)
    .where(event_deliveries.c.status == EventDeliveryStatus.FAILED)
    .order_by(event_deliveries.c.position.desc())
    .limit(_MOST)
)
_RUNS = sa.exists().where(turns.c.id == event_deliveries.c.turn_id, turns.c.status == TurnStatus.OPEN)
_ENDED = (
    sa.select(event_deliveries)
    .where(event_deliveries.c.status == EventDeliveryStatus.STARTED, ~_RUNS)
    .order_by(event_deliveries.c.position)
    .limit(_MOST)
)
_WAITS = event_deliveries.c.status == EventDeliveryStatus.WAITING
_DUE = (
    sa.select(event_deliveries)
    .where(_WAITS, event_deliveries.c.due_at <= sa.bindparam("now", type_=UtcTime()))
    .order_by(event_deliveries.c.due_at, event_deliveries.c.position)
    .limit(_MOST)
)
_NEXT = sa.select(sa.func.min(event_deliveries.c.due_at, type_=UtcTime())).where(
    _WAITS, event_deliveries.c.due_at > sa.bindparam("after", type_=UtcTime())
)
_OF_LISTENER = event_deliveries.c.listener == sa.bindparam("listener", type_=EscapedText())
_DIGEST = sa.select(sa.func.min(event_deliveries.c.due_at, type_=UtcTime())).where(
    _WAITS,
    _OF_LISTENER,
    event_deliveries.c.attempts == 0,
    event_deliveries.c.due_at > sa.bindparam("after", type_=UtcTime()),
)
_IN_DIGEST = (
    sa.select(event_deliveries)
    .where(
        _WAITS,
        _OF_LISTENER,
        event_deliveries.c.attempts == sa.bindparam("attempts", type_=sa.Integer()),
        event_deliveries.c.due_at == sa.bindparam("due", type_=UtcTime()),
    )
    .order_by(event_deliveries.c.position)
)
_UPDATE = sa.update(event_deliveries).where(
    event_deliveries.c.id == sa.bindparam("which"), event_deliveries.c.attempts == sa.bindparam("known")
)

_read_event = partial(read_record, CloudEvent)
_read_delivery = partial(read_record, EventDelivery)


def _read_logged(row: Row) -> LoggedEvent:
    return LoggedEvent(row.position, _read_event(row))


@cache
def _search(*, has_type: bool, has_source: bool, has_words: bool, has_end: bool) -> sa.Select[Any]:
    found = sa.select(events).order_by(events.c.position.desc()).limit(_MOST)
    if has_type:
        found = found.where(events.c.type.like(sa.bindparam("kind", type_=sa.Text()), escape="/"))
    if has_source:
        found = found.where(events.c.source == sa.bindparam("origin", type_=EscapedText()))
    if has_words:
        words = sa.bindparam("words", type_=sa.Text())
        searched = (events.c.source, events.c.subject, events.c.actor, events.c.data)
        found = found.where(
            sa.or_(*(sa.func.lower(sa.cast(column, sa.Text())).like(words, escape="/") for column in searched))
        )
    return found.where(events.c.position < sa.bindparam("before")) if has_end else found


class SqlEvents(SqlRepository):
    """Implements `denizen.ports.events.EventRepository`."""

    async def append(self, event: CloudEvent) -> bool:
        is_new = await self._add(events, write_record(event) | {"key": event.key})
        if is_new:
            await self._remove(_OLD, {"before": event.time - MAX_AGE})
        return is_new

    async def find(self, key: str) -> CloudEvent | None:
        return await self._find(_read_event, _EVENT, {"which": key})

    async def search(self, wanted: EventSearch) -> Sequence[LoggedEvent]:
        statement = _search(
            has_type=bool(wanted.type),
            has_source=bool(wanted.source),
            has_words=bool(wanted.words),
            has_end=wanted.before is not None,
        )
        bounds = {
            "most": max(wanted.limit, 0),
            "kind": _escape_like(wanted.type).replace("*", "%"),
            "origin": wanted.source,
            "words": f"%{_escape_like(wanted.words.lower())}%",
            "before": wanted.before,
        }
        used = {name: value for name, value in bounds.items() if name in statement.compile().params}
        return await self._list(_read_logged, statement, used)

    async def forget(self, keys: Sequence[str]) -> int:
        return await self._remove(_KEYS, {"which": list(keys)}) if keys else 0

    async def forget_actor(self, actor: str) -> int:
        return await self._remove(_OF_ACTOR, {"whose": actor})

    async def add_deliveries(self, deliveries: Sequence[EventDelivery]) -> None:
        add = insert_rows(self._dialect.insert, event_deliveries)
        await self._execute(add, [write_record(each) for each in deliveries])

    async def update(self, delivery: EventDelivery, *, attempts: int) -> bool:
        values = {name: getattr(delivery, name) for name in ("status", "due_at", "attempts", "note", "turn_id")}
        return await self._change(_UPDATE.values(values), {"which": delivery.id, "known": attempts}) == 1

    async def find_delivery(self, key: str) -> EventDelivery | None:
        return await self._find(_read_delivery, _DELIVERY, {"which": key})

    async def find_by_turn(self, turn_id: TurnId) -> EventDelivery | None:
        return await self._find(_read_delivery, _OF_TURN, {"which": turn_id})

    async def list_deliveries(self, events: Sequence[str]) -> Sequence[EventDelivery]:
        return await self._list(_read_delivery, _OF_EVENTS, {"which": list(events)}) if events else []

    async def list_failed(self, *, limit: int) -> Sequence[EventDelivery]:
        return await self._list(_read_delivery, _FAILED, {"most": max(limit, 0)})

    async def list_due(self, *, now: datetime, limit: int) -> Sequence[EventDelivery]:
        return await self._list(_read_delivery, _DUE, {"now": now, "most": max(limit, 0)})

    async def list_ended(self, *, limit: int) -> Sequence[EventDelivery]:
        return await self._list(_read_delivery, _ENDED, {"most": max(limit, 0)})

    async def find_digest(self, listener: str, *, after: datetime) -> datetime | None:
        bounds = {"listener": listener, "after": after}
        return await self._transaction.read(lambda connection: connection.execute(_DIGEST, bounds).scalar())

    async def list_digest(self, delivery: EventDelivery) -> Sequence[EventDelivery]:
        bounds = {"listener": delivery.listener, "attempts": delivery.attempts, "due": delivery.due_at}
        return await self._list(_read_delivery, _IN_DIGEST, bounds)

    async def find_upcoming(self, *, after: datetime) -> datetime | None:
        return await self._transaction.read(lambda connection: connection.execute(_NEXT, {"after": after}).scalar())

    async def _remove(self, which: sa.Select[Any], bounds: dict[str, Any]) -> int:
        """Removes the events that the statement finds, and their deliveries."""

        def job(connection: sa.Connection) -> int:
            keys = list(connection.execute(which, bounds).scalars())
            if keys:
                connection.execute(sa.delete(event_deliveries).where(event_deliveries.c.event.in_(keys)))
                connection.execute(sa.delete(events).where(events.c.key.in_(keys)))
            return len(keys)

        return await self._transaction.write(job)


def _escape_like(text: str) -> str:
    return text.replace("/", "//").replace("%", "/%").replace("_", "/_")
