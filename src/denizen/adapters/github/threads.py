"""Threads and messages of GitHub, and their ids as rooms and posts. Pure.

A room is an issue or pull request (`owner/name#12`), a thread of its review (`…#12/review/345`, by its first
comment), a discussion (`…#12/discussion`), or the answers to one comment there (`…#12/discussion/345`). GitHub
numbers the kinds of comments separately. So the id of a post consists of its time, kind and number: it is unique on
the platform, and a later post has a higher id, as `domain/room` demands.
"""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from enum import IntEnum, StrEnum

from denizen.adapters.github.client import Payload, get_number, get_object, get_text, get_time, list_items
from denizen.adapters.github.markdown import from_body
from denizen.adapters.github.settings import PLATFORM
from denizen.domain.errors import NotFound
from denizen.domain.message import Author
from denizen.domain.record import record
from denizen.domain.room import Post, PostChanges, Room, RoomKind
from denizen.domain.subject import Subject

_ROOM = re.compile(
    r"(?P<repository>[^/\s#]+/[^/\s#]+)#(?P<number>\d+)(?:/(?P<kind>review|discussion)(?:/(?P<root>\d+))?)?"
)
_POST = re.compile(r"(?P<time>\d{10})(?P<kind>\d)(?P<number>\d{15})")
# The id of an opening has no number of its own; a hash below this bound stands in.
_HASHED = 10**15


class ThreadKind(StrEnum):
    ISSUE = ""
    """An issue, or the conversation of a pull request."""
    REVIEW = "review"
    DISCUSSION = "discussion"


class PostKind(IntEnum):
    """The kind of a post. The numbers are part of stored ids, so they must not change."""

    OPENING = 0
    REVIEW = 1
    """Sorts before comments, since a comment of the same second may answer it."""
    COMMENT = 2
    REVIEW_COMMENT = 3
    DISCUSSION = 4
    DISCUSSION_COMMENT = 5


@record
class GitHubThread:
    """A thread. `root` is the first comment of a review's thread, or the answered discussion comment; 0 for none."""

    repository: str
    number: int
    kind: ThreadKind = ThreadKind.ISSUE
    root: int = 0

    @property
    def room_id(self) -> str:
        tail = f"/{self.kind}" if self.kind else ""
        return f"{self.repository}#{self.number}{tail}" + (f"/{self.root}" if self.root else "")

    @property
    def issue_path(self) -> str:
        """The REST path of the issue or pull request."""
        return f"/repos/{self.repository}/issues/{self.number}"

    @property
    def parent(self) -> GitHubThread:
        """The issue, pull request or discussion as a whole."""
        kind = ThreadKind.DISCUSSION if self.kind is ThreadKind.DISCUSSION else ThreadKind.ISSUE
        return GitHubThread(self.repository, self.number, kind)

    def room(self, title: str, *, latest_post: str = "") -> Room:
        """Returns the room. Reviews and answers are threads of what they belong to; the repository is the community."""
        name = f"{self.repository}#{self.number} {title}".strip()
        about = {"guild": self.repository, "guild_name": self.repository, "latest_post": latest_post}
        if not self.root:
            return Room(PLATFORM, self.room_id, name, RoomKind.CHANNEL, **about)
        parent = self.parent.room_id
        return Room(PLATFORM, self.room_id, name, RoomKind.THREAD, **about, parent=parent, parent_name=name)


@record
class PostId:
    """The id of a post. `number` is GitHub's own for that kind."""

    created_at: datetime
    kind: PostKind
    number: int

    def __str__(self) -> str:
        return f"{int(self.created_at.timestamp()):010d}{self.kind:d}{self.number:015d}"


def parse_thread(room_id: str) -> GitHubThread:
    """Parses a room id. Raises NotFound for other text."""
    found = _ROOM.fullmatch(room_id)
    if found is None:
        raise NotFound("There is no such thread on GitHub.", code="github_gone")
    return GitHubThread(
        found["repository"], int(found["number"]), ThreadKind(found["kind"] or ""), int(found["root"] or 0)
    )


def parse_post_id(text: str) -> PostId:
    """Parses a post id. Raises NotFound for other text."""
    found = _POST.fullmatch(text)
    if found is None:
        raise NotFound("There is no such message on GitHub.", code="github_gone")
    time = datetime.fromtimestamp(int(found["time"]), UTC)
    return PostId(time, PostKind(int(found["kind"])), int(found["number"]))


def opening_id(repository: str, number: int, created_at: datetime, kind: PostKind = PostKind.OPENING) -> str:
    """Returns the id of a thread's opening. GitHub's numbers are not used: a pull request has two of them."""
    digest = hashlib.sha256(f"{repository.lower()}#{number}".encode()).hexdigest()
    return str(PostId(created_at, kind, int(digest, 16) % _HASHED))


GHOST = Author("0", "ghost")
"""GitHub's placeholder for deleted users."""
_BOT = "[bot]"


@record
class ThreadTopic:
    """The subject of a thread, and its opening."""

    subject: Subject
    opening: GitHubMessage


@record
class GitHubMessage:
    """One message. `number` is GitHub's own, `body` the text with its mentions, and `association` the author's relation
    to the repository in lower case.

    `file` and `code` are the path and the part of the file that a review comment is about.
    """

    thread: GitHubThread
    post: Post
    body: str
    association: str
    number: int = 0
    is_opening: bool = False
    file: str = ""
    code: str = ""


def read_author(user: Payload) -> Author:
    """Reads the author of a message."""
    if not user:
        return GHOST
    login = get_text(user, "login")
    return Author(str(get_number(user, "id")), login, is_bot=get_text(user, "type") == "Bot" or login.endswith(_BOT))


def read_topic(
    repository: str, item: Payload, kind: PostKind = PostKind.OPENING, *, is_pull: bool = False
) -> ThreadTopic:
    """Reads the topic of an issue, a pull request or a discussion."""
    number, title, body = get_number(item, "number"), get_text(item, "title"), get_text(item, "body")
    is_discussion = kind is PostKind.DISCUSSION
    thread = GitHubThread(repository, number, ThreadKind.DISCUSSION if is_discussion else ThreadKind.ISSUE)
    post_id = opening_id(repository, number, get_time(item, "created_at"), kind)
    is_pull = is_pull or bool(get_object(item, "pull_request"))
    labels = tuple(get_text(label, "name") for label in list_items(item, "labels"))
    words = "discussion" if is_discussion else "pull request" if is_pull else "issue"
    subject = Subject(
        origin=repository, number=number, title=title, kind=words, labels=tuple(filter(None, labels)), opening=post_id
    )
    opening = GitHubMessage(
        thread,
        _post(thread, item, post_id, body),
        f"{title}\n\n{body}".strip(),
        get_text(item, "author_association").lower(),
        number,
        is_opening=True,
    )
    return ThreadTopic(subject, opening)


def read_comment(thread: GitHubThread, item: Payload, kind: PostKind) -> GitHubMessage:
    """Reads any message but an opening."""
    created = "submitted_at" if kind is PostKind.REVIEW else "created_at"
    post_id = str(PostId(get_time(item, created), kind, get_number(item, "id")))
    body = get_text(item, "body")
    return GitHubMessage(
        thread,
        _post(thread, item, post_id, body, created),
        body,
        get_text(item, "author_association").lower(),
        get_number(item, "id"),
        file=get_text(item, "path"),
        code=get_text(item, "diff_hunk"),
    )


def review_thread(repository: str, number: int, comment: Payload) -> GitHubThread:
    """Returns the thread of a comment on code, which its first comment names."""
    root = get_number(comment, "in_reply_to_id") or get_number(comment, "id")
    return GitHubThread(repository, number, ThreadKind.REVIEW, root)


def answer_thread(repository: str, number: int, comment: Payload) -> GitHubThread:
    """Returns the thread in which a comment of a discussion is answered."""
    root = get_number(comment, "parent_id") or get_number(comment, "id")
    return GitHubThread(repository, number, ThreadKind.DISCUSSION, root)


def _post(thread: GitHubThread, item: Payload, post_id: str, body: str, created: str = "created_at") -> Post:
    text, nonce = from_body(body)
    created_at, updated_at = get_time(item, created), get_time(item, "updated_at")
    return Post(
        platform=PLATFORM,
        id=post_id,
        room=thread.room_id,
        author=read_author(get_object(item, "user")),
        text=text,
        created_at=created_at,
        guild=thread.repository,
        parent=thread.parent.room_id if thread.root else "",
        changes=PostChanges(edited_at=updated_at if updated_at > created_at else None),
        nonce=nonce,
    )
