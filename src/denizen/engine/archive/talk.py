"""Talk around what a search has found, and what a question says of whom, where and when, within one asker's view.

A post that the asker may not see is no neighbour of any: whatever is read here is asked of the view once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, tzinfo

from denizen.domain.message import Author
from denizen.domain.principal import PrincipalKind
from denizen.domain.room import Post
from denizen.domain.talk_excerpt import PostSurroundings, is_same_talk
from denizen.domain.talk_question import TalkQuestion, names_speaker, read_talk_question
from denizen.engine.archive.view import ArchiveView
from denizen.ports.store import Store, UnitOfWork


async def list_authors(work: UnitOfWork, view: ArchiveView, rooms: Sequence[str]) -> list[Author]:
    """Returns who wrote in the rooms, without those who opted out."""
    authors = await work.archive.list_authors(view.platform, rooms=rooms)
    return [author for author in authors if author.id not in view.hidden]


async def read_question(store: Store, view: ArchiveView, text: str, *, now: datetime, zone: tzinfo) -> TalkQuestion:
    """Reads a question of the viewer. It can name only rooms of the view, and people who wrote there."""
    authors: dict[str, str] = {}
    if names_speaker(text):
        async with store.work(write=False) as work:
            authors = {author.id: author.name for author in await list_authors(work, view, list(view.rooms))}
    kind, asker = view.viewer.kind, view.viewer.id.removeprefix(f"{view.platform}:")
    return read_talk_question(
        text,
        rooms={room.id: room.name for room in view.rooms.values()},
        authors=authors,
        asker=asker if kind is PrincipalKind.PLATFORM_USER and asker in authors else "",
        now=now,
        zone=zone,
    )


async def list_surroundings(work: UnitOfWork, view: ArchiveView, found: Sequence[Post]) -> list[PostSurroundings]:
    """Returns each post with those of the same talk right before and after it, and the one that it replies to."""
    ids = [post.reply_to for post in found if post.reply_to]
    replied = {post.id: post for post in await work.archive.find_many(view.platform, ids)}
    surroundings: list[PostSurroundings] = []
    for post in found:
        earlier = await work.archive.list_posts(view.platform, post.room, before=post.id, limit=1)
        later = await work.archive.list_posts(view.platform, post.room, after=post.id, limit=1)
        around = [each for each in (*earlier, *later) if is_same_talk(each, post)]
        if post.reply_to in replied:
            around.append(replied[post.reply_to])
        surroundings.append(PostSurroundings(post, tuple(each for each in around if view.sees(each))))
    return surroundings
