"""Searching the archive by words and by meaning, fused by rank, within what one asker may see.

By words a post has to contain all of them, and the newest comes first; without an embedder, or while it does not
answer, that is all. Called by `lookup`, which asks the platform where the archive has nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from denizen.domain.ranking import fuse
from denizen.domain.room import Post
from denizen.domain.words import excerpt_of, words_of
from denizen.engine.archive.mirror import Mirror
from denizen.engine.archive.view import View, get_author
from denizen.engine.meaning import Meaning, Question, usual_similarity
from denizen.ports.archive import POST_VECTORS, CountBy, PostHit, PostQuery, post_vector_key, room_namespace
from denizen.ports.store import Store, UnitOfWork

RANKED = 50
"""Of each ranking."""
NARROWED = 1000
"""By meaning, where most may be of other authors or times: those are passed over afterwards."""

MAX_AUTHORS = 10_000


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for, as it was written."""

    words: str
    room: str
    author: str
    since: datetime | None
    until: datetime | None
    limit: int

    def fits(self, post: Post) -> bool:
        """Whether a search by words would find it."""
        author = self.author.strip().strip("<@!>").strip().casefold()
        return (
            set(words_of(self.words)) <= set(words_of(post.text))
            and author in {"", post.author.id, post.author.name.casefold()}
            and _is_within(post, self.since, self.until)
        )


class ArchiveSearch:
    """One for a process. `similarity` is asked each time."""

    def __init__(
        self, store: Store, mirror: Mirror, meaning: Meaning, similarity: Callable[[], float] = usual_similarity
    ) -> None:
        self._store = store
        self._mirror = mirror
        self._meaning = meaning
        self._similarity = similarity

    async def __call__(self, view: View, wanted: Wanted) -> list[PostHit]:
        """The best first. Raises NotFound for a room that is not there, and for an author who wrote nothing there,
        unless none of it is archived.
        """
        rooms = [room.id for room in view.choose(wanted.room)]
        asked = await self._find_meaning(wanted.words)
        async with self._store.work(write=False) as work:
            author = await _find_author(work, view, rooms, wanted.author)
            if author is None:
                return []
            query = PostQuery(wanted.words, view.platform, rooms, author, wanted.since, wanted.until, wanted.limit)
            if asked is None:
                return [hit for hit in await work.archive.search(query) if view.sees(hit.post)]
            by_words = await work.archive.search(replace(query, limit=max(RANKED, wanted.limit)))
            by_meaning = await self._find_near(work, query, asked)
        hits = {hit.post.id: hit for hit in (*by_meaning, *by_words) if view.sees(hit.post)}
        ranked = fuse([hit.post.id for hit in by_words], [hit.post.id for hit in by_meaning])
        return [hits[key] for key in ranked if key in hits][: wanted.limit]

    async def _find_meaning(self, words: str) -> Question | None:
        if not self._mirror.policy.by_meaning or not words_of(words):
            return None
        return await self._meaning.of_question(words)

    async def _find_near(self, work: UnitOfWork, query: PostQuery, asked: Question) -> list[PostHit]:
        """Of posts as they are now, whatever their vectors are of."""
        is_narrowed = query.author or query.since or query.until
        shelves = [room_namespace(query.platform, room) for room in query.rooms]
        near = await work.vectors.find_nearest(
            POST_VECTORS, shelves, asked.model, asked.vector, limit=NARROWED if is_narrowed else RANKED
        )
        start = len(post_vector_key(query.platform, ""))
        alike = [each.key[start:] for each in near if each.similarity >= self._similarity()]
        words, rooms = words_of(query.words), set(query.rooms)
        return [
            PostHit(post, excerpt_of(post.text, words))
            for post in await work.archive.find_many(query.platform, alike)
            if post.room in rooms
            and query.author in {"", post.author.id}
            and _is_within(post, query.since, query.until)
        ][:RANKED]  # fmt: skip


async def _find_author(work: UnitOfWork, view: View, rooms: Sequence[str], text: str) -> str | None:
    """The id; empty for anybody, None where nobody wrote anything."""
    if not text.strip():
        return ""
    authors = await work.archive.count(CountBy.AUTHOR, platform=view.platform, rooms=rooms, limit=MAX_AUTHORS)
    return get_author(text, [known for known in authors if known.key not in view.hidden]) if authors else None


def _is_within(post: Post, since: datetime | None, until: datetime | None) -> bool:
    return (since is None or post.created_at >= since) and (until is None or post.created_at < until)
