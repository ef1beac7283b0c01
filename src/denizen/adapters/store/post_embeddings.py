"""Posts that still need a vector: edited ones first, then the others in the order in which they arrived.

The position up to which posts were looked at is stored, so that only new ones are read. A post may turn up behind that
position: when several processes write at once, and when the position of a forgotten post is used again. So the search
looks at the last posts once more in the end. Removing vectors with their posts is in `posts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import groupby
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, escape
from denizen.adapters.store.dialect import SqlDialect
from denizen.adapters.store.posts import (
    POST_COLUMNS,
    clear_stale,
    find_posts,
    lock_posts,
    lower_progress,
    parse_post,
    posts,
    read_progress,
    stale_embeddings,
    write_progress,
)
from denizen.adapters.store.repository import SqlRepository
from denizen.adapters.store.vectors import SqlVectors, vectors
from denizen.domain.mirror import loses_embedding, says_something
from denizen.domain.room import Post
from denizen.ports.archive import POST_VECTORS, PendingEmbeddings, post_vector_key, room_namespace
from denizen.ports.memory import StoredVector

SCANNED = 200
"""The number of posts that one search looks at."""
LOOKED_BACK = 200

_IN = vectors.c.collection == POST_VECTORS
_MODEL = sa.bindparam("model", type_=EscapedText())
_STALE = (
    sa.select(*POST_COLUMNS)
    .join(stale_embeddings, stale_embeddings.c.post == posts.c.position)
    .order_by(stale_embeddings.c.post)
    .limit(sa.bindparam("most"))
)
_ARRIVED = (
    sa.select(posts.c.position, posts.c.platform, posts.c.id, posts.c.deleted_at, posts.c.words)
    .where(posts.c.position > sa.bindparam("after", type_=sa.BigInteger()))
    .order_by(posts.c.position)
    .limit(sa.bindparam("most"))
)
_COUNT = sa.select(sa.func.count()).select_from(vectors).where(_IN, vectors.c.model == _MODEL)
_OTHERS = [
    sa.select(vectors.c.position).where(_IN, those).limit(sa.bindparam("most"))
    for those in (vectors.c.model < _MODEL, vectors.c.model > _MODEL)
]
"""Two statements instead of `!=`, so that each reads one range of the index."""
_REMOVE = sa.delete(vectors).where(vectors.c.position == sa.bindparam("which", type_=sa.BigInteger()))


@cache
def _having(dialect: SqlDialect) -> sa.Select[str]:
    return sa.select(vectors.c.key).where(_IN, vectors.c.model == _MODEL, dialect.among(vectors.c.key, "keys"))


class SqlPostEmbeddings(SqlRepository):
    """Implements `denizen.ports.archive.PostEmbeddingRepository`."""

    async def find_missing(self, model: str, *, limit: int) -> PendingEmbeddings:
        def job(connection: sa.Connection) -> PendingEmbeddings:
            reached, of_model = read_progress(connection)
            reached = reached if of_model == escape(model) else 0
            edited = [parse_post(row) for row in connection.execute(_STALE, {"most": limit})]
            if edited:
                return PendingEmbeddings(model, edited, reached, is_end=False)
            found = _scan(connection, self._dialect, model, after=reached, most=SCANNED, limit=limit)
            if not found.is_end:
                return found
            behind = max(reached - LOOKED_BACK, 0)
            late = _scan(connection, self._dialect, model, after=behind, most=LOOKED_BACK, limit=limit)
            return PendingEmbeddings(model, late.posts, reached, is_end=not late.posts)

        return await self._transaction.read(job)

    async def put(self, missing: PendingEmbeddings, vectors: Sequence[bytes]) -> int:
        def job(connection: sa.Connection) -> list[StoredVector]:
            # Only posts that did not change meanwhile. They are no longer stale, since they get their vectors now.
            same: dict[str, tuple[str, str]] = {}
            for platform in sorted({post.platform for post in missing.posts}):
                theirs = {post.id: post for post in missing.posts if post.platform == platform}
                now = lock_posts(connection, self._dialect, platform, list(theirs))
                kept = [key for key, post in now.items() if not loses_embedding(theirs[key], post)]
                clear_stale(connection, self._dialect, platform, kept)
                same |= {post_vector_key(platform, key): (platform, now[key].room) for key in kept}
            write_progress(connection, self._dialect, missing.reached, escape(missing.model))
            lower_progress(connection, self._dialect)  # posts may have been forgotten meanwhile
            return [
                StoredVector(POST_VECTORS, room_namespace(*same[key]), key, missing.model, data)
                for post, data in zip(missing.posts, vectors, strict=True)
                if (key := post_vector_key(post.platform, post.id)) in same
            ]

        rows = await self._transaction.write(job)
        await SqlVectors(self._transaction).put(rows)
        return len(rows)

    async def remove_others(self, model: str, *, limit: int) -> int:
        bounds, dialect = {"model": model, "most": limit}, self._dialect

        def job(connection: sa.Connection) -> int:
            if read_progress(connection)[1] not in {"", escape(model)}:
                write_progress(connection, dialect, 0, "")
            found = [place for some in _OTHERS for place in connection.execute(some, bounds).scalars()]
            if found:
                connection.execute(_REMOVE, [{"which": place} for place in found])
            return len(found)

        return await self._transaction.write(job)

    async def count(self, model: str) -> int:
        return await self._transaction.read(
            lambda connection: connection.execute(_COUNT, {"model": model}).scalar_one()
        )


def _scan(
    connection: sa.Connection, dialect: SqlDialect, model: str, *, after: int, most: int, limit: int
) -> PendingEmbeddings:
    rows = connection.execute(_ARRIVED, {"after": after, "most": most}).all()
    wanted = {
        post_vector_key(row.platform, row.id): row
        for row in rows
        if row.deleted_at is None and says_something(row.words.split(" "))
    }
    bounds = {"model": model, "keys": dialect.bind_list([escape(key) for key in wanted])}
    there = set(connection.execute(_having(dialect), bounds).scalars()) if wanted else set[str]()
    missing = [row for key, row in wanted.items() if key not in there]
    reached = missing[limit - 1].position if len(missing) >= limit else rows[-1].position if rows else after
    return PendingEmbeddings(model, _load(connection, dialect, missing[:limit]), reached, is_end=not rows)


def _load(connection: sa.Connection, dialect: SqlDialect, rows: Sequence[sa.Row[*tuple[Any, ...]]]) -> list[Post]:
    found: list[Post] = []
    for platform, some in groupby(rows, key=lambda row: row.platform):
        found += find_posts(connection, dialect, platform, [row.id for row in some])
    return found
