"""The mirror of a platform's posts in the memory store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from denizen.domain.message import Message
from denizen.domain.mirror import FORGOTTEN, loses_meaning, plan_renewal, renew_room
from denizen.domain.room import Post, PostVersion, Room, is_newer
from denizen.domain.words import excerpt_of, words_of
from denizen.ports.archive import AuthorCount, Backfill, CountBy, OptOutKind, PostCount, PostHit, PostQuery
from denizen.testing.memory_post_meanings import drop_vectors
from denizen.testing.memory_talk import forget_messages
from denizen.testing.memory_unit import Unit, in_utc


class MemoryArchive:
    """`denizen.ports.archive.ArchiveRepository`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def put_room(self, room: Room) -> None:
        self._unit.check_writes()
        rows, key = self._unit.tables.rooms, (room.platform, room.id)
        self._unit.put(rows, key, renew_room(rows[key], room) if key in rows else room)

    async def find_room(self, platform: str, room_id: str) -> Room | None:
        return self._unit.tables.rooms.get((platform, room_id))

    async def list_rooms(self, platform: str, *, guild: str = "") -> Sequence[Room]:
        rows = self._unit.tables.rooms.values()
        chosen = [room for room in rows if room.platform == platform and guild in {"", room.guild}]
        return sorted(chosen, key=lambda room: _order(room.id))

    async def put(self, posts: Sequence[Post]) -> int:
        self._unit.check_writes()
        return sum(self._put(_in_utc(post)) for post in posts)

    async def mark_deleted(self, platform: str, post_ids: Sequence[str], *, at: datetime) -> int:
        self._unit.check_writes()
        rows = self._unit.tables.posts
        found = [rows[platform, key] for key in dict.fromkeys(post_ids) if (platform, key) in rows]
        marked = [post for post in found if post.deleted_at is None]
        for post in marked:
            self._unit.put(rows, (platform, post.id), replace(post, deleted_at=in_utc(at)))
        drop_vectors(self._unit, platform, post_ids)
        return len(marked)

    async def mark_room_deleted(self, platform: str, room_id: str, *, at: datetime, limit: int) -> int:
        left = [post.id for post in self._of_room(platform, room_id) if post.deleted_at is None]
        return await self.mark_deleted(platform, left[: max(limit, 0)], at=at)

    async def find(self, platform: str, post_id: str) -> Post | None:
        return self._unit.tables.posts.get((platform, post_id))

    async def find_many(self, platform: str, post_ids: Sequence[str]) -> Sequence[Post]:
        rows = self._unit.tables.posts
        found = [rows[platform, key] for key in dict.fromkeys(post_ids) if (platform, key) in rows]
        return [post for post in found if post.deleted_at is None]

    async def list_posts(
        self, platform: str, room: str, *, before: str = "", after: str = "", limit: int = 50
    ) -> Sequence[Post]:
        found = [
            post
            for post in self._visible(platform, {room})
            if is_newer(post.id, after) and (not before or is_newer(before, post.id))
        ]
        rows = sorted(found, key=lambda post: _order(post.id))
        return rows[: max(limit, 0)] if after else rows[max(len(rows) - max(limit, 0), 0) :]

    async def list_versions(self, platform: str, post_id: str) -> Sequence[PostVersion]:
        return list(self._unit.tables.versions.get((platform, post_id), ()))

    async def search(self, wanted: PostQuery) -> Sequence[PostHit]:
        words = words_of(wanted.words)
        found = [
            post
            for post in (self._visible(wanted.platform, wanted.rooms) if words else ())
            if wanted.author in {"", post.author.id}
            and (wanted.since is None or post.created_at >= wanted.since)
            and (wanted.until is None or post.created_at < wanted.until)
            and set(words) <= set(words_of(post.text))
        ]
        newest = sorted(found, key=lambda post: _order(post.id), reverse=True)[: max(wanted.limit, 0)]
        return [PostHit(post, excerpt_of(post.text, words)) for post in newest]

    async def count(
        self, by: CountBy, *, platform: str, rooms: Sequence[str], since: datetime | None = None, limit: int = 20
    ) -> Sequence[PostCount]:
        found = (post for post in self._visible(platform, rooms) if since is None or post.created_at >= since)
        counts = sorted(Counter(_KEYS[by](post) for post in found).items())
        if by is CountBy.DAY:
            counts.reverse()
        else:
            counts.sort(key=lambda item: item[1], reverse=True)
        names = self._names(platform) if by is CountBy.AUTHOR else {}
        return [PostCount(key, names.get(key, ""), posts) for key, posts in counts[: max(limit, 0)]]

    async def count_author(self, platform: str, author_id: str) -> AuthorCount:
        theirs = [post for post in self._all(platform) if post.author.id == author_id != ""]
        places = self._unit.tables.conversations
        said = [
            message
            for message in self._unit.tables.messages.values()
            if message.author.id == author_id != "" and message.parts != FORGOTTEN
            and places[message.conversation_id].place.platform == platform
        ]  # fmt: skip
        return AuthorCount(len(theirs), len(said))

    async def total(self, platform: str) -> int:
        return sum(1 for _ in self._visible(platform))

    async def forget_author(self, platform: str, author_id: str) -> int:
        self._unit.check_writes()
        theirs = [post for post in self._all(platform) if post.author.id == author_id]
        forget_messages(self._unit, platform, lambda message: message.author.id == author_id != "")
        return self._forget(platform, theirs)

    async def forget_room(self, platform: str, room_id: str) -> int:
        self._unit.check_writes()
        return self._forget(platform, self._of_room(platform, room_id))

    async def forget_posts(self, platform: str, post_ids: Sequence[str]) -> int:
        self._unit.check_writes()
        rows, chosen = self._unit.tables.posts, set(post_ids)
        forget_messages(self._unit, platform, _comes_from(chosen))
        return self._forget(platform, [rows[platform, key] for key in chosen if (platform, key) in rows])

    async def forget_before(self, platform: str, before: datetime, *, limit: int) -> int:
        self._unit.check_writes()
        old = [post for post in self._all(platform) if post.created_at < before]
        oldest = sorted(old, key=lambda post: (post.created_at, _order(post.id)))
        return self._forget(platform, oldest[: max(limit, 0)])

    async def opt_out(self, platform: str, kind: OptOutKind, key: str, *, now: datetime) -> None:
        del now  # a database keeps it for its operator
        self._unit.check_writes()
        self._unit.put(self._unit.tables.opt_outs, (platform, kind, key), value=True)

    async def opt_in(self, platform: str, kind: OptOutKind, key: str) -> None:
        self._unit.check_writes()
        self._unit.remove(self._unit.tables.opt_outs, (platform, kind, key))

    async def list_opt_outs(self, platform: str, kind: OptOutKind) -> frozenset[str]:
        rows = self._unit.tables.opt_outs
        return frozenset(key for where, what, key in rows if (where, what) == (platform, kind))

    async def find_backfill(self, platform: str, room: str) -> Backfill | None:
        return self._unit.tables.backfills.get((platform, room))

    async def put_backfill(self, backfill: Backfill) -> None:
        self._unit.check_writes()
        self._unit.put(self._unit.tables.backfills, (backfill.platform, backfill.room), backfill)

    async def list_backfills(self, platform: str) -> Sequence[Backfill]:
        rows = [row for row in self._unit.tables.backfills.values() if row.platform == platform]
        return sorted(rows, key=lambda row: _order(row.room))

    def _put(self, given: Post) -> bool:
        tables, key = self._unit.tables, (given.platform, given.id)
        known = tables.posts.get(key)
        renewed = given if known is None else plan_renewal(known, given)
        if renewed is not None:
            self._unit.put(tables.posts, key, renewed)
            if known is not None and loses_meaning(known, renewed):
                drop_vectors(self._unit, given.platform, [given.id])
            if known is not None and known.text != renewed.text:
                earlier = tables.versions.get(key, ())
                version = PostVersion(len(earlier) + 1, known.text, known.edited_at or known.created_at)
                self._unit.put(tables.versions, key, (*earlier, version))
        return known is None

    def _forget(self, platform: str, posts: Iterable[Post]) -> int:
        gone = {post.id for post in posts}
        forget_messages(self._unit, platform, _comes_from(gone))
        keys = [(platform, post_id) for post_id in gone]
        drop_vectors(self._unit, platform, gone)
        self._unit.remove(self._unit.tables.versions, *keys)
        self._unit.remove(self._unit.tables.posts, *keys)
        return len(gone)

    def _all(self, platform: str) -> list[Post]:
        return [post for post in self._unit.tables.posts.values() if post.platform == platform]

    def _of_room(self, platform: str, room_id: str) -> list[Post]:
        """With its threads."""
        if not room_id:  # which would be the parent of every channel
            return []
        rooms = self._unit.tables.rooms.values()
        within = {room_id} | {room.id for room in rooms if (room.platform, room.parent) == (platform, room_id)}
        return [post for post in self._all(platform) if post.parent == room_id or post.room in within]

    def _visible(self, platform: str, rooms: Collection[str] | None = None) -> Iterable[Post]:
        chosen = None if rooms is None else set(rooms)
        return (
            post for post in self._all(platform) if post.deleted_at is None and (chosen is None or post.room in chosen)
        )

    def _names(self, platform: str) -> dict[str, str]:
        newest = sorted(self._visible(platform), key=lambda post: _order(post.id))
        return {post.author.id: post.author.name for post in newest}


_KEYS: dict[CountBy, Callable[[Post], str]] = {
    CountBy.ROOM: lambda post: post.room,
    CountBy.AUTHOR: lambda post: post.author.id,
    CountBy.DAY: lambda post: post.created_at.date().isoformat(),
}


def _order(platform_id: str) -> tuple[int, str]:
    """As `is_newer` has it."""
    return len(platform_id), platform_id


def _comes_from(post_ids: Collection[str]) -> Callable[[Message], bool]:
    return lambda message: message.platform_id != "" and message.platform_id in post_ids


def _in_utc(post: Post) -> Post:
    return replace(
        post,
        created_at=in_utc(post.created_at),
        edited_at=None if post.edited_at is None else in_utc(post.edited_at),
        deleted_at=None if post.deleted_at is None else in_utc(post.deleted_at),
    )
