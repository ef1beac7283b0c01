"""The ports of memories, and of the vectors by which texts are found. Part of a unit of work.

Vectors belong to a collection of texts (memories, passages, posts) and to a namespace: a search looks into one or more
namespaces of one collection.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from denizen.domain.ids import AgentName
from denizen.domain.memory import Memory
from denizen.domain.record import record
from denizen.domain.vector import VectorMatch

MEMORY_VECTORS = "memory"
"""The collection of the vectors of memories; their keys are the memories' ids. Superseding or removing a memory
removes its vectors.
"""


@record(kw_only=True)
class MemorySearch:
    """A search of all memories for people, the newest first. Each of `words` stands in the text or in the owner's key,
    whatever its case. `owner` may be `CORE`; None means everybody. `first` is how many of the found are passed over.
    """

    words: str = ""
    agent: AgentName | None = None
    owner: str | None = None
    history: bool = False
    private: bool = True
    first: int = 0
    limit: int = 25


class MemoryRepository(Protocol):
    """The memories of agents."""

    async def add(self, memory: Memory) -> bool:
        """Adds the memory. False, and nothing changes, when its id exists."""
        ...

    async def find(self, memory_id: str) -> Memory | None: ...

    async def list_memories(
        self,
        *,
        agent: AgentName | None = None,
        owner: str | None = None,
        since: datetime | None = None,
        history: bool = False,
        limit: int = 100,
    ) -> Sequence[Memory]:
        """Returns memories, newest first, without those that were superseded. `owner` may be `CORE`; None means every
        owner. With `since` those that were superseded later than that are there too, with `history` all of them.
        """
        ...

    async def search(self, wanted: MemorySearch) -> Sequence[Memory]: ...

    async def count(self, wanted: MemorySearch) -> int:
        """Returns how many the search has in all."""
        ...

    async def supersede(self, memory_ids: Collection[str], *, by: str, at: datetime) -> int:
        """Writes that another memory is told instead of these, and of what they had superseded themselves, and removes
        their vectors. Returns how many of them counted until then.
        """
        ...

    async def remove(self, memory_ids: Collection[str]) -> int:
        """Removes the memories, what they superseded, and the vectors. Returns how many there were."""
        ...

    async def forget_teller(self, principal: str) -> int:
        """Removes, for all agents, the memories of that principal key and those that it told to everybody."""
        ...

    async def list_without_vector(self, model: str, *, limit: int) -> Sequence[Memory]:
        """Returns memories without a vector of the model, oldest first."""
        ...


@record
class StoredVector:
    """The embedding of one text. `key` is unique in the collection; `data` is packed by `domain.vector.pack`."""

    collection: str
    namespace: str
    key: str
    model: str
    data: bytes


class VectorRepository(Protocol):
    """The embeddings of texts, searched by similarity."""

    async def put(self, vectors: Sequence[StoredVector]) -> None:
        """Stores vectors. Each replaces the one with the same collection, key and model."""
        ...

    async def list_vectors(self, collection: str, keys: Collection[str], model: str) -> Mapping[str, bytes]:
        """Returns the data of those of these vectors that there are, by key."""
        ...

    async def find_nearest(
        self, collection: str, namespaces: Collection[str], model: str, query: bytes, *, limit: int
    ) -> Sequence[VectorMatch]:
        """Returns the nearest vectors of that model in these namespaces, nearest first."""
        ...

    async def remove_other_models(self, collection: str, model: str) -> int:
        """Removes the collection's vectors of all other models. Returns how many there were."""
        ...
