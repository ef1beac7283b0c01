"""What agents keep in mind, and vectors, in the memory store."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from denizen.domain.ids import AgentName
from denizen.domain.memory import Memory
from denizen.domain.vector import Near, find_nearest
from denizen.ports.memory import MEMORY_VECTORS, StoredVector
from denizen.testing.memory_unit import Unit, in_utc


class MemoryMemories:
    """`denizen.ports.memory.MemoryRepository`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def add(self, memory: Memory) -> bool:
        self._unit.check_writes()
        rows = self._unit.tables.memories
        if memory.id in rows:
            return False
        times = {"created_at": in_utc(memory.created_at), "updated_at": in_utc(memory.updated_at)}
        self._unit.put(rows, memory.id, replace(memory, **times))
        return True

    async def find(self, memory_id: str) -> Memory | None:
        return self._unit.tables.memories.get(memory_id)

    async def list_memories(
        self, *, agent: AgentName | None = None, owner: str | None = None, limit: int = 100
    ) -> Sequence[Memory]:
        rows = [*self._unit.tables.memories.values()][::-1]
        found = [row for row in rows if agent in {None, row.agent} and owner in {None, row.owner}]
        return found[: max(limit, 0)]

    async def change(self, memory: Memory) -> bool:
        self._unit.check_writes()
        rows = self._unit.tables.memories
        self._forget_vectors({memory.id})
        if memory.id not in rows:
            return False
        new = replace(
            rows[memory.id],
            text=memory.text,
            told_at=memory.told_at,
            told_by=memory.told_by,
            turn_id=memory.turn_id,
            updated_at=in_utc(memory.updated_at),
        )
        self._unit.put(rows, memory.id, new)
        return True

    async def remove(self, memory_ids: Collection[str]) -> int:
        self._unit.check_writes()
        rows = self._unit.tables.memories
        there = {key for key in memory_ids if key in rows}
        self._forget_vectors(there)
        self._unit.remove(rows, *there)
        return len(there)

    async def forget_teller(self, principal: str) -> int:
        rows = self._unit.tables.memories.values()
        return await self.remove([m.id for m in rows if m.told_by == principal or m.owner == principal != ""])

    async def list_without_vector(self, model: str, *, limit: int) -> Sequence[Memory]:
        tables = self._unit.tables
        rows = [row for row in tables.memories.values() if (MEMORY_VECTORS, row.id, model) not in tables.vectors]
        return rows[: max(limit, 0)]

    def _forget_vectors(self, ids: Collection[str]) -> None:
        rows = self._unit.tables.vectors
        self._unit.remove(rows, *[key for key in rows if key[0] == MEMORY_VECTORS and key[1] in ids])


class MemoryVectors:
    """`denizen.ports.memory.VectorRepository`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def put(self, vectors: Sequence[StoredVector]) -> None:
        self._unit.check_writes()
        for each in vectors:
            self._unit.put(self._unit.tables.vectors, (each.collection, each.key, each.model), each)

    async def find_nearest(
        self, collection: str, namespaces: Collection[str], model: str, query: bytes, *, limit: int
    ) -> Sequence[Near]:
        rows = self._unit.tables.vectors.values()
        those = [
            row for row in rows if (row.collection, row.model) == (collection, model) and row.namespace in namespaces
        ]
        return find_nearest(query, ((row.key, row.data) for row in those), limit=limit)

    async def remove_other_models(self, collection: str, model: str) -> int:
        self._unit.check_writes()
        rows = self._unit.tables.vectors
        others = [key for key in rows if key[0] == collection and key[2] != model]
        self._unit.remove(rows, *others)
        return len(others)
