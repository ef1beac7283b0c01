"""Which posts need a vector, in the memory store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from denizen.domain.mirror import loses_meaning, says_something
from denizen.domain.room import Post
from denizen.domain.words import words_of
from denizen.ports.archive import POST_VECTORS, PendingEmbeddings, post_vector_key, room_namespace
from denizen.ports.memory import StoredVector
from denizen.testing.memory_unit import Unit


def drop_vectors(unit: Unit, platform: str, post_ids: Iterable[str]) -> None:
    """Those of any model."""
    rows, gone = unit.tables.vectors, {post_vector_key(platform, key) for key in post_ids}
    unit.remove(rows, *[key for key in rows if key[0] == POST_VECTORS and key[1] in gone])


class MemoryPostMeanings:
    """`denizen.ports.archive.PostEmbeddingRepository`. There are few posts here: all are looked at each time."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def find_missing(self, model: str, *, limit: int) -> PendingEmbeddings:
        rows = self._unit.tables.vectors
        missing = [
            post
            for post in self._unit.tables.posts.values()
            if post.deleted_at is None
            and says_something(words_of(post.text))
            and (POST_VECTORS, post_vector_key(post.platform, post.id), model) not in rows
        ]
        return PendingEmbeddings(model, missing[: max(limit, 0)], 0, is_end=not missing)

    async def put(self, missing: PendingEmbeddings, vectors: Sequence[bytes]) -> int:
        self._unit.check_writes()
        pairs = [(post, data) for post, data in zip(missing.posts, vectors, strict=True) if self._is_same(post)]
        for post, data in pairs:
            key = post_vector_key(post.platform, post.id)
            row = StoredVector(POST_VECTORS, room_namespace(post.platform, post.room), key, missing.model, data)
            self._unit.put(self._unit.tables.vectors, (POST_VECTORS, key, missing.model), row)
        return len(pairs)

    async def remove_others(self, model: str, *, limit: int) -> int:
        self._unit.check_writes()
        rows = self._unit.tables.vectors
        others = [key for key in rows if key[0] == POST_VECTORS and key[2] != model][: max(limit, 0)]
        self._unit.remove(rows, *others)
        return len(others)

    async def count(self, model: str) -> int:
        return sum(1 for key in self._unit.tables.vectors if key[0] == POST_VECTORS and key[2] == model)

    def _is_same(self, post: Post) -> bool:
        now = self._unit.tables.posts.get((post.platform, post.id))
        return now is not None and not loses_meaning(post, now)
