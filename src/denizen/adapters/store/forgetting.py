"""Removing posts for good: with their earlier texts, their words in the index, their vectors, their copies in
sessions, and the summaries in which those were.

A piece at a time, so that no statement runs long however much there is. Called by `archive`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, JsonText, UtcTime, escape, write_id
from denizen.adapters.store.dialect import Dialect
from denizen.adapters.store.meanings import drop_meanings, lower_mark
from denizen.adapters.store.summaries import drop_summaries
from denizen.adapters.store.tables.archive import THERE, posts, rooms
from denizen.adapters.store.tables.talk import conversations, messages
from denizen.domain.message import parts_to_json
from denizen.domain.mirror import FORGOTTEN
from denizen.ports.archive import AuthorCount

PIECE = 500
"""So many rows go in one statement."""

_NONE: sa.ColumnClause[str] = sa.literal_column("''")
"""Not a parameter: the partial indexes are taken only where a statement says what they say."""

_ON = posts.c.platform == sa.bindparam("where")
_THERE = messages.c.conversation_id.in_(
    sa.select(conversations.c.id).where(conversations.c.platform == sa.bindparam("where", type_=EscapedText()))
)
_BLANK: dict[str, Any] = {
    "parts": sa.bindparam("blank", parts_to_json(FORGOTTEN), type_=JsonText()),
    "meta": sa.bindparam("nothing", dict[str, object](), type_=JsonText()),
    "words": "",
}

_some = sa.select(posts.c.id).where(_ON).limit(PIECE)
_OF_AUTHOR = _some.where(posts.c.author_id == sa.bindparam("whose"))
_OF_PARENT = _some.where(posts.c.parent == sa.bindparam("parent"), posts.c.parent != _NONE)
_OLDEST = (
    sa.select(posts.c.id)
    .where(_ON, posts.c.created_at < sa.bindparam("until", type_=UtcTime()))
    .order_by(posts.c.created_at, posts.c.id)
    .limit(sa.bindparam("limit"))
)
_THREADS = sa.select(rooms.c.id).where(rooms.c.platform == sa.bindparam("where"), rooms.c.parent == sa.bindparam("of"))
_SAID_BY_AUTHOR = (
    sa.select(messages.c.position)
    .where(messages.c.author_id == sa.bindparam("whose"), messages.c.author_id != _NONE, _THERE)
    .where(sa.or_(messages.c.parts != _BLANK["parts"], messages.c.words != ""))
    .limit(PIECE)
)
_OF_SPEAKER = sa.and_(messages.c.author_id == sa.bindparam("whose"), messages.c.author_id != _NONE, _THERE)
_BLANK_AUTHOR = sa.update(messages).where(messages.c.position.in_(_SAID_BY_AUTHOR)).values(_BLANK)


_POSTS_OF = sa.select(sa.func.count()).where(
    _ON, posts.c.author_id == sa.bindparam("whose"), posts.c.author_id != _NONE
)
_MESSAGES_OF = (
    sa.select(sa.func.count())
    .where(messages.c.author_id == sa.bindparam("whose"), messages.c.author_id != _NONE, _THERE)
    .where(messages.c.parts != _BLANK["parts"])
)


def count_author(connection: sa.Connection, platform: str, author_id: str) -> AuthorCount:
    """What `forget_author` would reach."""
    bounds = {"where": platform, "whose": author_id}
    return AuthorCount(
        connection.execute(_POSTS_OF, bounds).scalar_one(), connection.execute(_MESSAGES_OF, bounds).scalar_one()
    )


@cache
def _copies(dialect: Dialect) -> sa.ColumnElement[bool]:
    return sa.and_(dialect.among(messages.c.platform_id, "chosen"), messages.c.platform_id != _NONE, _THERE)


@cache
def _blank(dialect: Dialect) -> sa.Update:
    return sa.update(messages).where(_copies(dialect)).values(_BLANK)


@cache
def _remove(dialect: Dialect) -> sa.Delete:
    return sa.delete(posts).where(_ON, dialect.among(posts.c.id, "chosen"))


@cache
def _of_rooms(dialect: Dialect) -> sa.Select[Any]:
    return _some.where(dialect.among(posts.c.room, "rooms"))


def forget_posts(connection: sa.Connection, dialect: Dialect, platform: str, ids: Sequence[str]) -> int:
    """Also the copies of those that are not in the archive."""
    gone = 0
    for start in range(0, len(ids), PIECE):
        piece = ids[start : start + PIECE]
        copies = {"where": platform, "chosen": dialect.list_of([escape(key) for key in piece])}
        drop_summaries(connection, _copies(dialect), copies, locks_rows=dialect.locks_rows)
        connection.execute(_blank(dialect), copies)
        kept = {"where": platform, "chosen": dialect.list_of([write_id(key) for key in piece])}
        gone += connection.execute(_remove(dialect), kept).rowcount
        drop_meanings(connection, dialect, platform, piece)
        lower_mark(connection, dialect)
    return gone


def forget_author(connection: sa.Connection, dialect: Dialect, platform: str, author_id: str) -> int:
    """Also what they said in sessions without being archived."""
    which = {"where": platform, "whose": author_id}
    drop_summaries(connection, _OF_SPEAKER, which, locks_rows=dialect.locks_rows)
    while connection.execute(_BLANK_AUTHOR, which).rowcount == PIECE:
        pass
    return _forget_all(connection, dialect, _OF_AUTHOR, which)


def list_room_posts(
    connection: sa.Connection, dialect: Dialect, platform: str, room_id: str, limit: int
) -> Sequence[str]:
    """Ids of some posts of a room and its threads that are not deleted."""
    if not room_id or limit < 1:
        return []
    for some, which in _room_posts(connection, dialect, platform, room_id):
        left = connection.execute(some.where(THERE).limit(limit), which).scalars().all()
        if left:
            return left
    return []


def forget_room(connection: sa.Connection, dialect: Dialect, platform: str, room_id: str) -> int:
    """With its threads."""
    if not room_id:  # which would be the parent of every channel
        return 0
    found = _room_posts(connection, dialect, platform, room_id)
    return sum(_forget_all(connection, dialect, some, which) for some, which in found)


def forget_before(connection: sa.Connection, dialect: Dialect, platform: str, before: datetime, limit: int) -> int:
    """The oldest first."""
    oldest = connection.execute(_OLDEST, {"where": platform, "until": before, "limit": max(limit, 0)}).scalars().all()
    return forget_posts(connection, dialect, platform, oldest)


def _room_posts(
    connection: sa.Connection, dialect: Dialect, platform: str, room_id: str
) -> Sequence[tuple[sa.Select[Any], dict[str, Any]]]:
    """Statements for pieces of them, as the posts name their channel and as the rooms do."""
    threads = connection.execute(_THREADS, {"where": platform, "of": room_id}).scalars().all()
    chosen = dialect.list_of([escape(key) for key in (room_id, *threads)])
    return [
        (_of_rooms(dialect), {"where": platform, "rooms": chosen}),
        (_OF_PARENT, {"where": platform, "parent": room_id}),
    ]


def _forget_all(connection: sa.Connection, dialect: Dialect, some: sa.Select[Any], which: dict[str, Any]) -> int:
    gone = 0
    while piece := connection.execute(some, which).scalars().all():
        gone += forget_posts(connection, dialect, which["where"], piece)
    return gone
