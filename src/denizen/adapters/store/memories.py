"""The memories of agents."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, UtcTime, escape, metadata, position_column
from denizen.adapters.store.dialect import InsertInto, SqlDialect
from denizen.adapters.store.transaction import Transaction
from denizen.adapters.store.vectors import vectors
from denizen.domain.ids import AgentName
from denizen.domain.memory import Memory, MemoryOrigin
from denizen.ports.memory import MEMORY_VECTORS

memories = sa.Table(
    "memories",
    metadata,
    position_column(),
    sa.Column("id", sa.Text(), nullable=False, unique=True),
    sa.Column("agent", EscapedText(), nullable=False),
    sa.Column("owner", EscapedText(), nullable=False),
    sa.Column("text", EscapedText(), nullable=False),
    sa.Column("platform", EscapedText(), nullable=False),
    sa.Column("room", EscapedText(), nullable=False),
    sa.Column("private", sa.Boolean(), nullable=False),
    sa.Column("told_by", EscapedText(), nullable=False),
    sa.Column("turn_id", sa.Text(), nullable=False),
    sa.Column("created_at", UtcTime(), nullable=False),
    sa.Column("updated_at", UtcTime(), nullable=False),
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


@cache
def _add(insert: InsertInto) -> sa.Executable:
    given: dict[str, Any] = {c.name: sa.bindparam(c.name) for c in memories.c if c.name != "position"}
    return insert(memories).values(given).on_conflict_do_nothing().returning(memories.c.position)


@cache
def _remove(dialect: SqlDialect) -> sa.Delete:
    return sa.delete(memories).where(dialect.among(memories.c.id, "chosen"))


@cache
def _remove_vectors(dialect: SqlDialect) -> sa.Delete:
    return sa.delete(vectors).where(_OF_MEMORIES, dialect.among(vectors.c.key, "chosen"))


class SqlMemories:
    """Implements `denizen.ports.memory.MemoryRepository`."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    async def add(self, memory: Memory) -> bool:
        add, row = _add(self._transaction.dialect.insert), _row(memory)
        return await self._transaction.write(lambda connection: connection.execute(add, row).scalar() is not None)

    async def find(self, memory_id: str) -> Memory | None:
        row = await self._transaction.read(lambda connection: connection.execute(_FIND, {"which": memory_id}).first())
        return None if row is None else _memory(row)

    async def list_memories(
        self, *, agent: AgentName | None = None, owner: str | None = None, limit: int = 100
    ) -> Sequence[Memory]:
        statement, bounds = _NEWEST, {"most": max(limit, 0)} | ({} if agent is None else {"whose_agent": agent})
        if agent is not None:
            statement = statement.where(_OF_AGENT)
        if owner is not None:
            statement, bounds = statement.where(_OF_OWNER), bounds | {"whose": owner}
        return await self._transaction.read(
            lambda connection: [_memory(row) for row in connection.execute(statement, bounds)]
        )

    async def change(self, memory: Memory) -> bool:
        dialect, row = self._transaction.dialect, _row(memory)
        bounds = {"which": memory.id} | {f"new_{name}": row[name] for name in _CHANGEABLE}

        def job(connection: sa.Connection) -> bool:
            _forget_vectors(connection, dialect, [memory.id])
            return connection.execute(_CHANGE, bounds).rowcount == 1

        return await self._transaction.write(job)

    async def remove(self, memory_ids: Collection[str]) -> int:
        dialect, ids = self._transaction.dialect, sorted(set(memory_ids))
        return await self._transaction.write(lambda connection: _forget(connection, dialect, ids))

    async def forget_teller(self, principal: str) -> int:
        dialect = self._transaction.dialect

        def job(connection: sa.Connection) -> int:
            ids = connection.execute(_TOLD_BY, {"teller": principal}).scalars().all()
            return _forget(connection, dialect, ids)

        return await self._transaction.write(job)

    async def list_without_vector(self, model: str, *, limit: int) -> Sequence[Memory]:
        bounds = {"model": model, "most": max(limit, 0)}
        return await self._transaction.read(
            lambda connection: [_memory(row) for row in connection.execute(_WITHOUT_VECTOR, bounds)]
        )


def _forget(connection: sa.Connection, dialect: SqlDialect, ids: Sequence[str]) -> int:
    if not ids:
        return 0
    _forget_vectors(connection, dialect, ids)
    return connection.execute(_remove(dialect), {"chosen": dialect.bind_list(ids)}).rowcount


def _forget_vectors(connection: sa.Connection, dialect: SqlDialect, ids: Sequence[str]) -> None:
    connection.execute(_remove_vectors(dialect), {"chosen": dialect.bind_list([escape(key) for key in ids])})


def _row(memory: Memory) -> dict[str, Any]:
    return {
        "id": memory.id,
        "agent": memory.agent,
        "owner": memory.owner,
        "text": memory.text,
        "platform": memory.told_at.platform,
        "room": memory.told_at.room,
        "private": memory.told_at.private,
        "told_by": memory.told_by,
        "turn_id": memory.turn_id,
        "created_at": memory.created_at,
        "updated_at": memory.updated_at,
    }


def _memory(row: sa.Row[Any]) -> Memory:
    return Memory(
        id=row.id,
        agent=row.agent,
        owner=row.owner,
        text=row.text,
        told_at=MemoryOrigin(row.platform, row.room, row.private),
        told_by=row.told_by,
        created_at=row.created_at,
        updated_at=row.updated_at,
        turn_id=row.turn_id,
    )
