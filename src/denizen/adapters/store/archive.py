"""The mirror of a platform's messages, over `rooms`, `posts`, `post_search` and `forgetting`; and who opted out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache

import sqlalchemy as sa

from denizen.adapters.store.columns import escape
from denizen.adapters.store.dialect import InsertInto
from denizen.adapters.store.forgetting import (
    count_author,
    forget_author,
    forget_before,
    forget_posts,
    forget_room,
    list_room_posts,
)
from denizen.adapters.store.post_search import EVER, NEVER, count_posts, search_posts, total_posts
from denizen.adapters.store.posts import find_post, find_posts, list_posts, list_versions, mark_deleted, put_posts
from denizen.adapters.store.rooms import (
    find_backfill,
    find_room,
    list_backfills,
    list_rooms,
    put_backfill,
    put_room,
)
from denizen.adapters.store.tables.archive import opt_outs
from denizen.adapters.store.unit import Unit
from denizen.domain.room import Post, PostVersion, Room
from denizen.domain.words import words_of
from denizen.ports.archive import AuthorCount, Backfill, CountBy, OptOutKind, PostCount, PostHit, PostQuery

_KIND = (opt_outs.c.platform == sa.bindparam("where"), opt_outs.c.kind == sa.bindparam("what"))
_OPTED_OUT = sa.select(opt_outs.c.key).where(*_KIND)
_OPT_IN = sa.delete(opt_outs).where(*_KIND, opt_outs.c.key == sa.bindparam("which"))


@cache
def _opt_out(insert: InsertInto) -> sa.Executable:
    return insert(opt_outs).on_conflict_do_nothing().inline()


class SqlArchive:
    """`denizen.ports.archive.Archive`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def put_room(self, room: Room) -> None:
        dialect = self._unit.dialect
        await self._unit.write(lambda connection: put_room(connection, dialect, room))

    async def find_room(self, platform: str, room_id: str) -> Room | None:
        return await self._unit.read(lambda connection: find_room(connection, platform, room_id))

    async def list_rooms(self, platform: str, *, guild: str = "") -> Sequence[Room]:
        return await self._unit.read(lambda connection: list_rooms(connection, platform, guild))

    async def put(self, posts: Sequence[Post]) -> int:
        dialect = self._unit.dialect
        return await self._unit.write(lambda connection: put_posts(connection, dialect, posts))

    async def mark_deleted(self, platform: str, post_ids: Sequence[str], *, at: datetime) -> int:
        dialect = self._unit.dialect
        return await self._unit.write(lambda connection: mark_deleted(connection, dialect, platform, post_ids, at))

    async def mark_room_deleted(self, platform: str, room_id: str, *, at: datetime, limit: int) -> int:
        def job(connection: sa.Connection) -> int:
            left = list_room_posts(connection, self._unit.dialect, platform, room_id, limit)
            return mark_deleted(connection, self._unit.dialect, platform, left, at)

        return await self._unit.write(job)

    async def find(self, platform: str, post_id: str) -> Post | None:
        return await self._unit.read(lambda connection: find_post(connection, platform, post_id))

    async def find_many(self, platform: str, post_ids: Sequence[str]) -> Sequence[Post]:
        dialect = self._unit.dialect
        return await self._unit.read(lambda connection: find_posts(connection, dialect, platform, post_ids))

    async def list_posts(
        self, platform: str, room: str, *, before: str = "", after: str = "", limit: int = 50
    ) -> Sequence[Post]:
        return await self._unit.read(
            lambda connection: list_posts(connection, platform, room, before=before, after=after, limit=limit)
        )

    async def list_versions(self, platform: str, post_id: str) -> Sequence[PostVersion]:
        return await self._unit.read(lambda connection: list_versions(connection, platform, post_id))

    async def search(self, wanted: PostQuery) -> Sequence[PostHit]:
        words, dialect = words_of(wanted.words), self._unit.dialect
        if not words or not wanted.rooms or wanted.limit < 1:
            return []
        bounds = {
            "query": dialect.query_of(words),
            "platform": wanted.platform,
            "rooms": dialect.list_of([escape(room) for room in wanted.rooms]),
            "author": wanted.author,
            "since": wanted.since or EVER,
            "until": wanted.until or NEVER,
            "limit": wanted.limit,
        }
        return await self._unit.read(lambda connection: search_posts(connection, dialect, words, bounds))

    async def count(
        self, by: CountBy, *, platform: str, rooms: Sequence[str], since: datetime | None = None, limit: int = 20
    ) -> Sequence[PostCount]:
        dialect = self._unit.dialect
        bounds = {
            "where": platform,
            "rooms": dialect.list_of([escape(room) for room in rooms]),
            "since": since or EVER,
            "limit": max(limit, 0),
        }
        return await self._unit.read(lambda connection: count_posts(connection, dialect, by, bounds))

    async def count_author(self, platform: str, author_id: str) -> AuthorCount:
        return await self._unit.read(lambda connection: count_author(connection, platform, author_id))

    async def total(self, platform: str) -> int:
        return await self._unit.read(lambda connection: total_posts(connection, platform))

    async def forget_author(self, platform: str, author_id: str) -> int:
        dialect = self._unit.dialect
        return await self._unit.write(lambda connection: forget_author(connection, dialect, platform, author_id))

    async def forget_room(self, platform: str, room_id: str) -> int:
        dialect = self._unit.dialect
        return await self._unit.write(lambda connection: forget_room(connection, dialect, platform, room_id))

    async def forget_posts(self, platform: str, post_ids: Sequence[str]) -> int:
        dialect = self._unit.dialect
        return await self._unit.write(lambda connection: forget_posts(connection, dialect, platform, post_ids))

    async def forget_before(self, platform: str, before: datetime, *, limit: int) -> int:
        dialect = self._unit.dialect
        return await self._unit.write(lambda connection: forget_before(connection, dialect, platform, before, limit))

    async def opt_out(self, platform: str, kind: OptOutKind, key: str, *, now: datetime) -> None:
        row = {"platform": platform, "kind": kind.value, "key": key, "created_at": now}
        statement = _opt_out(self._unit.dialect.insert)
        await self._unit.write(lambda connection: connection.execute(statement, row))

    async def opt_in(self, platform: str, kind: OptOutKind, key: str) -> None:
        which = {"where": platform, "what": kind.value, "which": key}
        await self._unit.write(lambda connection: connection.execute(_OPT_IN, which))

    async def list_opt_outs(self, platform: str, kind: OptOutKind) -> frozenset[str]:
        which = {"where": platform, "what": kind.value}
        return await self._unit.read(lambda connection: frozenset(connection.execute(_OPTED_OUT, which).scalars()))

    async def find_backfill(self, platform: str, room: str) -> Backfill | None:
        return await self._unit.read(lambda connection: find_backfill(connection, platform, room))

    async def put_backfill(self, backfill: Backfill) -> None:
        insert = self._unit.dialect.insert
        await self._unit.write(lambda connection: put_backfill(connection, insert, backfill))

    async def list_backfills(self, platform: str) -> Sequence[Backfill]:
        return await self._unit.read(lambda connection: list_backfills(connection, platform))
