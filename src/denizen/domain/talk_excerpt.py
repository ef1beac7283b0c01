"""Excerpts of talk: what was found, with what stands around it, and what lies together as one. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from denizen.domain.record import record
from denizen.domain.room import Post

SAME_TALK = timedelta(days=1)
"""Posts of a room that are further apart are not one talk."""


@record
class PostSurroundings:
    """A post that was found, and those around it: the one before and after it in its room, and what it replies to."""

    found: Post
    around: tuple[Post, ...] = ()


@record
class TalkExcerpt:
    """Posts in the order in which they were written. `found` are the ids of those that a search found."""

    posts: tuple[Post, ...]
    found: frozenset[str]


def is_same_talk(one: Post, other: Post) -> bool:
    return one.room == other.room and abs(one.created_at - other.created_at) <= SAME_TALK


def merge_excerpts(hits: Sequence[PostSurroundings]) -> list[TalkExcerpt]:
    """Makes one excerpt of all hits whose surroundings share a post; the excerpt of the best hit comes first. `hits`
    are the best first.
    """
    excerpts: list[tuple[dict[str, Post], set[str]]] = []
    for hit in hits:
        posts = {post.id: post for post in (hit.found, *hit.around)}
        shared = [each for each in excerpts if not each[0].keys().isdisjoint(posts)]
        if not shared:
            excerpts.append((posts, {hit.found.id}))
            continue
        best, *others = shared
        best[0].update(posts)
        best[1].add(hit.found.id)
        for other in others:
            best[0].update(other[0])
            best[1].update(other[1])
        excerpts = [each for each in excerpts if not any(each is other for other in others)]
    return [
        TalkExcerpt(tuple(sorted(posts.values(), key=lambda post: (len(post.id), post.id))), frozenset(found))
        for posts, found in excerpts
    ]
