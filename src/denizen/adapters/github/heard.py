"""What somebody wrote on GitHub, from a webhook or from REST, which speak of it in the same words. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from denizen.adapters.github.body import from_body
from denizen.adapters.github.payload import Payload, number_of, part_of, parts_of, text_of, time_of
from denizen.adapters.github.settings import PLATFORM
from denizen.adapters.github.threads import PostId, PostKind, Thread, ThreadKind, opening_id
from denizen.domain.message import Author
from denizen.domain.room import Post
from denizen.domain.subject import Subject

GHOST = Author("0", "ghost")
"""In the place of users who are not on GitHub any more."""
_BOT = "[bot]"


@dataclass(frozen=True, slots=True)
class Topic:
    """What a thread is about, and its opening."""

    subject: Subject
    opening: Heard


@dataclass(frozen=True, slots=True)
class Heard:
    """One message; `number` is GitHub's own. `association` is what its author is to the repository, in lower case;
    `body` what they wrote, with its mentions. `code` is the part of a file that it is about, `file` its path.
    """

    thread: Thread
    post: Post
    body: str
    association: str
    number: int = 0
    is_opening: bool = False
    file: str = ""
    code: str = ""


def author_of(user: Payload) -> Author:
    if not user:
        return GHOST
    login = text_of(user, "login")
    return Author(str(number_of(user, "id")), login, is_bot=text_of(user, "type") == "Bot" or login.endswith(_BOT))


def topic_of(repository: str, item: Payload, kind: PostKind = PostKind.OPENING, *, is_pull: bool = False) -> Topic:
    """Of an issue, a pull request or a discussion."""
    number, title, body = number_of(item, "number"), text_of(item, "title"), text_of(item, "body")
    is_discussion = kind is PostKind.DISCUSSION
    thread = Thread(repository, number, ThreadKind.DISCUSSION if is_discussion else ThreadKind.ISSUE)
    post_id = opening_id(repository, number, time_of(item, "created_at"), kind)
    is_pull = is_pull or bool(part_of(item, "pull_request"))
    labels = tuple(text_of(label, "name") for label in parts_of(item, "labels"))
    words = "discussion" if is_discussion else "pull request" if is_pull else "issue"
    subject = Subject(repository, number, title, words, tuple(filter(None, labels)), post_id)
    opening = Heard(
        thread,
        _post(thread, item, post_id, body),
        f"{title}\n\n{body}".strip(),
        text_of(item, "author_association").lower(),
        number,
        is_opening=True,
    )
    return Topic(subject, opening)


def comment_of(thread: Thread, item: Payload, kind: PostKind) -> Heard:
    """Of any other message."""
    created = "submitted_at" if kind is PostKind.REVIEW else "created_at"
    post_id = str(PostId(time_of(item, created), kind, number_of(item, "id")))
    body = text_of(item, "body")
    return Heard(
        thread,
        _post(thread, item, post_id, body, created),
        body,
        text_of(item, "author_association").lower(),
        number_of(item, "id"),
        file=text_of(item, "path"),
        code=text_of(item, "diff_hunk"),
    )


def review_thread(repository: str, number: int, comment: Payload) -> Thread:
    """The thread of a comment on code: that of the first one."""
    root = number_of(comment, "in_reply_to_id") or number_of(comment, "id")
    return Thread(repository, number, ThreadKind.REVIEW, root)


def answer_thread(repository: str, number: int, comment: Payload) -> Thread:
    """Where a comment of a discussion is answered."""
    root = number_of(comment, "parent_id") or number_of(comment, "id")
    return Thread(repository, number, ThreadKind.DISCUSSION, root)


def _post(thread: Thread, item: Payload, post_id: str, body: str, created: str = "created_at") -> Post:
    text, nonce = from_body(body)
    created_at, updated_at = time_of(item, created), time_of(item, "updated_at")
    return Post(
        PLATFORM,
        post_id,
        thread.room_id,
        author_of(part_of(item, "user")),
        text,
        created_at,
        guild=thread.repository,
        parent=thread.parent.room_id if thread.root else "",
        edited_at=updated_at if updated_at > created_at else None,
        nonce=nonce,
    )
