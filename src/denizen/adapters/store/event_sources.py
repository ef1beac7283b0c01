"""The states of sources of events, and the items that polls have seen."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial

import sqlalchemy as sa

from denizen.adapters.store.columns import UtcTime, metadata, position_column, texts, times
from denizen.adapters.store.repository import SqlRepository, insert_rows, read_record, write_record
from denizen.domain.event_source import EventSourceState

event_sources = sa.Table(
    "event_sources",
    metadata,
    sa.Column("key", sa.Text(), primary_key=True),
    *texts("url"),
    *times("looked_at"),
    *texts("etag", "last_modified", "failure"),
    sa.Column("failures", sa.Integer(), nullable=False),
    sa.Column("was_reached", sa.Boolean(), nullable=False),
)
event_source_items = sa.Table(
    "event_source_items",
    metadata,
    position_column(),
    sa.Column("source", sa.Text(), nullable=False),
    *texts("item"),
    sa.UniqueConstraint("source", "item", name="uq_event_source_items_item"),
)

_WHICH = sa.bindparam("which", type_=sa.Text())
_ONE = event_sources.c.key == _WHICH
_ALL = sa.select(event_sources).order_by(event_sources.c.key)
_CLAIM = (
    sa.update(event_sources)
    .where(_ONE, event_sources.c.looked_at == sa.bindparam("known_at", type_=UtcTime()))
    .values(looked_at=sa.bindparam("new_at", type_=UtcTime()))
)
_SET = sa.update(event_sources).where(_ONE)
_GONE: sa.BindParameter[str] = sa.bindparam("gone", type_=sa.Text(), expanding=True)
_REMOVE = sa.delete(event_sources).where(event_sources.c.key.in_(_GONE))
_REMOVE_ITEMS = sa.delete(event_source_items).where(event_source_items.c.source.in_(_GONE))
_SEEN = sa.select(event_source_items.c.item).where(event_source_items.c.source == _WHICH)
_LAST_KEPT = (
    sa.select(event_source_items.c.position)
    .where(event_source_items.c.source == _WHICH)
    .order_by(event_source_items.c.position.desc())
    .limit(1)
    .offset(sa.bindparam("keep", type_=sa.Integer()))
    .scalar_subquery()
)
_TRIM = sa.delete(event_source_items).where(
    event_source_items.c.source == _WHICH, event_source_items.c.position <= _LAST_KEPT
)


class SqlEventSources(SqlRepository):
    """Implements `denizen.ports.event_sources.EventSourceRepository`."""

    async def list_states(self) -> Sequence[EventSourceState]:
        return await self._list(partial(read_record, EventSourceState), _ALL)

    async def add(self, state: EventSourceState) -> bool:
        return await self._add(event_sources, write_record(state))

    async def claim(self, key: str, *, before: datetime, at: datetime) -> bool:
        return await self._change(_CLAIM, {"which": key, "known_at": before, "new_at": at}) == 1

    async def set_state(self, state: EventSourceState) -> bool:
        return await self._change(_SET.values(write_record(state, "key")), {"which": state.key}) == 1

    async def remove(self, keys: Sequence[str]) -> None:
        await self._change(_REMOVE_ITEMS, {"gone": list(keys)})
        await self._change(_REMOVE, {"gone": list(keys)})

    async def list_seen(self, key: str) -> Collection[str]:
        return set(await self._list(lambda row: str(row.item), _SEEN, {"which": key}))

    async def add_seen(self, key: str, items: Sequence[str], *, keep: int) -> None:
        rows = [{"source": key, "item": each} for each in items]
        await self._execute(insert_rows(self._dialect.insert, event_source_items), rows)
        await self._change(_TRIM, {"which": key, "keep": keep})
