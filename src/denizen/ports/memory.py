"""Memories in the store, and the vectors of what is found by meaning. Part of a unit of work.

Vectors are kept for any collection of texts (memories are the first), on shelves: a shelf is what is searched at once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from denizen.domain.ids import AgentName
from denizen.domain.memory import Memory
from denizen.domain.vector import Near

MEMORIES = "memory"
"""The collection of vectors whose keys are ids of memories. It follows them: what is changed or removed there loses
its vectors."""


class MemoryRepository(Protocol):
    async def add(self, memory: Memory) -> bool:
        """False, and nothing changes, when its id exists."""
        ...

    async def find(self, memory_id: str) -> Memory | None: ...

    async def list_memories(
        self, *, agent: AgentName | None = None, owner: str | None = None, limit: int = 100
    ) -> Sequence[Memory]:
        """Newest first. `owner` may be `CORE`; None is every owner."""
        ...

    async def change(self, memory: Memory) -> bool:
        """Another text, told elsewhere perhaps; what it was made of before has no vectors any more. Owner, agent and
        time of creation stay. False when it is not there.
        """
        ...

    async def remove(self, memory_ids: Collection[str]) -> int:
        """With their vectors. Returns how many were there."""
        ...

    async def forget_teller(self, principal: str) -> int:
        """Everything of that principal's key, with every agent: their own memories, and what they told to all."""
        ...

    async def list_without_vector(self, model: str, *, limit: int) -> Sequence[Memory]:
        """Oldest first."""
        ...


@dataclass(frozen=True, slots=True)
class StoredVector:
    """`key` is unique in the collection; `data` is as `domain/vector.pack` makes it."""

    collection: str
    shelf: str
    key: str
    model: str
    data: bytes


class VectorRepository(Protocol):
    async def put(self, vectors: Sequence[StoredVector]) -> None:
        """Takes the place of what had the same collection, key and model."""
        ...

    async def find_nearest(
        self, collection: str, shelves: Collection[str], model: str, query: bytes, *, limit: int
    ) -> Sequence[Near]:
        """The nearest of that model on these shelves, nearest first. All of them are looked at."""
        ...

    async def remove_other_models(self, collection: str, model: str) -> int:
        """Vectors of any model but this one are of no use any more. Returns how many those were."""
        ...
