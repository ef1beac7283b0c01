"""Whether a webhook is GitHub's own: HMAC-SHA256 over its bytes, compared in constant time (inventory S33). Pure."""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

import anyio

from denizen.adapters.github.api import Api
from denizen.adapters.github.client import Call, Payload, number_of, part_of, text_of
from denizen.adapters.github.settings import PLATFORM
from denizen.adapters.github.threads import (
    Heard,
    PostId,
    PostKind,
    Thread,
    Topic,
    answer_thread,
    comment_of,
    review_thread,
    topic_of,
)
from denizen.domain.errors import DenizenError, InvalidInput, NotAllowed, NotFound
from denizen.domain.room import Room, RoomKind

HEADER = "x-hub-signature-256"
_PREFIX = "sha256="


def sign(secret: str, body: bytes) -> str:
    """What the header says of a body."""
    return _PREFIX + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def is_signed(secret: str, body: bytes, signature: str) -> bool:
    """False without a secret, whatever the signature is."""
    return bool(secret) and hmac.compare_digest(sign(secret, body).encode(), signature.strip().encode())


EVENTS = (
    "issues", "issue_comment", "pull_request", "pull_request_review", "pull_request_review_comment", "discussion",
    "discussion_comment",
)  # fmt: skip
"""What an App has to subscribe to."""


class Change(StrEnum):
    MADE = "made"
    EDITED = "edited"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Event:
    """`heard` is None for an event that is about no message; `installation` 0 for a webhook of a repository."""

    repository: str
    installation: int
    change: Change = Change.MADE
    topic: Topic | None = None
    heard: Heard | None = None


_CHANGES = {
    "opened": Change.MADE,
    "created": Change.MADE,
    "submitted": Change.MADE,
    "edited": Change.EDITED,
    "deleted": Change.GONE,
    "dismissed": None,
}
_ACTIONS = {
    "issues": {"opened", "edited", "deleted"},
    "pull_request": {"opened", "edited"},
    "discussion": {"created", "edited", "deleted"},
    "issue_comment": {"created", "edited", "deleted"},
    "pull_request_review": {"submitted", "edited"},
    "pull_request_review_comment": {"created", "edited", "deleted"},
    "discussion_comment": {"created", "edited", "deleted"},
}


def read_event(name: str, payload: Payload) -> Event:
    """`name` is that of the header `X-GitHub-Event`."""
    repository = text_of(part_of(payload, "repository"), "full_name")
    installation = number_of(part_of(payload, "installation"), "id")
    action = text_of(payload, "action")
    change = _CHANGES.get(action)
    if not repository or change is None or action not in _ACTIONS.get(name, ()):
        return Event(repository, installation)
    topic, heard = _read_topic_and_post(name, repository, payload)
    if not heard.body.strip() and not heard.is_opening:  # a review without words
        return Event(repository, installation)
    return Event(repository, installation, change, topic, heard)


def _read_topic_and_post(name: str, repository: str, payload: Payload) -> tuple[Topic, Heard]:
    if name.startswith("discussion"):
        topic = topic_of(repository, part_of(payload, "discussion"), PostKind.DISCUSSION)
        if name == "discussion":
            return topic, topic.opening
        comment = part_of(payload, "comment")
        thread = answer_thread(repository, topic.subject.number, comment)
        return topic, comment_of(thread, comment, PostKind.DISCUSSION_COMMENT)
    if name.startswith("pull_request"):
        return _read_pull(name, repository, payload)
    topic = topic_of(repository, part_of(payload, "issue"))
    if name == "issues":
        return topic, topic.opening
    thread = Thread(repository, topic.subject.number)
    return topic, comment_of(thread, part_of(payload, "comment"), PostKind.COMMENT)


def _read_pull(name: str, repository: str, payload: Payload) -> tuple[Topic, Heard]:
    topic = topic_of(repository, part_of(payload, "pull_request"), is_pull=True)
    number = topic.subject.number
    match name:
        case "pull_request_review":
            review = part_of(payload, "review")
            return topic, comment_of(Thread(repository, number), review, PostKind.REVIEW)
        case "pull_request_review_comment":
            comment = part_of(payload, "comment")
            return topic, comment_of(review_thread(repository, number, comment), comment, PostKind.REVIEW_COMMENT)
        case _:
            return topic, topic.opening


MAX_REPOSITORIES = 100
"""The most recently used ones are looked through."""
SIDE_BY_SIDE = 4

_NUMBER = re.compile(r"/(?P<number>\d+)\Z")
_log = logging.getLogger("denizen.github")


@dataclass(frozen=True, slots=True)
class News:
    """One message with what its thread is about."""

    topic: Topic
    heard: Heard


async def read_news(api: Api, repositories: Sequence[str], since: datetime) -> list[News]:
    """Oldest first. What one repository refuses is left out; raises when GitHub does not answer."""
    limiter, found = anyio.CapacityLimiter(SIDE_BY_SIDE), list[News]()
    faults: list[DenizenError] = []

    async def read(repository: str) -> None:
        async with limiter:
            try:
                found.extend(await _list_news(api, repository, since))
            except (NotFound, NotAllowed, InvalidInput) as error:
                _log.info("repository left out", extra={"repository": repository, "code": error.code})
            except DenizenError as error:  # not from within the group, which would wrap it
                faults.append(error)

    async with anyio.create_task_group() as group:
        for repository in repositories[:MAX_REPOSITORIES]:
            group.start_soon(read, repository)
    if faults:
        raise faults[0]
    return sorted(found, key=lambda news: news.heard.post.id)


def rooms_of(news: Sequence[News], repositories: Sequence[str], now: datetime) -> list[Room]:
    """The rooms with their newest posts; and the repositories, so that a later start knows that they were read."""
    rooms = {each: _shelf(each, now) for each in repositories}
    for each in news:  # the newest comes last
        thread = each.heard.thread
        rooms[thread.room_id] = thread.room(each.topic.subject.title, latest_post=each.heard.post.id)
        if thread.root and thread.parent.room_id not in rooms:
            rooms[thread.parent.room_id] = thread.parent.room(each.topic.subject.title)
    return list(rooms.values())


def _shelf(repository: str, now: datetime) -> Room:
    latest = str(PostId(now, PostKind.OPENING, 0))
    return Room(PLATFORM, repository, repository, RoomKind.FORUM, repository, repository, latest_post=latest)


async def _list_news(api: Api, repository: str, since: datetime) -> list[News]:
    moment = f"{since.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    params = {"since": moment, "sort": "updated", "direction": "desc"}

    async def rows(path: str, **more: str) -> list[dict[str, object]]:
        call = Call("GET", f"/repos/{repository}{path}", "look for news", params={**params, **more})
        return await api.list_all(call, repository)

    topics = {
        each.subject.number: each for row in await rows("/issues", state="all") for each in [_topic(repository, row)]
    }
    found = [News(topic, topic.opening) for topic in topics.values()]
    for row in await rows("/issues/comments") if topics else ():
        topic = topics.get(_number(row, "issue_url"))
        if topic is not None:
            thread = Thread(repository, topic.subject.number)
            found.append(News(topic, comment_of(thread, row, PostKind.COMMENT)))
    for row in await rows("/pulls/comments") if any(t.subject.kind == "pull request" for t in topics.values()) else ():
        topic = topics.get(_number(row, "pull_request_url"))
        if topic is not None:
            thread = review_thread(repository, topic.subject.number, row)
            found.append(News(topic, comment_of(thread, row, PostKind.REVIEW_COMMENT)))
    return [news for news in found if news.heard.post.created_at >= since]


def _topic(repository: str, row: Payload) -> Topic:
    return topic_of(repository, row)


def _number(row: Payload, key: str) -> int:
    found = _NUMBER.search(text_of(row, key))
    return int(found["number"]) if found else 0
