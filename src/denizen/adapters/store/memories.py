"""The memories of agents."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from functools import cache, partial

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, UtcTime, escape, id_columns, metadata, texts, times
from denizen.adapters.store.dialect import SqlDialect
from denizen.adapters.store.repository import SqlRepository, read_record, write_record
from denizen.adapters.store.vectors import vectors
from denizen.domain.ids import AgentName
from denizen.domain.memory import Memory
from denizen.ports.memory import MEMORY_VECTORS, MemorySearch

memories = sa.Table(
    "memories",
    metadata,
    *id_columns(),
    *texts("agent", "owner", "text", "platform", "room"),
    sa.Column("private", sa.Boolean(), nullable=False),
    *texts("told_by"),
    sa.Column("turn_id", sa.Text(), nullable=False),
    *times("created_at"),
    sa.Column("superseded_by", sa.Text(), nullable=False),
    sa.Column("superseded_at", UtcTime()),
    sa.Index("ix_memories_agent_owner", "agent", "owner"),
    sa.Index("ix_memories_told_by", "told_by"),
    sa.Index("ix_memories_superseded_by", "superseded_by"),
)
"""`owner` is a principal's key, empty for what an agent knows whoever speaks."""

_FIND = sa.select(memories).where(memories.c.id == sa.bindparam("which"))
_COUNTS = memories.c.superseded_at.is_(None)
_COUNTED = sa.or_(_COUNTS, memories.c.superseded_at > sa.bindparam("since", type_=UtcTime()))
_NEWEST = sa.select(memories).order_by(memories.c.position.desc()).limit(sa.bindparam("most"))
_OF_AGENT = memories.c.agent == sa.bindparam("whose_agent")
_OF_OWNER = memories.c.owner == sa.bindparam("whose")
_TOLD_BY = sa.select(memories.c.id).where(
    sa.or_(
        memories.c.told_by == sa.bindparam("teller"),
        sa.and_(memories.c.owner == sa.bindparam("teller"), memories.c.owner != sa.literal_column("''")),
    )
)
_OF_MEMORIES = vectors.c.collection == MEMORY_VECTORS
_WITHOUT_VECTOR = (
    sa.select(memories)
    .where(
        _COUNTS,
        ~sa.exists().where(
            _OF_MEMORIES, vectors.c.key == memories.c.id, vectors.c.model == sa.bindparam("model", type_=EscapedText())
        ),
    )
    .order_by(memories.c.position)
    .limit(sa.bindparam("most"))
)


_read_memory = partial(read_record, Memory)


@cache
def _supersede(dialect: SqlDialect) -> sa.Update:
    return (
        sa.update(memories)
        .where(_COUNTS, dialect.among(memories.c.id, "chosen"))
        .values(superseded_by=sa.bindparam("by"), superseded_at=sa.bindparam("at", type_=UtcTime()))
    )


@cache
def _lead_on(dialect: SqlDialect) -> sa.Update:
    """For what the chosen ones had superseded."""
    return (
        sa.update(memories)
        .where(dialect.among(memories.c.superseded_by, "chosen"))
        .values(superseded_by=sa.bindparam("by"))
    )


@cache
def _list_superseded(dialect: SqlDialect) -> sa.Select[tuple[str]]:
    return sa.select(memories.c.id).where(dialect.among(memories.c.superseded_by, "chosen"))


@cache
def _remove(dialect: SqlDialect) -> sa.Delete:
    return sa.delete(memories).where(dialect.among(memories.c.id, "chosen"))


@cache
def _remove_vectors(dialect: SqlDialect) -> sa.Delete:
    return sa.delete(vectors).where(_OF_MEMORIES, dialect.among(vectors.c.key, "chosen"))


class SqlMemories(SqlRepository):
    """Implements `denizen.ports.memory.MemoryRepository`."""

    async def add(self, memory: Memory) -> bool:
        return await self._add(memories, write_record(memory))

    async def find(self, memory_id: str) -> Memory | None:
        return await self._find(_read_memory, _FIND, {"which": memory_id})

    async def list_memories(
        self,
        *,
        agent: AgentName | None = None,
        owner: str | None = None,
        since: datetime | None = None,
        history: bool = False,
        limit: int = 100,
    ) -> Sequence[Memory]:
        statement, bounds = _NEWEST, {"most": max(limit, 0), "whose_agent": agent, "whose": owner, "since": since}
        if agent is not None:
            statement = statement.where(_OF_AGENT)
        if owner is not None:
            statement = statement.where(_OF_OWNER)
        if not history:
            statement = statement.where(_COUNTS if since is None else _COUNTED)
        return await self._list(_read_memory, statement, bounds)

    async def search(self, wanted: MemorySearch) -> Sequence[Memory]:
        statement = sa.select(memories).where(*_conditions(wanted)).order_by(memories.c.position.desc())
        return await self._list(_read_memory, statement.offset(wanted.first).limit(wanted.limit))

    async def count(self, wanted: MemorySearch) -> int:
        statement = sa.select(sa.func.count()).select_from(memories).where(*_conditions(wanted))
        return await self._transaction.read(lambda connection: connection.execute(statement).scalar_one())

    async def supersede(self, memory_ids: Collection[str], *, by: str, at: datetime) -> int:
        dialect, ids = self._dialect, sorted({*memory_ids} - {by})

        def job(connection: sa.Connection) -> int:
            bounds = {"chosen": dialect.bind_list(ids), "by": by}
            _forget_vectors(connection, dialect, ids)
            connection.execute(_lead_on(dialect), bounds)
            return connection.execute(_supersede(dialect), bounds | {"at": at}).rowcount

        return await self._transaction.write(job) if ids else 0

    async def remove(self, memory_ids: Collection[str]) -> int:
        dialect, ids = self._dialect, sorted(set(memory_ids))

        def job(connection: sa.Connection) -> int:
            older = connection.execute(_list_superseded(dialect), {"chosen": dialect.bind_list(ids)})
            return _forget(connection, dialect, sorted({*ids, *(str(row.id) for row in older)}))

        return await self._transaction.write(job) if ids else 0

    async def forget_teller(self, principal: str) -> int:
        def job(connection: sa.Connection) -> int:
            ids = connection.execute(_TOLD_BY, {"teller": principal}).scalars().all()
            return _forget(connection, self._dialect, ids)

        return await self._transaction.write(job)

    async def list_without_vector(self, model: str, *, limit: int) -> Sequence[Memory]:
        bounds = {"model": model, "most": max(limit, 0)}
        return await self._list(_read_memory, _WITHOUT_VECTOR, bounds)


def _conditions(wanted: MemorySearch) -> Iterator[sa.ColumnElement[bool]]:
    if wanted.agent is not None:
        yield memories.c.agent == wanted.agent
    if wanted.owner is not None:
        yield memories.c.owner == wanted.owner
    if not wanted.history:
        yield _COUNTS
    if not wanted.private:
        yield sa.not_(memories.c.private)
    for word in wanted.words.lower().split():
        quoted = re.sub(r"([%_/])", r"/\1", escape(word))
        pattern = sa.literal(f"%{quoted}%", sa.Text())
        columns = (memories.c.text, memories.c.owner)
        yield sa.or_(*(sa.func.lower(column).like(pattern, escape="/") for column in columns))


def _forget(connection: sa.Connection, dialect: SqlDialect, ids: Sequence[str]) -> int:
    if not ids:
        return 0
    _forget_vectors(connection, dialect, ids)
    return connection.execute(_remove(dialect), {"chosen": dialect.bind_list(ids)}).rowcount


def _forget_vectors(connection: sa.Connection, dialect: SqlDialect, ids: Sequence[str]) -> None:
    connection.execute(_remove_vectors(dialect), {"chosen": dialect.bind_list([escape(key) for key in ids])})
