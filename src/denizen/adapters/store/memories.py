"""The memories of agents."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache, partial

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, escape, id_columns, metadata, texts, times
from denizen.adapters.store.dialect import SqlDialect
from denizen.adapters.store.repository import SqlRepository, read_record, write_record
from denizen.adapters.store.vectors import vectors
from denizen.domain.ids import AgentName
from denizen.domain.memory import Memory
from denizen.ports.memory import MEMORY_VECTORS

memories = sa.Table(
    "memories",
    metadata,
    *id_columns(),
    *texts("agent", "owner", "text", "platform", "room"),
    sa.Column("private", sa.Boolean(), nullable=False),
    *texts("told_by"),
    sa.Column("turn_id", sa.Text(), nullable=False),
    *times("created_at", "updated_at"),
    sa.Index("ix_memories_agent_owner", "agent", "owner"),
    sa.Index("ix_memories_told_by", "told_by"),
)
"""`owner` is a principal's key, empty for what an agent knows whoever speaks."""

_CHANGEABLE = ("text", "platform", "room", "private", "told_by", "turn_id", "updated_at")
_FIND = sa.select(memories).where(memories.c.id == sa.bindparam("which"))
_CHANGE = (
    sa.update(memories)
    .where(memories.c.id == sa.bindparam("which"))
    .values({name: sa.bindparam(f"new_{name}", type_=memories.c[name].type) for name in _CHANGEABLE})
)
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
        ~sa.exists().where(
            _OF_MEMORIES, vectors.c.key == memories.c.id, vectors.c.model == sa.bindparam("model", type_=EscapedText())
        )
    )
    .order_by(memories.c.position)
    .limit(sa.bindparam("most"))
)


_read_memory = partial(read_record, Memory)


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
        self, *, agent: AgentName | None = None, owner: str | None = None, limit: int = 100
    ) -> Sequence[Memory]:
        statement, bounds = _NEWEST, {"most": max(limit, 0)} | ({} if agent is None else {"whose_agent": agent})
        if agent is not None:
            statement = statement.where(_OF_AGENT)
        if owner is not None:
            statement, bounds = statement.where(_OF_OWNER), bounds | {"whose": owner}
        return await self._list(_read_memory, statement, bounds)

    async def change(self, memory: Memory) -> bool:
        dialect, row = self._dialect, write_record(memory)
        bounds = {"which": memory.id} | {f"new_{name}": row[name] for name in _CHANGEABLE}

        def job(connection: sa.Connection) -> bool:
            _forget_vectors(connection, dialect, [memory.id])
            return connection.execute(_CHANGE, bounds).rowcount == 1

        return await self._transaction.write(job)

    async def remove(self, memory_ids: Collection[str]) -> int:
        dialect, ids = self._dialect, sorted(set(memory_ids))
        return await self._transaction.write(lambda connection: _forget(connection, dialect, ids))

    async def forget_teller(self, principal: str) -> int:
        def job(connection: sa.Connection) -> int:
            ids = connection.execute(_TOLD_BY, {"teller": principal}).scalars().all()
            return _forget(connection, self._dialect, ids)

        return await self._transaction.write(job)

    async def list_without_vector(self, model: str, *, limit: int) -> Sequence[Memory]:
        bounds = {"model": model, "most": max(limit, 0)}
        return await self._list(_read_memory, _WITHOUT_VECTOR, bounds)


def _forget(connection: sa.Connection, dialect: SqlDialect, ids: Sequence[str]) -> int:
    if not ids:
        return 0
    _forget_vectors(connection, dialect, ids)
    return connection.execute(_remove(dialect), {"chosen": dialect.bind_list(ids)}).rowcount


def _forget_vectors(connection: sa.Connection, dialect: SqlDialect, ids: Sequence[str]) -> None:
    connection.execute(_remove_vectors(dialect), {"chosen": dialect.bind_list([escape(key) for key in ids])})
