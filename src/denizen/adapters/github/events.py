"""News from GitHub: webhooks, their signatures, and messages whose webhook never came (GitHub does not repeat them)."""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

import anyio

from denizen.adapters.github.api import GitHubApi
from denizen.adapters.github.client import GitHubRequest, Payload, format_time, get_number, get_object, get_text
from denizen.adapters.github.settings import PLATFORM
from denizen.adapters.github.threads import (
    GitHubMessage,
    GitHubThread,
    PostId,
    PostKind,
    ThreadTopic,
    answer_thread,
    read_comment,
    read_topic,
    review_thread,
)
from denizen.domain.errors import DenizenError, InvalidInput, NotAllowed, NotFound
from denizen.domain.record import record
from denizen.domain.room import Room, RoomKind

_PREFIX = "sha256="


def sign(secret: str, body: bytes) -> str:
    """Returns the signature header of a body: HMAC-SHA256 over its bytes."""
    return _PREFIX + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def is_signed(secret: str, body: bytes, signature: str) -> bool:
    """Whether the signature is right, compared in constant time. Always False without a secret."""
    return bool(secret) and hmac.compare_digest(sign(secret, body).encode(), signature.strip().encode())


EVENTS = (
    "issues",
    "issue_comment",
    "pull_request",
    "pull_request_review",
    "pull_request_review_comment",
    "discussion",
    "discussion_comment",
)
"""The events that an App has to subscribe to."""


class MessageChange(StrEnum):
    """The kinds of changes to a message."""

    MADE = "made"
    EDITED = "edited"
    GONE = "gone"


@record
class GitHubEvent:
    """A webhook. `message` is None when it is about no message; `installation` is 0 for the webhook of a repository."""

    repository: str
    installation: int
    change: MessageChange = MessageChange.MADE
    topic: ThreadTopic | None = None
    message: GitHubMessage | None = None


_CHANGES = {
    "opened": MessageChange.MADE,
    "created": MessageChange.MADE,
    "submitted": MessageChange.MADE,
    "edited": MessageChange.EDITED,
    "deleted": MessageChange.GONE,
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


def parse_event(name: str, payload: Payload) -> GitHubEvent:
    """Parses a webhook. `name` is the value of the header `X-GitHub-Event`."""
    repository = get_text(get_object(payload, "repository"), "full_name")
    installation = get_number(get_object(payload, "installation"), "id")
    action = get_text(payload, "action")
    change = _CHANGES.get(action)
    if not repository or change is None or action not in _ACTIONS.get(name, ()):
        return GitHubEvent(repository, installation)
    topic, message = _read_topic_and_post(name, repository, payload)
    if not message.body.strip() and not message.is_opening:  # a review without a text of its own
        return GitHubEvent(repository, installation)
    return GitHubEvent(repository, installation, change, topic, message)


def _read_topic_and_post(name: str, repository: str, payload: Payload) -> tuple[ThreadTopic, GitHubMessage]:
    if name.startswith("discussion"):
        topic = read_topic(repository, get_object(payload, "discussion"), PostKind.DISCUSSION)
        if name == "discussion":
            return topic, topic.opening
        comment = get_object(payload, "comment")
        thread = answer_thread(repository, topic.subject.number, comment)
        return topic, read_comment(thread, comment, PostKind.DISCUSSION_COMMENT)
    if name.startswith("pull_request"):
        return _read_pull(name, repository, payload)
    topic = read_topic(repository, get_object(payload, "issue"))
    if name == "issues":
        return topic, topic.opening
    thread = GitHubThread(repository, topic.subject.number)
    return topic, read_comment(thread, get_object(payload, "comment"), PostKind.COMMENT)


def _read_pull(name: str, repository: str, payload: Payload) -> tuple[ThreadTopic, GitHubMessage]:
    topic = read_topic(repository, get_object(payload, "pull_request"), is_pull=True)
    number = topic.subject.number
    match name:
        case "pull_request_review":
            review = get_object(payload, "review")
            return topic, read_comment(GitHubThread(repository, number), review, PostKind.REVIEW)
        case "pull_request_review_comment":
            comment = get_object(payload, "comment")
            return topic, read_comment(review_thread(repository, number, comment), comment, PostKind.REVIEW_COMMENT)
        case _:
            return topic, topic.opening


MAX_REPOSITORIES = 100
"""A scan covers only the most recently used repositories."""
SIDE_BY_SIDE = 4

_NUMBER = re.compile(r"/(?P<number>\d+)\Z")
_log = logging.getLogger("denizen.github")


@record
class GitHubUpdate:
    """One message with the topic of its thread."""

    topic: ThreadTopic
    message: GitHubMessage


async def list_updates(api: GitHubApi, repositories: Sequence[str], since: datetime) -> list[GitHubUpdate]:
    """Returns the messages since then, oldest first, but of no repository that refuses. Raises if GitHub is silent."""
    scan = _UpdateScan(api, since)
    async with anyio.create_task_group() as group:
        for repository in repositories[:MAX_REPOSITORIES]:
            group.start_soon(scan.read, repository)
    if scan.faults:
        raise scan.faults[0]
    return sorted(scan.found, key=lambda update: update.message.post.id)


class _UpdateScan:
    """Collects the messages since a moment, a few repositories at a time."""

    def __init__(self, api: GitHubApi, since: datetime) -> None:
        self._api = api
        self._since = since
        self._limiter = anyio.CapacityLimiter(SIDE_BY_SIDE)
        self.found: list[GitHubUpdate] = []
        self.faults: list[DenizenError] = []

    async def read(self, repository: str) -> None:
        try:
            async with self._limiter:
                rows = await self._list(repository, "/issues", state="all")
                topics = {each.subject.number: each for each in (read_topic(repository, row) for row in rows)}
                found = [GitHubUpdate(topic, topic.opening) for topic in topics.values()]
                for row in await self._list(repository, "/issues/comments") if topics else ():
                    if topic := topics.get(_number(row, "issue_url")):
                        thread = GitHubThread(repository, topic.subject.number)
                        found.append(GitHubUpdate(topic, read_comment(thread, row, PostKind.COMMENT)))
                has_pulls = any(topic.subject.kind == "pull request" for topic in topics.values())
                for row in await self._list(repository, "/pulls/comments") if has_pulls else ():
                    if topic := topics.get(_number(row, "pull_request_url")):
                        thread = review_thread(repository, topic.subject.number, row)
                        found.append(GitHubUpdate(topic, read_comment(thread, row, PostKind.REVIEW_COMMENT)))
        except (NotFound, NotAllowed, InvalidInput) as error:
            _log.info("repository left out", extra={"repository": repository, **error.fields})
        except DenizenError as error:  # raised after the group, which would wrap it
            self.faults.append(error)
        else:
            self.found += [each for each in found if each.message.post.created_at >= self._since]

    async def _list(self, repository: str, path: str, **more: str) -> list[dict[str, Any]]:
        params = {"since": format_time(self._since), "sort": "updated", "direction": "desc", **more}
        call = GitHubRequest("GET", f"/repos/{repository}{path}", "look for new messages", params=params)
        return await self._api.list_all(call, repository)


def list_rooms(updates: Sequence[GitHubUpdate], repositories: Sequence[str], now: datetime) -> list[Room]:
    """Returns the rooms with their newest posts, and the repositories, whose rooms say how far they were read."""
    latest = str(PostId(now, PostKind.OPENING, 0))
    rooms = {
        each: Room(PLATFORM, each, each, RoomKind.FORUM, guild=each, guild_name=each, latest_post=latest)
        for each in repositories
    }
    for each in updates:  # the newest comes last
        thread = each.message.thread
        rooms[thread.room_id] = thread.room(each.topic.subject.title, latest_post=each.message.post.id)
        if thread.root and thread.parent.room_id not in rooms:
            rooms[thread.parent.room_id] = thread.parent.room(each.topic.subject.title)
    return list(rooms.values())


def _number(row: Payload, key: str) -> int:
    found = _NUMBER.search(get_text(row, key))
    return int(found["number"]) if found else 0
