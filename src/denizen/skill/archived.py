"""What tools can ask of the archive: posts of the platform on which they were called, as plain records.

Everything is limited to rooms that the asker and everybody who reads the answer may see, at the moment of the call. A
room or post that is not among them and one that does not exist give the same NotFound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

ArchiveKey = Literal["room", "author", "day"]


@dataclass(frozen=True, slots=True)
class ArchivedPost:
    """One message. `room` is a name, with its channel's for a thread (`general > plans`); `link` and `reply_to` may be
    empty; `attachments` are file names. In a search `text` is the part around the words, else the
    beginning. Times are aware and UTC.
    """

    id: str
    room: str
    room_id: str
    author: str
    author_id: str
    at: datetime
    text: str
    link: str = ""
    reply_to: str = ""
    edited_at: datetime | None = None
    deleted_at: datetime | None = None
    attachments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ArchivedEdits:
    """A message with its earlier texts, oldest first, each with the time at which it was written."""

    post: ArchivedPost
    earlier: tuple[tuple[datetime, str], ...]


@dataclass(frozen=True, slots=True)
class ArchiveCount:
    """`name` is a room's or author's name, or a UTC day such as 2026-11-21."""

    name: str
    posts: int


class ArchiveLookup(Protocol):
    """The archive as one call may see it.

    `room` is a name or an id, empty for every room that may be seen (in `history`: the room of the call); `author` is a
    name or an id. Raises NotFound for what is not there or may not be seen, and where nothing is archived; InvalidInput
    for a name that means several; Unavailable when the platform had to be asked and does not answer.
    """

    async def search(
        self,
        words: str,
        *,
        room: str = "",
        author: str = "",
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 20,
    ) -> Sequence[ArchivedPost]:
        """Messages that contain all the words, in any case, and with an embedder those that mean something like them;
        the best first. By words alone the newest first.
        """
        ...

    async def history(
        self, room: str = "", *, before: str = "", after: str = "", limit: int = 50
    ) -> Sequence[ArchivedPost]:
        """Oldest first: the newest `limit`, before the message `before`; or the oldest `limit` after `after`."""
        ...

    async def around(self, post_id: str, *, each_side: int = 5) -> Sequence[ArchivedPost]:
        """The message with those before and after it in its room, oldest first."""
        ...

    async def edits(self, post_id: str) -> ArchivedEdits:
        """Also of a deleted message. For its author and those who moderate the room; NotAllowed for others, to whom a
        deleted message does not exist.
        """
        ...

    async def stats(
        self, by: ArchiveKey, *, room: str = "", since: datetime | None = None, limit: int = 20
    ) -> Sequence[ArchiveCount]:
        """Most first; by day newest first."""
        ...
