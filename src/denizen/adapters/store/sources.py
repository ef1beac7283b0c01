"""Sources of knowledge, the state of each, and the records of syncs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import EnumValue, JsonText, JsonTuple, UtcTime, id_columns, metadata, texts, times
from denizen.adapters.store.repository import Row, SqlRepository, read_record, upsert, write_record
from denizen.domain.source import Source, SourceKind, SourceReading, SourceState, SyncRun, SyncStatus

sources = sa.Table(
    "sources",
    metadata,
    sa.Column("id", sa.Text(), primary_key=True),
    sa.Column("kind", EnumValue(SourceKind), nullable=False),
    *texts("location", "label", "branch", "content_path", "output_path"),
    sa.Column("readme_only", sa.Boolean(), nullable=False),
    sa.Column("max_videos", sa.Integer(), nullable=False),
    sa.Column("sync_every_minutes", sa.Integer(), nullable=False),
    sa.Column("guild", sa.Text(), nullable=False),
    *times("created_at", "updated_at"),
)

source_states = sa.Table(
    "source_states",
    metadata,
    sa.Column("source_id", sa.Text(), sa.ForeignKey("sources.id", ondelete="CASCADE"), primary_key=True),
    *texts("revision"),
    sa.Column("fingerprint", sa.Text(), nullable=False),
    sa.Column("taken", JsonText(), nullable=False),
    sa.Column("synced_at", UtcTime()),
    sa.Column("tried_at", UtcTime()),
    sa.Column("error_code", sa.Text(), nullable=False),
    *texts("error"),
)
"""`taken` is the last good reading, an empty object before the first."""

syncs = sa.Table(
    "syncs",
    metadata,
    *id_columns(),
    sa.Column("sources", JsonTuple(), nullable=False),
    sa.Column("status", EnumValue(SyncStatus), nullable=False),
    sa.Column("snapshot", sa.Text(), nullable=False),
    sa.Column("changed", JsonTuple(), nullable=False),
    sa.Column("failed", JsonText(), nullable=False),
    sa.Column("skipped", JsonText(), nullable=False),
    sa.Column("left_out", JsonText(), nullable=False),
    *times("started_at"),
    sa.Column("ended_at", UtcTime()),
)


_ALL = sa.select(sources).order_by(sources.c.id)
_FIND = sa.select(sources).where(sources.c.id == sa.bindparam("which"))
_TAKE = sa.select(sources.c.id).where(sources.c.id == sa.bindparam("which")).with_for_update()
_REMOVE = sa.delete(sources).where(sources.c.id == sa.bindparam("which"))
_STATES = sa.select(source_states).order_by(source_states.c.source_id)
_FIND_SYNC = sa.select(syncs).where(syncs.c.id == sa.bindparam("which"))
_SYNCS = sa.select(syncs).order_by(syncs.c.position.desc()).limit(sa.bindparam("most"))


_read_source = partial(read_record, Source)
_read_sync = partial(read_record, SyncRun)


class SqlSources(SqlRepository):
    """Implements `denizen.ports.source.SourceRepository`."""

    async def put(self, source: Source) -> None:
        changing = [column.name for column in sources.c if column.name not in {"id", "created_at"}]
        await self._execute(upsert(self._dialect.insert, sources, *changing), write_record(source))

    async def find(self, source_id: str) -> Source | None:
        return await self._find(_read_source, _FIND, {"which": source_id})

    async def list_sources(self) -> Sequence[Source]:
        return await self._list(_read_source, _ALL)

    async def remove(self, source_id: str) -> bool:
        return await self._change(_REMOVE, {"which": source_id}) > 0

    async def put_state(self, state: SourceState) -> None:
        put = upsert(self._dialect.insert, source_states)
        row = write_record(state) | {"taken": {} if state.taken is None else asdict(state.taken)}

        def job(connection: sa.Connection) -> None:
            if connection.execute(_TAKE, {"which": state.source_id}).first() is not None:
                connection.execute(put, row)

        await self._transaction.write(job)

    async def list_states(self) -> Sequence[SourceState]:
        return await self._list(_read_state, _STATES)

    async def put_sync(self, run: SyncRun) -> None:
        changing = [column.name for column in syncs.c if column.name not in {"position", "id", "started_at"}]
        await self._execute(upsert(self._dialect.insert, syncs, *changing), write_record(run))

    async def find_sync(self, run_id: str) -> SyncRun | None:
        return await self._find(_read_sync, _FIND_SYNC, {"which": run_id})

    async def list_syncs(self, *, limit: int = 20) -> Sequence[SyncRun]:
        return await self._list(_read_sync, _SYNCS, {"most": max(limit, 0)})


def _read_state(row: Row) -> SourceState:
    taken: dict[str, Any] = row.taken | {"left_out": tuple(row.taken.get("left_out", ()))}
    return read_record(SourceState, row, taken=SourceReading(**taken) if row.taken else None)
