"""The port of the archive: the mirror of a platform's messages, with edits and deletions, and the transcripts made of
it.

Both repositories are part of a unit of work. Several accounts see the same post: whoever comes first adds it. Times
come from the platform. `VectorRepository` holds the vectors of posts in the collection POST_VECTORS, under
`post_vector_key` and in the namespace of the post's room (`room_namespace`), so that a search looks only into rooms
that may be seen.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from denizen.domain.conversation import Place
from denizen.domain.message import Author
from denizen.domain.ranking import Match
from denizen.domain.record import record
from denizen.domain.room import Post, PostVersion, Room
from denizen.domain.transcript import PostHistory, TranscriptBlock

POST_VECTORS = "post"


def post_vector_key(platform: str, post_id: str) -> str:
    """Returns the key of a post's vector."""
    return f"{platform}:{post_id}"


def room_namespace(platform: str, room: str) -> str:
    """Returns the namespace of the vectors of a room's posts."""
    return f"{platform}:{room}"


class OptOutKind(StrEnum):
    """The kinds of opt-outs: posts of the user, role or channel are not archived. A channel includes its threads."""

    USER = "user"
    ROLE = "role"
    CHANNEL = "channel"


@record
class PostQuery:
    """A search for posts in the given rooms only, with any of the words. Those in `also` count for the order, but find
    nothing by themselves. `author` is an id; `since` is inclusive, `until` exclusive.
    """

    words: str
    platform: str
    rooms: Sequence[str]
    author: str = ""
    since: datetime | None = None
    until: datetime | None = None
    limit: int = 10
    also: str = ""


@record
class PostHit:
    """A post that a search found. `excerpt` is the part around the words; the key of `match` is the post's id."""

    post: Post
    excerpt: str
    match: Match


@record
class PostCount:
    """`key` is a room's id, an author's id or a UTC day, as asked; `name` the author's latest name, else empty."""

    key: str
    name: str
    posts: int


@record
class AuthorCount:
    """The stored texts of one author: posts, including deleted ones, and messages in sessions that
    were not forgotten.
    """

    posts: int
    messages: int


class CountBy(StrEnum):
    """The key by which posts are counted."""

    ROOM = "room"
    AUTHOR = "author"
    DAY = "day"


@record
class Backfill:
    """The state of mirroring a room's past. `oldest` is the oldest post fetched so far, empty before the first page."""

    platform: str
    room: str
    oldest: str = ""
    fetched: int = 0
    is_complete: bool = False


class ArchiveRepository(Protocol):
    """The mirrored rooms and posts.

    Deleted posts stay for the audit trail, but they are not listed, found or counted. A forgotten post is gone, with
    its versions, its words in the index, its vectors, and its copies in sessions. Deleting, forgetting, editing or
    moving a post removes its vector.
    """

    async def put_room(self, room: Room) -> None:
        """Adds the room, or updates what is known of it."""
        ...

    async def find_room(self, platform: str, room_id: str) -> Room | None: ...

    async def list_rooms(self, platform: str, *, guild: str = "") -> Sequence[Room]: ...

    async def put(self, posts: Sequence[Post]) -> int:
        """Adds or updates the posts and returns how many were new.

        A known post with another text keeps the old text as a version and takes the new one, unless it was edited later
        than the given one. A deleted post stays deleted. Repeating the call changes nothing.
        """
        ...

    async def mark_deleted(self, platform: str, post_ids: Sequence[str], *, at: datetime) -> int:
        """Marks the posts as deleted and returns how many were here and not deleted yet."""
        ...

    async def mark_room_deleted(self, platform: str, room_id: str, *, at: datetime, limit: int) -> int:
        """Marks at most `limit` posts of the room and its threads as deleted. Call it until it returns 0."""
        ...

    async def find(self, platform: str, post_id: str) -> Post | None:
        """Returns the post, also a deleted one (see `changes.deleted_at`)."""
        ...

    async def find_many(self, platform: str, post_ids: Sequence[str]) -> Sequence[Post]:
        """Returns the posts that are here and not deleted, in the order of the ids."""
        ...

    async def list_posts(
        self, platform: str, room: str, *, before: str = "", after: str = "", limit: int = 50
    ) -> Sequence[Post]:
        """Returns posts, oldest first: the newest `limit` before `before`, or the oldest `limit` after `after`."""
        ...

    async def list_versions(self, platform: str, post_id: str) -> Sequence[PostVersion]:
        """Returns the earlier texts, oldest first; nothing for a post that was never edited."""
        ...

    async def search(self, wanted: PostQuery) -> Sequence[PostHit]:
        """Returns the posts of these rooms that contain some of the words, the best first; of equals, the newest."""
        ...

    async def list_newest(self, wanted: PostQuery) -> Sequence[Post]:
        """Returns the newest posts of these rooms, the newest first; whatever words there are in `wanted`."""
        ...

    async def count(
        self, by: CountBy, *, platform: str, rooms: Sequence[str], since: datetime | None = None, limit: int = 20
    ) -> Sequence[PostCount]:
        """Returns counts, the most posts first; by DAY, the newest day first."""
        ...

    async def list_authors(self, platform: str, *, rooms: Sequence[str]) -> Sequence[Author]:
        """Returns who wrote in the rooms, by id, each with the latest name there. The cost grows with the number of
        authors and not of posts.
        """
        ...

    async def count_author(self, platform: str, author_id: str) -> AuthorCount: ...

    async def total(self, platform: str) -> int:
        """Returns the number of posts that are not deleted."""
        ...

    async def forget_author(self, platform: str, author_id: str) -> int:
        """Removes every post of the author and empties their messages in sessions. Returns the number of posts."""
        ...

    async def forget_room(self, platform: str, room_id: str) -> int:
        """Removes every post of the room and its threads. Returns the number of posts."""
        ...

    async def forget_posts(self, platform: str, post_ids: Sequence[str]) -> int:
        """Removes these posts. Returns how many there were."""
        ...

    async def forget_before(self, platform: str, before: datetime, *, limit: int, guild: str = "") -> int:
        """Removes the oldest `limit` posts from before that time, with `guild` only those of that guild. Retention
        calls it until nothing is left.
        """
        ...

    async def opt_out(self, platform: str, kind: OptOutKind, key: str, *, now: datetime) -> None: ...

    async def opt_in(self, platform: str, kind: OptOutKind, key: str) -> None: ...

    async def list_opt_outs(self, platform: str, kind: OptOutKind) -> frozenset[str]: ...

    async def find_backfill(self, platform: str, room: str) -> Backfill | None: ...

    async def put_backfill(self, backfill: Backfill) -> None: ...

    async def list_backfills(self, platform: str) -> Sequence[Backfill]: ...


@record
class PendingEmbeddings:
    """Posts without a vector of the model.

    `reached` is the store's own position, from which the next search goes on. `is_end` says that there are no more
    posts.
    """

    model: str
    posts: Sequence[Post]
    reached: int
    is_end: bool


class PostEmbeddingRepository(Protocol):
    """The posts that still need a vector. Posts without real content get none (`denizen.domain.mirror`)."""

    async def find_missing(self, model: str, *, limit: int) -> PendingEmbeddings:
        """Returns the next posts without a vector of the model, edited ones first.

        The cost does not depend on the number of posts. After a change of the model the search starts anew.
        """
        ...

    async def put(self, missing: PendingEmbeddings, vectors: Sequence[bytes]) -> int:
        """Stores one vector for each of the posts and returns how many were stored.

        Posts that were edited, moved, deleted or forgotten meanwhile get none. The next search starts where this one
        ended.
        """
        ...

    async def remove_others(self, model: str, *, limit: int) -> int:
        """Removes at most `limit` vectors of other models and resets the position of the search. Returns how many."""
        ...

    async def count(self, model: str) -> int:
        """Returns the number of posts, on all platforms, that have a vector of that model."""
        ...


@record
class PostRange:
    """The posts of a room from one id to another, both included."""

    platform: str
    room: str
    first: str
    last: str


class TranscriptRepository(Protocol):
    """The closed blocks of each place's transcript, shared by all agents there.

    The text of a block is not stored: it is built from the archive, and its hash tells whether it is still the same.
    """

    async def list_blocks(self, place: Place) -> Sequence[TranscriptBlock]:
        """Returns the blocks, oldest first."""
        ...

    async def add_blocks(self, place: Place, closed: Sequence[TranscriptBlock]) -> int:
        """Adds blocks in order and returns how many were added.

        It stops at the first whose number or first post is taken already, since another process was faster.
        """
        ...

    async def renew_block(self, place: Place, block: TranscriptBlock, *, digest: str) -> bool:
        """Replaces the block of that number if it still has that digest."""
        ...

    async def remove_blocks(self, place: Place, numbers: Collection[int]) -> None: ...

    async def list_range(self, stretch: PostRange, *, changed: bool = False) -> Sequence[PostHistory]:
        """Returns the posts of the range in order, including deleted ones; with `changed` only
        edited or deleted ones.
        """
        ...

    async def count_range(self, stretch: PostRange) -> int:
        """Returns the number of posts in the range, including deleted ones. Cheap."""
        ...

    async def find_archived(self, platform: str, post_ids: Collection[str]) -> Sequence[PostHistory]:
        """Returns the posts that are here, including deleted ones."""
        ...
