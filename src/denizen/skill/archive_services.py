"""The service for the archive of messages, as one call may see it. It is as `services` says."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import Literal, Protocol

from denizen.domain.record import record

ArchiveKey = Literal["room", "author", "day"]


@record
class ArchivedPost:
    """One message. Times are aware and UTC.

    `room` is a name, for a thread with its channel's (`general > plans`); `link` and `reply_to` may be empty;
    `attachments` are file names. `text` is the beginning or, in a search, the part around the words.
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


@record
class ArchivedEdits:
    """A message with its earlier texts, oldest first, each with the time at which it was written."""

    post: ArchivedPost
    earlier: tuple[tuple[datetime, str], ...]


@record
class ArchiveCount:
    """A number of posts. `name` is a room's or author's name, or a UTC day such as 2026-11-21."""

    name: str
    posts: int


@record
class ArchivedTalk:
    """Messages that belong together, oldest first. `found` are the ids of those that a search found; the others stand
    before or after one of them in its room, or are what it replies to.
    """

    posts: tuple[ArchivedPost, ...]
    found: frozenset[str]


@record(kw_only=True)
class TalkFilters:
    """The limits of a search that the words of its question set. `author` and `room` are names."""

    author: str = ""
    room: str = ""
    since: datetime | None = None
    until: datetime | None = None

    def __bool__(self) -> bool:
        return bool(self.author or self.room or self.since or self.until)


@record(kw_only=True)
class FoundTalk:
    """The result of a search, the best talk first. `words` are those of the question that were searched for.
    `is_widened`: as `filters` say there was nothing, so this was found without them.
    """

    talk: Sequence[ArchivedTalk]
    words: str
    filters: TalkFilters
    is_widened: bool = False


class ArchiveLookup(Protocol):
    """The archive of messages as one call may see it.

    `room` is a name or an id, empty for every room that may be seen (in `history`: the room of the call); `author` is a
    name or an id. Raises NotFound for what does not exist or may not be seen, and where nothing is archived;
    InvalidInput for an ambiguous name; Unavailable when the platform had to be asked and does not answer.
    """

    @property
    def zone(self) -> tzinfo:
        """The time zone of days and times that people name there."""
        ...

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
        """Returns messages that contain some of the words, in any case, and with an embedder also those of similar
        meaning. The best come first; of equals, the newest. Without words, the newest are returned.
        """
        ...

    async def find_talk(
        self,
        question: str,
        *,
        room: str = "",
        author: str = "",
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 20,
    ) -> FoundTalk:
        """Finds at most `limit` messages as `search` does, with those around them. Where the arguments leave it open,
        the words of the question say whose messages, of which room and time; without other words, the newest count.
        """
        ...

    async def list_absent(self, words: str) -> Sequence[str]:
        """Returns those of the words that no message has which may be seen, in any room."""
        ...

    async def history(
        self, room: str = "", *, before: str = "", after: str = "", limit: int = 50
    ) -> Sequence[ArchivedPost]:
        """Returns messages oldest first: the newest `limit`, those before the message `before`, or the first `limit`
        after `after`.
        """
        ...

    async def around(self, post_id: str, *, each_side: int = 5) -> Sequence[ArchivedPost]:
        """Returns the message with those before and after it in its room, oldest first."""
        ...

    async def edits(self, post_id: str) -> ArchivedEdits:
        """Returns the earlier texts of a message, also of a deleted one, for its author and those who moderate the
        room. Raises NotAllowed for others, and NotFound for a deleted message that they ask for.
        """
        ...

    async def stats(
        self, by: ArchiveKey, *, room: str = "", since: datetime | None = None, limit: int = 20
    ) -> Sequence[ArchiveCount]:
        """Returns counts, largest first; by day, newest first."""
        ...
