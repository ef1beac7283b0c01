"""Rooms of a platform, and the messages posted there as the archive keeps them.

A room is one channel, thread or direct talk. Ids are the platform's own, as text; within one platform a room's id and
a post's id name exactly one thing, and a post with a higher number is newer.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from denizen.domain.conversation import Place
from denizen.domain.message import Author
from denizen.domain.record import record


class RoomKind(StrEnum):
    """The kind of a room, which says what it holds and who may read it."""

    CHANNEL = "channel"
    FORUM = "forum"
    """Holds threads only."""
    THREAD = "thread"
    PRIVATE_THREAD = "private_thread"
    """Seen by its members only, whoever sees its parent."""
    DIRECT = "direct"


@record
class Room:
    """As it is now. `parent` is the channel of a thread. `latest_post` is the newest post's id, empty when unknown."""

    platform: str
    id: str
    name: str
    kind: RoomKind = RoomKind.CHANNEL
    guild: str = ""
    guild_name: str = ""
    parent: str = ""
    parent_name: str = ""
    latest_post: str = ""

    @property
    def is_thread(self) -> bool:
        return self.kind in (RoomKind.THREAD, RoomKind.PRIVATE_THREAD)

    @property
    def place(self) -> Place:
        """A thread belongs to its channel."""
        return Place(self.platform, self.parent, self.id) if self.is_thread else Place(self.platform, self.id)

    @property
    def channel(self) -> str:
        """The channel by which scope is decided: threads count by their parent."""
        return self.parent if self.is_thread else self.id


@record
class Attachment:
    """A file that hangs on a post. The URL may expire. `text` is the beginning of what a text file says, where an agent
    that reads the whole talk is configured (`domain/file_text`).
    """

    name: str
    media_type: str
    size_bytes: int
    url: str
    text: str = ""

    @property
    def address(self) -> str:
        """The URL without what is new each time that a platform signs it."""
        return self.url.partition("?")[0]


@record
class PostChanges:
    """When a post was last edited and when it was deleted, each None if it was not."""

    edited_at: datetime | None = None
    deleted_at: datetime | None = None


@record
class Post:
    """One message of a platform. `text` is what people read: mentions as names; stickers, polls and embeds in words.

    `reply_to` is the id of the post that it answers. `nonce` is what one of our accounts sent it with, where the
    platform keeps that; it is not stored.
    """

    platform: str
    id: str
    room: str
    author: Author
    text: str
    created_at: datetime
    guild: str = ""
    parent: str = ""
    reply_to: str = ""
    changes: PostChanges = PostChanges()
    attachments: tuple[Attachment, ...] = ()
    nonce: str = ""


@record
class PostVersion:
    """The text of a post before an edit. `number` counts from 1, the first text."""

    number: int
    text: str
    written_at: datetime


def is_newer(post_id: str, than: str) -> bool:
    """Whether the first id is the newer; every id is newer than none. Platform ids are numbers that only grow."""
    return (len(post_id), post_id) > (len(than), than)
