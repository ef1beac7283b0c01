"""Posts found by words, and counted. Called by `archive`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText
from denizen.adapters.store.dialect import Dialect
from denizen.adapters.store.posts import post_of
from denizen.adapters.store.tables.archive import THERE, posts
from denizen.domain.words import excerpt_of
from denizen.ports.archive import CountBy, PostCount, PostHit

EVER = datetime(1, 1, 2, tzinfo=UTC)
NEVER = datetime(9999, 12, 30, tzinfo=UTC)
"""Bounds of time that bound nothing, a day from what can be written, so that any zone can show them."""

_ON = posts.c.platform == sa.bindparam("where")
_TOTAL = sa.select(sa.func.count()).select_from(posts).where(_ON, THERE)


@cache
def _count(dialect: Dialect, by: CountBy) -> sa.Executable:
    key = {
        CountBy.ROOM: posts.c.room,
        # An expression, so that SQLite does not take the index of authors for grouping, and read every post there is.
        CountBy.AUTHOR: sa.func.coalesce(posts.c.author_id, sa.literal_column("''"), type_=EscapedText()),
        CountBy.DAY: dialect.day_of(posts.c.created_at),
    }[by].label("key")
    number = sa.func.count().label("posts")
    counted = (
        sa.select(key, number)
        .where(_ON, dialect.among(posts.c.room, "rooms"), THERE, posts.c.created_at >= sa.bindparam("since"))
        .group_by(key)
        .order_by(*([key.desc()] if by is CountBy.DAY else [number.desc(), key]))
        .limit(sa.bindparam("limit"))
    )
    return counted if by is not CountBy.AUTHOR else _named(counted.subquery())


def _named(counted: sa.Subquery) -> sa.Executable:
    """With the name under which each author wrote last."""
    name = (
        sa.select(posts.c.author_name)
        .where(_ON, posts.c.author_id == counted.c.key, THERE)
        .order_by(posts.c.id.desc())
        .limit(1)
        .scalar_subquery()
    )
    return sa.select(counted.c.key, counted.c.posts, name.label("name")).order_by(counted.c.posts.desc(), counted.c.key)


def search_posts(
    connection: sa.Connection, dialect: Dialect, wanted: Sequence[str], bounds: dict[str, Any]
) -> list[PostHit]:
    """`bounds` are the parameters of `Dialect.search_posts`."""
    found = [post_of(row) for row in connection.execute(dialect.search_posts, bounds).all()]
    return [PostHit(post, excerpt_of(post.text, wanted)) for post in found]


def count_posts(connection: sa.Connection, dialect: Dialect, by: CountBy, bounds: dict[str, Any]) -> list[PostCount]:
    """`bounds` are `where`, `rooms`, `since` and `limit`."""
    rows = connection.execute(_count(dialect, by), bounds)
    return [PostCount(row.key, row.name if by is CountBy.AUTHOR else "", row.posts) for row in rows]


def total_posts(connection: sa.Connection, platform: str) -> int:
    """Without those that were deleted."""
    return connection.execute(_TOTAL, {"where": platform}).scalar_one()
