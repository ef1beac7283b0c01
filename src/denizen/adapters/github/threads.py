"""Where talk is on GitHub, as ids of rooms and posts. Pure.

A room is an issue or pull request (`owner/name#12`), a thread of its review (`…#12/review/345`, by its first comment),
a discussion (`…#12/discussion`), or the answers to one comment there (`…#12/discussion/345`). GitHub numbers comments
of each kind apart, so the id of a post is made of its time, its kind and its number: it is one of a kind on the
platform, and of two posts the later has the higher one, as `domain/room` wants it.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum, StrEnum

from denizen.adapters.github.settings import PLATFORM
from denizen.domain.errors import NotFound
from denizen.domain.room import Room, RoomKind

_ROOM = re.compile(
    r"(?P<repository>[^/\s#]+/[^/\s#]+)#(?P<number>\d+)(?:/(?P<kind>review|discussion)(?:/(?P<root>\d+))?)?"
)
_POST = re.compile(r"(?P<time>\d{10})(?P<kind>\d)(?P<number>\d{15})")
_HASHED = 10**15


class ThreadKind(StrEnum):
    ISSUE = ""
    """A pull request's conversation too."""
    REVIEW = "review"
    DISCUSSION = "discussion"


class PostKind(IntEnum):
    """Stands in the ids of posts: numbers may not change."""

    OPENING = 0
    REVIEW = 1
    """Before comments, since one of the same second may answer it."""
    COMMENT = 2
    REVIEW_COMMENT = 3
    DISCUSSION = 4
    DISCUSSION_COMMENT = 5


@dataclass(frozen=True, slots=True)
class Thread:
    """`root` is the first comment of a review's thread, or the comment of a discussion that is answered; 0 for none."""

    repository: str
    number: int
    kind: ThreadKind = ThreadKind.ISSUE
    root: int = 0

    @property
    def room_id(self) -> str:
        tail = f"/{self.kind}" if self.kind else ""
        return f"{self.repository}#{self.number}{tail}" + (f"/{self.root}" if self.root else "")

    @property
    def parent(self) -> Thread:
        """The issue, pull request or discussion as a whole."""
        kind = ThreadKind.DISCUSSION if self.kind is ThreadKind.DISCUSSION else ThreadKind.ISSUE
        return Thread(self.repository, self.number, kind)

    def room(self, title: str, *, latest_post: str = "") -> Room:
        """Reviews and answers are threads of what they belong to; the repository is the community."""
        name = f"{self.repository}#{self.number} {title}".strip()
        about = {"guild": self.repository, "guild_name": self.repository, "latest_post": latest_post}
        if not self.root:
            return Room(PLATFORM, self.room_id, name, RoomKind.CHANNEL, **about)
        parent = self.parent.room_id
        return Room(PLATFORM, self.room_id, name, RoomKind.THREAD, **about, parent=parent, parent_name=name)


@dataclass(frozen=True, slots=True)
class PostId:
    """`number` is GitHub's own, of that kind of thing."""

    created_at: datetime
    kind: PostKind
    number: int

    def __str__(self) -> str:
        return f"{int(self.created_at.timestamp()):010d}{self.kind:d}{self.number:015d}"


def thread_of(room_id: str) -> Thread:
    """Raises NotFound for what is no room."""
    found = _ROOM.fullmatch(room_id)
    if found is None:
        raise NotFound("There is no such thread on GitHub.", code="github_gone")
    return Thread(found["repository"], int(found["number"]), ThreadKind(found["kind"] or ""), int(found["root"] or 0))


def post_id_of(text: str) -> PostId:
    """Raises NotFound for what is no post."""
    found = _POST.fullmatch(text)
    if found is None:
        raise NotFound("There is no such message on GitHub.", code="github_gone")
    time = datetime.fromtimestamp(int(found["time"]), UTC)
    return PostId(time, PostKind(int(found["kind"])), int(found["number"]))


def opening_id(repository: str, number: int, created_at: datetime, kind: PostKind = PostKind.OPENING) -> str:
    """Of what begins a thread. GitHub gives a pull request two numbers, as such and as an issue; this is neither."""
    digest = hashlib.sha256(f"{repository.lower()}#{number}".encode()).hexdigest()
    return str(PostId(created_at, kind, int(digest, 16) % _HASHED))
