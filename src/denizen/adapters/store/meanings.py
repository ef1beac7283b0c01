"""Vectors of posts go with what they were made of: in the same transaction, whatever changes or removes a post.

Here is also the note of how far posts were looked at, in the order in which they arrived: `POSITION MODEL`. Called by
`posts` and `forgetting`; making new ones begins in `post_meanings`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

import sqlalchemy as sa

from denizen.adapters.store.columns import escape, write_id
from denizen.adapters.store.dialect import Dialect, InsertInto
from denizen.adapters.store.tables.documents import indexed
from denizen.adapters.store.tables.archive import posts, reworded
from denizen.adapters.store.tables.memory import vectors
from denizen.ports.archive import POSTS, key_of

_ADD_REWORDED = sa.insert(reworded)
_PROGRESS = sa.select(indexed.c.state).where(indexed.c.collection == POSTS)
_LAST_POSITION = sa.select(sa.func.coalesce(sa.func.max(posts.c.position), 0))


@cache
def _set_progress(insert: InsertInto) -> sa.Executable:
    statement = insert(indexed).values(collection=POSTS, state=sa.bindparam("state"))
    return statement.on_conflict_do_update(
        index_elements=[indexed.c.collection], set_={"state": statement.excluded.state}
    ).inline()


@cache
def _drop_vectors(dialect: Dialect) -> sa.Delete:
    return sa.delete(vectors).where(vectors.c.collection == POSTS, dialect.among(vectors.c.key, "keys"))


@cache
def _drop_reworded(dialect: Dialect) -> sa.Delete:
    those = sa.select(posts.c.position).where(
        posts.c.platform == sa.bindparam("where"), dialect.among(posts.c.id, "chosen")
    )
    return sa.delete(reworded).where(reworded.c.post.in_(those))


def drop_meanings(connection: sa.Connection, dialect: Dialect, platform: str, ids: Iterable[str]) -> None:
    """Their vectors of any model, and the note that new ones are needed. After the posts themselves were written, so
    that two who do it wait for each other there.
    """
    those = sorted(set(ids))
    keys = [escape(key_of(platform, key)) for key in those]
    connection.execute(_drop_vectors(dialect), {"keys": dialect.list_of(keys)})
    settle_reworded(connection, dialect, platform, those)


def settle_reworded(connection: sa.Connection, dialect: Dialect, platform: str, ids: Sequence[str]) -> None:
    """No new vectors are needed any more."""
    bounds = {"where": platform, "chosen": dialect.list_of([write_id(key) for key in ids])}
    connection.execute(_drop_reworded(dialect), bounds)


def note_reworded(connection: sa.Connection, positions: Sequence[int]) -> None:
    """New ones are needed, after `drop_meanings`."""
    if positions:
        connection.execute(_ADD_REWORDED, [{"post": position} for position in positions])


def read_mark(connection: sa.Connection) -> tuple[int, str]:
    """How far it came, and with which model, as the database writes that; 0 and empty before the first."""
    reached, _, model = (connection.execute(_PROGRESS).scalar() or "0 ").partition(" ")
    return int(reached), model


def write_mark(connection: sa.Connection, dialect: Dialect, reached: int, model: str) -> None:
    connection.execute(_set_progress(dialect.insert), {"state": f"{reached} {model}"})


def lower_mark(connection: sa.Connection, dialect: Dialect) -> None:
    """After posts were removed: SQLite gives the positions of the last ones to the next that arrive."""
    reached, model = read_mark(connection)
    last = connection.execute(_LAST_POSITION).scalar_one() if reached else 0
    if last < reached:
        write_mark(connection, dialect, last, model)
