"""The mirror of a platform's messages: rooms, the progress of backfills, opt-outs, and removing posts for good.

`SqlArchive` is the repository; reading and writing single posts is in `posts`. Removing goes in pieces, so that no
statement runs long however much there is. A removed post loses its earlier texts, its words in the index, its vectors,
its copies in sessions, and the summaries that were made of those.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache, partial
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import (
    EARLIEST,
    EnumValue,
    EscapedText,
    JsonText,
    UtcTime,
    escape,
    metadata,
    text_keys,
    texts,
    times,
    write_id,
)
from denizen.adapters.store.conversations import conversations
from denizen.adapters.store.dialect import SqlDialect
from denizen.adapters.store.messages import drop_summaries, messages
from denizen.adapters.store.posts import (
    NOT_DELETED,
    count_posts,
    drop_embeddings,
    find_post,
    find_posts,
    list_authors,
    list_newest,
    list_posts,
    list_versions,
    lower_progress,
    mark_deleted,
    posts,
    put_posts,
    search_posts,
    total_posts,
)
from denizen.adapters.store.repository import SqlRepository, insert_rows, read_record, upsert, write_record
from denizen.domain.message import Author, parts_to_json
from denizen.domain.mirror import FORGOTTEN, renew_room
from denizen.domain.room import Post, PostVersion, Room, RoomKind
from denizen.ports.archive import AuthorCount, Backfill, CountBy, OptOutKind, PostCount, PostHit, PostQuery

rooms = sa.Table(
    "rooms",
    metadata,
    *text_keys("platform", "id"),
    *texts("name"),
    sa.Column("kind", EnumValue(RoomKind), nullable=False),
    *texts("guild", "guild_name", "parent", "parent_name", "latest_post"),
    sa.Index("ix_rooms_platform_parent", "platform", "parent"),
)

backfills = sa.Table(
    "backfills",
    metadata,
    *text_keys("platform", "room"),
    *texts("oldest"),
    sa.Column("fetched", sa.BigInteger(), nullable=False),
    sa.Column("is_complete", sa.Boolean(), nullable=False),
)

opt_outs = sa.Table(
    "opt_outs",
    metadata,
    *text_keys("platform"),
    sa.Column("kind", EnumValue(OptOutKind), primary_key=True),
    *text_keys("key"),
    *times("created_at"),
)

_GUILD = sa.bindparam("within", type_=EscapedText())

_ROOM = sa.select(rooms).where(rooms.c.platform == sa.bindparam("where"), rooms.c.id == sa.bindparam("which"))
_ROOMS = (
    sa.select(rooms)
    .where(rooms.c.platform == sa.bindparam("where"), sa.or_(_GUILD == "", rooms.c.guild == _GUILD))
    .order_by(sa.func.length(rooms.c.id), rooms.c.id)
)
_BACKFILL = sa.select(backfills).where(
    backfills.c.platform == sa.bindparam("where"), backfills.c.room == sa.bindparam("which")
)
_BACKFILLS = (
    sa.select(backfills)
    .where(backfills.c.platform == sa.bindparam("where"))
    .order_by(sa.func.length(backfills.c.room), backfills.c.room)
)


_read_room = partial(read_record, Room)
_read_backfill = partial(read_record, Backfill)

PIECE = 500
"""The number of rows in one statement."""

_NONE: sa.ColumnClause[str] = sa.literal_column("''")
"""Not a parameter: a partial index is used only where the statement repeats the index's own condition."""

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
_BY_AUTHOR = _some.where(posts.c.author_id == sa.bindparam("whose"))
_IN_THREADS = _some.where(posts.c.parent == sa.bindparam("parent"), posts.c.parent != _NONE)
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
_BY_SPEAKER = sa.and_(messages.c.author_id == sa.bindparam("whose"), messages.c.author_id != _NONE, _THERE)
_BLANK_AUTHOR = sa.update(messages).where(messages.c.position.in_(_SAID_BY_AUTHOR)).values(_BLANK)


_COUNT_POSTS = sa.select(sa.func.count()).where(
    _ON, posts.c.author_id == sa.bindparam("whose"), posts.c.author_id != _NONE
)
_COUNT_MESSAGES = (
    sa.select(sa.func.count())
    .where(messages.c.author_id == sa.bindparam("whose"), messages.c.author_id != _NONE, _THERE)
    .where(messages.c.parts != _BLANK["parts"])
)


@cache
def _copies(dialect: SqlDialect) -> sa.ColumnElement[bool]:
    return sa.and_(dialect.among(messages.c.platform_id, "chosen"), messages.c.platform_id != _NONE, _THERE)


@cache
def _blank(dialect: SqlDialect) -> sa.Update:
    return sa.update(messages).where(_copies(dialect)).values(_BLANK)


@cache
def _remove(dialect: SqlDialect) -> sa.Delete:
    return sa.delete(posts).where(_ON, dialect.among(posts.c.id, "chosen"))


@cache
def _posts_in_rooms(dialect: SqlDialect) -> sa.Select[Any]:
    return _some.where(dialect.among(posts.c.room, "rooms"))


def forget_posts(connection: sa.Connection, dialect: SqlDialect, platform: str, ids: Sequence[str]) -> int:
    """Removes the posts, and the copies in sessions also of posts that are not archived."""
    gone = 0
    for start in range(0, len(ids), PIECE):
        piece = ids[start : start + PIECE]
        copies = {"where": platform, "chosen": dialect.bind_list([escape(key) for key in piece])}
        drop_summaries(connection, _copies(dialect), copies, locks_rows=dialect.locks_rows)
        connection.execute(_blank(dialect), copies)
        kept = {"where": platform, "chosen": dialect.bind_list([write_id(key) for key in piece])}
        gone += connection.execute(_remove(dialect), kept).rowcount
        drop_embeddings(connection, dialect, platform, piece)
        lower_progress(connection, dialect)
    return gone


def forget_author(connection: sa.Connection, dialect: SqlDialect, platform: str, author_id: str) -> int:
    """Removes the author's posts and empties their messages in sessions, also those that were never archived."""
    which = {"where": platform, "whose": author_id}
    drop_summaries(connection, _BY_SPEAKER, which, locks_rows=dialect.locks_rows)
    while connection.execute(_BLANK_AUTHOR, which).rowcount == PIECE:
        pass
    return _forget_all(connection, dialect, _BY_AUTHOR, which)


def list_room_posts(
    connection: sa.Connection, dialect: SqlDialect, platform: str, room_id: str, limit: int
) -> Sequence[str]:
    """Returns the ids of some posts of a room and its threads that are not deleted."""
    if not room_id or limit < 1:
        return []
    for some, which in _room_posts(connection, dialect, platform, room_id):
        left = connection.execute(some.where(NOT_DELETED).limit(limit), which).scalars().all()
        if left:
            return left
    return []


def forget_room(connection: sa.Connection, dialect: SqlDialect, platform: str, room_id: str) -> int:
    """Removes the posts of a room and its threads."""
    if not room_id:  # an empty parent belongs to every channel
        return 0
    found = _room_posts(connection, dialect, platform, room_id)
    return sum(_forget_all(connection, dialect, some, which) for some, which in found)


def forget_before(
    connection: sa.Connection, dialect: SqlDialect, platform: str, before: datetime, limit: int, guild: str
) -> int:
    """Removes the oldest posts from before that time, of one guild or of all."""
    statement = _OLDEST.where(posts.c.guild == sa.bindparam("guild", type_=EscapedText())) if guild else _OLDEST
    bounds = {"where": platform, "until": before, "limit": max(limit, 0), **({"guild": guild} if guild else {})}
    oldest = connection.execute(statement, bounds).scalars().all()
    return forget_posts(connection, dialect, platform, oldest)


def _room_posts(
    connection: sa.Connection, dialect: SqlDialect, platform: str, room_id: str
) -> Sequence[tuple[sa.Select[Any], dict[str, Any]]]:
    """Returns statements for pieces of a room's posts.

    A thread belongs to the room when the posts name the room as their parent, or when the thread's own record does.
    """
    threads = connection.execute(_THREADS, {"where": platform, "of": room_id}).scalars().all()
    chosen = dialect.bind_list([escape(key) for key in (room_id, *threads)])
    return [
        (_posts_in_rooms(dialect), {"where": platform, "rooms": chosen}),
        (_IN_THREADS, {"where": platform, "parent": room_id}),
    ]


def _forget_all(connection: sa.Connection, dialect: SqlDialect, some: sa.Select[Any], which: dict[str, Any]) -> int:
    gone = 0
    while piece := connection.execute(some, which).scalars().all():
        gone += forget_posts(connection, dialect, which["where"], piece)
    return gone


_KIND = (opt_outs.c.platform == sa.bindparam("where"), opt_outs.c.kind == sa.bindparam("what"))
_OPTED_OUT = sa.select(opt_outs.c.key).where(*_KIND)
_OPT_IN = sa.delete(opt_outs).where(*_KIND, opt_outs.c.key == sa.bindparam("which"))


class SqlArchive(SqlRepository):
    """Implements `denizen.ports.archive.ArchiveRepository`."""

    async def put_room(self, room: Room) -> None:
        find = _ROOM.with_for_update() if self._dialect.locks_rows else _ROOM

        def job(connection: sa.Connection) -> None:
            known = connection.execute(find, {"where": room.platform, "which": room.id}).first()
            renewed = room if known is None else renew_room(_read_room(known), room)
            connection.execute(upsert(self._dialect.insert, rooms), write_record(renewed))

        await self._transaction.write(job)

    async def find_room(self, platform: str, room_id: str) -> Room | None:
        bounds = {"where": platform, "which": room_id}
        return await self._find(_read_room, _ROOM, bounds)

    async def list_rooms(self, platform: str, *, guild: str = "") -> Sequence[Room]:
        bounds = {"where": platform, "within": guild}
        return await self._list(_read_room, _ROOMS, bounds)

    async def put(self, posts: Sequence[Post]) -> int:
        return await self._transaction.write(lambda connection: put_posts(connection, self._dialect, posts))

    async def mark_deleted(self, platform: str, post_ids: Sequence[str], *, at: datetime) -> int:
        return await self._transaction.write(
            lambda connection: mark_deleted(connection, self._dialect, platform, post_ids, at)
        )

    async def mark_room_deleted(self, platform: str, room_id: str, *, at: datetime, limit: int) -> int:
        def job(connection: sa.Connection) -> int:
            left = list_room_posts(connection, self._dialect, platform, room_id, limit)
            return mark_deleted(connection, self._dialect, platform, left, at)

        return await self._transaction.write(job)

    async def find(self, platform: str, post_id: str) -> Post | None:
        return await self._transaction.read(lambda connection: find_post(connection, platform, post_id))

    async def find_many(self, platform: str, post_ids: Sequence[str]) -> Sequence[Post]:
        return await self._transaction.read(
            lambda connection: find_posts(connection, self._dialect, platform, post_ids)
        )

    async def list_posts(
        self, platform: str, room: str, *, before: str = "", after: str = "", limit: int = 50
    ) -> Sequence[Post]:
        return await self._transaction.read(
            lambda connection: list_posts(connection, platform, room, before=before, after=after, limit=limit)
        )

    async def list_versions(self, platform: str, post_id: str) -> Sequence[PostVersion]:
        return await self._transaction.read(lambda connection: list_versions(connection, platform, post_id))

    async def search(self, wanted: PostQuery) -> Sequence[PostHit]:
        if not wanted.rooms or wanted.limit < 1:
            return []
        return await self._transaction.read(lambda connection: search_posts(connection, self._dialect, wanted))

    async def list_newest(self, wanted: PostQuery) -> Sequence[Post]:
        return await self._transaction.read(lambda connection: list_newest(connection, self._dialect, wanted))

    async def count(
        self, by: CountBy, *, platform: str, rooms: Sequence[str], since: datetime | None = None, limit: int = 20
    ) -> Sequence[PostCount]:
        bounds = {
            "where": platform,
            "rooms": self._dialect.bind_list([escape(room) for room in rooms]),
            "since": since or EARLIEST,
            "limit": max(limit, 0),
        }
        return await self._transaction.read(lambda connection: count_posts(connection, self._dialect, by, bounds))

    async def list_authors(self, platform: str, *, rooms: Sequence[str]) -> Sequence[Author]:
        return await self._transaction.read(lambda connection: list_authors(connection, self._dialect, platform, rooms))

    async def count_author(self, platform: str, author_id: str) -> AuthorCount:
        bounds = {"where": platform, "whose": author_id}

        def job(connection: sa.Connection) -> AuthorCount:
            counts = (connection.execute(each, bounds).scalar_one() for each in (_COUNT_POSTS, _COUNT_MESSAGES))
            return AuthorCount(*counts)

        return await self._transaction.read(job)

    async def total(self, platform: str) -> int:
        return await self._transaction.read(lambda connection: total_posts(connection, platform))

    async def forget_author(self, platform: str, author_id: str) -> int:
        return await self._transaction.write(
            lambda connection: forget_author(connection, self._dialect, platform, author_id)
        )

    async def forget_room(self, platform: str, room_id: str) -> int:
        return await self._transaction.write(
            lambda connection: forget_room(connection, self._dialect, platform, room_id)
        )

    async def forget_posts(self, platform: str, post_ids: Sequence[str]) -> int:
        return await self._transaction.write(
            lambda connection: forget_posts(connection, self._dialect, platform, post_ids)
        )

    async def forget_before(self, platform: str, before: datetime, *, limit: int, guild: str = "") -> int:
        return await self._transaction.write(
            lambda connection: forget_before(connection, self._dialect, platform, before, limit, guild)
        )

    async def opt_out(self, platform: str, kind: OptOutKind, key: str, *, now: datetime) -> None:
        row = {"platform": platform, "kind": kind, "key": key, "created_at": now}
        await self._execute(insert_rows(self._dialect.insert, opt_outs), row)

    async def opt_in(self, platform: str, kind: OptOutKind, key: str) -> None:
        which = {"where": platform, "what": kind, "which": key}
        await self._execute(_OPT_IN, which)

    async def list_opt_outs(self, platform: str, kind: OptOutKind) -> frozenset[str]:
        which = {"where": platform, "what": kind}
        return await self._transaction.read(
            lambda connection: frozenset(connection.execute(_OPTED_OUT, which).scalars())
        )

    async def find_backfill(self, platform: str, room: str) -> Backfill | None:
        bounds = {"where": platform, "which": room}
        return await self._find(_read_backfill, _BACKFILL, bounds)

    async def put_backfill(self, backfill: Backfill) -> None:
        await self._execute(upsert(self._dialect.insert, backfills), write_record(backfill))

    async def list_backfills(self, platform: str) -> Sequence[Backfill]:
        bounds = {"where": platform}
        return await self._list(_read_backfill, _BACKFILLS, bounds)
