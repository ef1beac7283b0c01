"""What was written in repositories since a moment: for messages whose webhook never came (GitHub does not repeat them).

Three lists of each repository. Reviews without comments and discussions are in none of them; those are heard of by
webhooks alone.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import anyio

from denizen.adapters.github.api import Api
from denizen.adapters.github.heard import Heard, Topic, comment_of, review_thread, topic_of
from denizen.adapters.github.payload import Payload, text_of
from denizen.adapters.github.requests import Call
from denizen.adapters.github.settings import PLATFORM
from denizen.adapters.github.threads import PostId, PostKind, Thread
from denizen.domain.errors import DenizenError, InvalidInput, NotAllowed, NotFound
from denizen.domain.room import Room, RoomKind

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
