"""Sources of knowledge, the state of each, and the records of syncs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, JsonText, UtcTime, metadata, position_column
from denizen.adapters.store.dialect import InsertInto
from denizen.adapters.store.transaction import Transaction
from denizen.domain.source import Source, SourceKind, SourceReading, SourceState, SyncRun, SyncStatus

sources = sa.Table(
    "sources",
    metadata,
    sa.Column("id", sa.Text(), primary_key=True),
    sa.Column("kind", sa.Text(), nullable=False),
    sa.Column("location", EscapedText(), nullable=False),
    sa.Column("label", EscapedText(), nullable=False),
    sa.Column("branch", EscapedText(), nullable=False),
    sa.Column("content_path", EscapedText(), nullable=False),
    sa.Column("output_path", EscapedText(), nullable=False),
    sa.Column("readme_only", sa.Boolean(), nullable=False),
    sa.Column("max_videos", sa.Integer(), nullable=False),
    sa.Column("sync_every_minutes", sa.Integer(), nullable=False),
    sa.Column("created_at", UtcTime(), nullable=False),
    sa.Column("updated_at", UtcTime(), nullable=False),
)

source_states = sa.Table(
    "source_states",
    metadata,
    sa.Column("source_id", sa.Text(), sa.ForeignKey("sources.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("revision", EscapedText(), nullable=False),
    sa.Column("fingerprint", sa.Text(), nullable=False),
    sa.Column("taken", JsonText(), nullable=False),
    sa.Column("synced_at", UtcTime()),
    sa.Column("tried_at", UtcTime()),
    sa.Column("error_code", sa.Text(), nullable=False),
    sa.Column("error", EscapedText(), nullable=False),
)
"""`taken` is the last good reading, an empty object before the first."""

syncs = sa.Table(
    "syncs",
    metadata,
    position_column(),
    sa.Column("id", sa.Text(), nullable=False, unique=True),
    sa.Column("sources", JsonText(), nullable=False),
    sa.Column("status", sa.Text(), nullable=False),
    sa.Column("snapshot", sa.Text(), nullable=False),
    sa.Column("changed", JsonText(), nullable=False),
    sa.Column("failed", JsonText(), nullable=False),
    sa.Column("skipped", JsonText(), nullable=False),
    sa.Column("started_at", UtcTime(), nullable=False),
    sa.Column("ended_at", UtcTime()),
)


_ALL = sa.select(sources).order_by(sources.c.id)
_FIND = sa.select(sources).where(sources.c.id == sa.bindparam("which"))
_TAKE = sa.select(sources.c.id).where(sources.c.id == sa.bindparam("which")).with_for_update()
_REMOVE = sa.delete(sources).where(sources.c.id == sa.bindparam("which"))
_STATES = sa.select(source_states).order_by(source_states.c.source_id)
_FIND_SYNC = sa.select(syncs).where(syncs.c.id == sa.bindparam("which"))
_SYNCS = sa.select(syncs).order_by(syncs.c.position.desc()).limit(sa.bindparam("most"))


@cache
def _put(insert: InsertInto, table: sa.Table, key: str, unchanging: str = "") -> sa.Executable:
    names = [column.name for column in table.c if column.name != "position"]
    statement = insert(table).values({name: sa.bindparam(name, type_=table.c[name].type) for name in names})
    changed = {name: statement.excluded[name] for name in names if name not in (key, unchanging)}
    return statement.on_conflict_do_update(index_elements=[table.c[key]], set_=changed).inline()


class SqlSources:
    """Implements `denizen.ports.source.SourceRepository`."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    async def put(self, source: Source) -> None:
        put, row = _put(self._transaction.dialect.insert, sources, "id", "created_at"), asdict(source)
        await self._transaction.write(lambda connection: connection.execute(put, row))

    async def find(self, source_id: str) -> Source | None:
        row = await self._transaction.read(
            lambda connection: connection.execute(_FIND, {"which": source_id}).mappings().first()
        )
        return None if row is None else _source(row)

    async def list_sources(self) -> Sequence[Source]:
        return [
            _source(row)
            for row in await self._transaction.read(lambda connection: connection.execute(_ALL).mappings().all())
        ]

    async def remove(self, source_id: str) -> bool:
        return bool(
            await self._transaction.write(lambda connection: connection.execute(_REMOVE, {"which": source_id}).rowcount)
        )

    async def put_state(self, state: SourceState) -> None:
        put = _put(self._transaction.dialect.insert, source_states, "source_id")
        row = asdict(state) | {"taken": {} if state.taken is None else asdict(state.taken)}

        def job(connection: sa.Connection) -> None:
            if connection.execute(_TAKE, {"which": state.source_id}).first() is not None:
                connection.execute(put, row)

        await self._transaction.write(job)

    async def list_states(self) -> Sequence[SourceState]:
        return [
            _state(row)
            for row in await self._transaction.read(lambda connection: connection.execute(_STATES).mappings().all())
        ]

    async def put_sync(self, run: SyncRun) -> None:
        put = _put(self._transaction.dialect.insert, syncs, "id", "started_at")
        row = asdict(run) | {"sources": list(run.sources), "changed": list(run.changed)}
        await self._transaction.write(lambda connection: connection.execute(put, row))

    async def find_sync(self, run_id: str) -> SyncRun | None:
        row = await self._transaction.read(
            lambda connection: connection.execute(_FIND_SYNC, {"which": run_id}).mappings().first()
        )
        return None if row is None else _sync(row)

    async def list_syncs(self, *, limit: int = 20) -> Sequence[SyncRun]:
        most = {"most": max(limit, 0)}
        rows = await self._transaction.read(lambda connection: connection.execute(_SYNCS, most).mappings().all())
        return [_sync(row) for row in rows]


def _source(row: sa.RowMapping) -> Source:
    told: dict[str, Any] = {**row}
    told["kind"] = SourceKind(told["kind"])
    return Source(**told)


def _state(row: sa.RowMapping) -> SourceState:
    told: dict[str, Any] = {**row}
    taken: dict[str, Any] = {**told["taken"]}
    taken["left_out"] = tuple(taken.get("left_out", ()))
    told["taken"] = SourceReading(**taken) if told["taken"] else None
    return SourceState(**told)


def _sync(row: sa.RowMapping) -> SyncRun:
    told: dict[str, Any] = {name: value for name, value in row.items() if name != "position"}
    told["status"] = SyncStatus(told["status"])
    for name in ("sources", "changed"):
        told[name] = tuple(told[name])
    return SyncRun(**told)
