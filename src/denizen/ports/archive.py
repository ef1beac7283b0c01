"""The archive in the store: the mirror of a platform's messages, with edits and deletions. Part of a unit of work.

Several accounts see the same post: whoever comes first adds it. Times come from the platform. Vectors of posts are in
the collection POSTS of `VectorRepository`, under `post_vector_key` the post, on the shelf of its room (`room_shelf`), so that a search is
among the rooms that may be seen and no others.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from denizen.domain.conversation import Place
from denizen.domain.room import Post, PostVersion, Room
from denizen.domain.transcript import Archived, Block

POSTS = "post"


def post_vector_key(platform: str, post_id: str) -> str:
    """Of a post's vector."""
    return f"{platform}:{post_id}"


def room_shelf(platform: str, room: str) -> str:
    return f"{platform}:{room}"


class OptOutKind(StrEnum):
    """Whose posts are not kept. A channel counts for its threads too."""

    USER = "user"
    ROLE = "role"
    CHANNEL = "channel"


@dataclass(frozen=True, slots=True)
class PostQuery:
    """What is looked for, in these rooms only. `author` is an id; `since` counts, `until` does not."""

    words: str
    platform: str
    rooms: Sequence[str]
    author: str = ""
    since: datetime | None = None
    until: datetime | None = None
    limit: int = 10


@dataclass(frozen=True, slots=True)
class PostHit:
    post: Post
    excerpt: str


@dataclass(frozen=True, slots=True)
class PostCount:
    """`key` is a room's id, an author's id or a UTC day, as asked; `name` the author's latest name, else empty."""

    key: str
    name: str
    posts: int


@dataclass(frozen=True, slots=True)
class AuthorCount:
    """What is kept of one author: posts, deleted ones too, and messages in sessions that were not forgotten."""

    posts: int
    messages: int


class CountBy(StrEnum):
    ROOM = "room"
    AUTHOR = "author"
    DAY = "day"


@dataclass(frozen=True, slots=True)
class Backfill:
    """How far back a room is mirrored. `oldest` is the oldest post fetched so far, empty before the first page."""

    platform: str
    room: str
    oldest: str = ""
    fetched: int = 0
    is_complete: bool = False


class ArchiveRepository(Protocol):
    """Deleted posts stay for the audit trail, without being listed, found or counted; what is forgotten is gone, with
    its versions, its words in the index, its vectors, and its copies in sessions. A vector goes with any of that, and
    with another text or room.
    """

    async def put_room(self, room: Room) -> None:
        """Adds it or renews what is known of it."""
        ...

    async def find_room(self, platform: str, room_id: str) -> Room | None: ...

    async def list_rooms(self, platform: str, *, guild: str = "") -> Sequence[Room]: ...

    async def put(self, posts: Sequence[Post]) -> int:
        """Returns how many were new. A known post with another text keeps the old text as a version and takes the new
        one, unless it was edited later than the given one; a deleted post stays deleted. The same twice is once.
        """
        ...

    async def mark_deleted(self, platform: str, post_ids: Sequence[str], *, at: datetime) -> int:
        """Returns how many of them were here and not deleted yet."""
        ...

    async def mark_room_deleted(self, platform: str, room_id: str, *, at: datetime, limit: int) -> int:
        """At most `limit` posts of the room and of its threads, likewise: a piece at a time, until none is left."""
        ...

    async def find(self, platform: str, post_id: str) -> Post | None:
        """Deleted ones too (`deleted_at` says so)."""
        ...

    async def find_many(self, platform: str, post_ids: Sequence[str]) -> Sequence[Post]:
        """Those that are here, in this order, deleted ones left out."""
        ...

    async def list_posts(
        self, platform: str, room: str, *, before: str = "", after: str = "", limit: int = 50
    ) -> Sequence[Post]:
        """Oldest first: the newest `limit` before `before`, or with `after` the oldest `limit` after it."""
        ...

    async def list_versions(self, platform: str, post_id: str) -> Sequence[PostVersion]:
        """The earlier texts, oldest first; empty for a post that was never edited."""
        ...

    async def search(self, wanted: PostQuery) -> Sequence[PostHit]:
        """Posts of these rooms that contain all the words (any case), newest first."""
        ...

    async def count(
        self, by: CountBy, *, platform: str, rooms: Sequence[str], since: datetime | None = None, limit: int = 20
    ) -> Sequence[PostCount]:
        """Most posts first; by DAY newest day first."""
        ...

    async def count_author(self, platform: str, author_id: str) -> AuthorCount: ...

    async def total(self, platform: str) -> int:
        """How many posts are here, deleted ones left out."""
        ...

    async def forget_author(self, platform: str, author_id: str) -> int:
        """Every post of theirs and its versions; their messages in sessions lose their text. Returns how many posts."""
        ...

    async def forget_room(self, platform: str, room_id: str) -> int:
        """Every post of the room and of its threads, likewise."""
        ...

    async def forget_posts(self, platform: str, post_ids: Sequence[str]) -> int:
        """These posts, likewise."""
        ...

    async def forget_before(self, platform: str, before: datetime, *, limit: int) -> int:
        """The oldest `limit` posts from before that time, likewise: retention, a piece at a time."""
        ...

    async def opt_out(self, platform: str, kind: OptOutKind, key: str, *, now: datetime) -> None: ...

    async def opt_in(self, platform: str, kind: OptOutKind, key: str) -> None: ...

    async def list_opt_outs(self, platform: str, kind: OptOutKind) -> frozenset[str]: ...

    async def find_backfill(self, platform: str, room: str) -> Backfill | None: ...

    async def put_backfill(self, backfill: Backfill) -> None: ...

    async def list_backfills(self, platform: str) -> Sequence[Backfill]: ...


@dataclass(frozen=True, slots=True)
class PendingEmbeddings:
    """Posts without a vector of that model, and how far they were looked for, which is the store's own matter.
    `is_end` when there is nothing beyond.
    """

    model: str
    posts: Sequence[Post]
    reached: int
    is_end: bool


class PostEmbeddingRepository(Protocol):
    """Which posts still need a vector. Those that say next to nothing get none (`denizen.domain.mirror`)."""

    async def find_missing(self, model: str, *, limit: int) -> PendingEmbeddings:
        """The next of them; what was edited since comes first. The cost does not depend on how many posts there are.
        With another model than before it begins anew.
        """
        ...

    async def put(self, missing: PendingEmbeddings, vectors: Sequence[bytes]) -> int:
        """One for each of the posts. Those that were edited, moved, deleted or forgotten meanwhile get none. Returns
        how many were put; the next search begins where this one ended.
        """
        ...

    async def remove_others(self, model: str, *, limit: int) -> int:
        """Some of the vectors of any model but this one, and the note of how far that came. Returns how many."""
        ...

    async def count(self, model: str) -> int:
        """How many posts, of all platforms, have a vector of that model."""
        ...


@dataclass(frozen=True, slots=True)
class PostRange:
    """The posts of a room from one id to another, both of them included."""

    platform: str
    room: str
    first: str
    last: str


class TranscriptRepository(Protocol):
    async def list_blocks(self, place: Place) -> Sequence[Block]:
        """Oldest first."""
        ...

    async def add_blocks(self, place: Place, closed: Sequence[Block]) -> int:
        """Returns how many were added: one whose number or first post is taken already (another process was faster)
        ends it.
        """
        ...

    async def renew_block(self, place: Place, block: Block, *, digest: str) -> bool:
        """Replaces the block of that number, if it still has that digest."""
        ...

    async def remove_blocks(self, place: Place, numbers: Collection[int]) -> None: ...

    async def list_stretch(self, stretch: PostRange, *, changed: bool = False) -> Sequence[Archived]:
        """Its posts in order, deleted ones too; with `changed` only those that were edited or deleted."""
        ...

    async def count_stretch(self, stretch: PostRange) -> int:
        """How many posts lie in it, deleted ones too. Cheap."""
        ...

    async def find_archived(self, platform: str, post_ids: Collection[str]) -> Sequence[Archived]:
        """Those that are here, deleted ones too."""
        ...
