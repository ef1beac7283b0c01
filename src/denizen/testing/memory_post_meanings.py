"""Which posts need a vector, in the memory store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from denizen.domain.mirror import loses_meaning, says_something
from denizen.domain.room import Post
from denizen.domain.words import split_words
from denizen.ports.archive import POSTS, MissingMeanings, key_of, shelf_of
from denizen.ports.memory import Vector
from denizen.testing.memory_unit import Unit


def drop_vectors(unit: Unit, platform: str, post_ids: Iterable[str]) -> None:
    """Those of any model."""
    rows, gone = unit.tables.vectors, {key_of(platform, key) for key in post_ids}
    unit.remove(rows, *[key for key in rows if key[0] == POSTS and key[1] in gone])


class MemoryPostMeanings:
    """`denizen.ports.archive.PostMeanings`. There are few posts here: all are looked at each time."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def find_missing(self, model: str, *, limit: int) -> MissingMeanings:
        rows = self._unit.tables.vectors
        missing = [
            post
            for post in self._unit.tables.posts.values()
            if post.deleted_at is None
            and says_something(split_words(post.text))
            and (POSTS, key_of(post.platform, post.id), model) not in rows
        ]
        return MissingMeanings(model, missing[: max(limit, 0)], 0, is_end=not missing)

    async def put(self, missing: MissingMeanings, vectors: Sequence[bytes]) -> int:
        self._unit.check_writes()
        pairs = [(post, data) for post, data in zip(missing.posts, vectors, strict=True) if self._is_same(post)]
        for post, data in pairs:
            key = key_of(post.platform, post.id)
            row = Vector(POSTS, shelf_of(post.platform, post.room), key, missing.model, data)
            self._unit.put(self._unit.tables.vectors, (POSTS, key, missing.model), row)
        return len(pairs)

    async def remove_others(self, model: str, *, limit: int) -> int:
        self._unit.check_writes()
        rows = self._unit.tables.vectors
        others = [key for key in rows if key[0] == POSTS and key[2] != model][: max(limit, 0)]
        self._unit.remove(rows, *others)
        return len(others)

    async def count(self, model: str) -> int:
        return sum(1 for key in self._unit.tables.vectors if key[0] == POSTS and key[2] == model)

    def _is_same(self, post: Post) -> bool:
        now = self._unit.tables.posts.get((post.platform, post.id))
        return now is not None and not loses_meaning(post, now)
