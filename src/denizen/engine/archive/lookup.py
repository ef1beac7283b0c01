"""Searches the archive by words and by embedding, fused, within what one asker may see.

By words a post has to contain one that says something, and those that say the most come first; without an embedder, or
while it does not answer, that is all. Where the archive has nothing of a room, `ArchiveLookups` asks the platform.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, tzinfo

from denizen.domain.clock import Clock
from denizen.domain.errors import NotAllowed, NotFound
from denizen.domain.ids import AgentName
from denizen.domain.period import Period
from denizen.domain.principal import PrincipalKind
from denizen.domain.ranking import RANKED, Match, fuse_matches, telling_words
from denizen.domain.record import record
from denizen.domain.room import Post, Room
from denizen.domain.talk_excerpt import merge_excerpts
from denizen.domain.words import make_excerpt, split_words
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.accounts.members import MemberDirectory, PlatformMember
from denizen.engine.archive.mirror import ArchiveMirror
from denizen.engine.archive.talk import list_authors, list_surroundings, read_question
from denizen.engine.archive.view import ArchiveView, get_author, not_found_here, open_member_view, open_view, room_label
from denizen.engine.embedding.embedder import BudgetedEmbedder, EmbeddedQuestion, default_similarity
from denizen.ports.archive import POST_VECTORS, CountBy, PostHit, PostQuery, post_vector_key, room_namespace
from denizen.ports.store import Store, UnitOfWork
from denizen.ports.toolset import CallScope
from denizen.skill import (
    ArchiveCount,
    ArchivedEdits,
    ArchivedPost,
    ArchivedTalk,
    ArchiveKey,
    ArchiveLookup,
    FoundTalk,
    TalkFilters,
)

WORDS_SHARE = 0.1
"""The share of words beside meaning: people answer in other words than somebody asks in, and a word says less of a
short message than of a passage.
"""

NARROWED = 1000
"""By meaning, where most may be of other authors or times: those are passed over afterwards."""


@record(kw_only=True)
class ArchiveQuery:
    """A search of the archive, as it was asked for. `author_id` is of an author who is known already. Without words,
    the newest posts are wanted.
    """

    words: str
    room: str = ""
    author: str = ""
    author_id: str = ""
    since: datetime | None = None
    until: datetime | None = None
    limit: int

    @property
    def selecting(self) -> list[str]:
        """The words that find posts: those that say something, if there are any."""
        return telling_words(self.words) or split_words(self.words)

    def rank(self, posts: Sequence[Post]) -> list[Post]:
        """Returns those of the posts that a search would find, the best first; of equals, the newest."""
        author = self.author.strip().strip('<@!>"').strip().casefold()
        shared = {post.id: set(self.selecting).intersection(split_words(post.text)) for post in posts}
        found = [
            post
            for post in reversed(posts)
            if (shared[post.id] or not self.words)
            and author in {"", post.author.id, post.author.name.casefold()}
            and self.author_id in {"", post.author.id}
            and _is_within(post, self.since, self.until)
        ]
        return sorted(found, key=lambda post: -len(shared[post.id]))


class ArchiveSearch:
    """One for a process. `similarity` is asked each time."""

    def __init__(
        self,
        store: Store,
        mirror: ArchiveMirror,
        embedder: BudgetedEmbedder,
        similarity: Callable[[], float] = default_similarity,
    ) -> None:
        self._store = store
        self._mirror = mirror
        self._embedder = embedder
        self._similarity = similarity

    async def __call__(self, view: ArchiveView, wanted: ArchiveQuery) -> list[PostHit]:
        """The best first. Raises NotFound for a room that is not there, and for an author who wrote nothing there,
        unless none of it is archived.
        """
        asked = await self._embed_words(wanted.words)
        async with self._store.work(write=False) as work:
            query = await _plan_query(work, view, wanted)
            if query is None:
                return []
            by_words = await work.archive.search(query)
            if asked is None:
                return [hit for hit in by_words if view.sees(hit.post)][: wanted.limit]
            by_embedding = await self._find_near(work, query, asked)
        hits = {hit.post.id: hit for hit in (*by_embedding, *by_words) if view.sees(hit.post)}
        ranked = fuse_matches(
            [hit.match for hit in by_words],
            [hit.match for hit in by_embedding],
            least=self._similarity(),
            words_share=WORDS_SHARE,
        )
        return [hits[key] for key in ranked if key in hits][: wanted.limit]

    async def list_newest(self, view: ArchiveView, wanted: ArchiveQuery) -> list[Post]:
        """Returns the newest, whatever the words. Raises as a search does."""
        async with self._store.work(write=False) as work:
            query = await _plan_query(work, view, wanted)
            posts = await work.archive.list_newest(query) if query is not None else ()
        return [post for post in posts if view.sees(post)][: wanted.limit]

    async def list_absent(self, view: ArchiveView, words: str) -> list[str]:
        """Returns those of the words that the archive has in no room of the view."""
        async with self._store.work(write=False) as work:
            return [
                word
                for word in dict.fromkeys(split_words(words))
                if not any(
                    view.sees(hit.post)
                    for hit in await work.archive.search(
                        PostQuery(word, platform=view.platform, rooms=list(view.rooms), limit=RANKED)
                    )
                )
            ]

    async def _embed_words(self, words: str) -> EmbeddedQuestion | None:
        if not self._mirror.policy.embeddings or not split_words(words):
            return None
        return await self._embedder.embed_question(words)

    async def _find_near(self, work: UnitOfWork, query: PostQuery, asked: EmbeddedQuestion) -> list[PostHit]:
        """Finds posts as they are now, even where their embeddings are of an earlier text."""
        is_narrowed = query.author or query.since or query.until
        namespaces = [room_namespace(query.platform, room) for room in query.rooms]
        near = await work.vectors.find_nearest(
            POST_VECTORS, namespaces, asked.model, asked.vector, limit=NARROWED if is_narrowed else RANKED
        )
        start = len(post_vector_key(query.platform, ""))
        alike = {each.key[start:]: each.similarity for each in near if each.similarity >= self._similarity()}
        words, rooms = split_words(query.words), set(query.rooms)
        return [
            PostHit(post, make_excerpt(post.text, words), Match(post.id, alike[post.id]))
            for post in await work.archive.find_many(query.platform, list(alike))
            if post.room in rooms
            and query.author in {"", post.author.id}
            and _is_within(post, query.since, query.until)
        ][:RANKED]


async def _plan_query(work: UnitOfWork, view: ArchiveView, wanted: ArchiveQuery) -> PostQuery | None:
    """Returns the query of the store; None where nobody wrote anything."""
    rooms = [room.id for room in view.choose(wanted.room)]
    author = wanted.author_id or await _find_author(work, view, rooms, wanted.author)
    if author is None:
        return None
    return PostQuery(
        " ".join(wanted.selecting),
        also=wanted.words,
        platform=view.platform,
        rooms=rooms,
        author=author,
        since=wanted.since,
        until=wanted.until,
        limit=max(RANKED, wanted.limit),  # those that may not be seen are passed over afterwards
    )


async def _find_author(work: UnitOfWork, view: ArchiveView, rooms: Sequence[str], text: str) -> str | None:
    """The id; empty for anybody, None where nobody wrote anything."""
    if not text.strip():
        return ""
    authors = await list_authors(work, view, rooms)
    return get_author(text, authors) if authors else None


def _is_within(post: Post, since: datetime | None, until: datetime | None) -> bool:
    return (since is None or post.created_at >= since) and (until is None or post.created_at < until)


FETCHED = 100
"""Posts of a room that are asked of the platform when the archive has none of it."""


@record
class ArchiveLookups:
    """One for a process."""

    store: Store
    channels: ConnectedAccounts
    mirror: ArchiveMirror
    search: ArchiveSearch
    clock: Clock
    members: MemberDirectory
    zone_of: Callable[[AgentName], tzinfo]
    """The time zone in which an agent is told times, and people there name them."""

    def open(self, scope: CallScope) -> ArchiveLookup:
        """The archive as this call may see it; see `denizen.skill.ArchiveLookup`. Nothing is asked yet."""
        return _ScopedLookup(self, scope)

    async def search_as(self, member: PlatformMember, wanted: ArchiveQuery) -> tuple[int, Sequence[ArchivedPost]]:
        """Returns how many rooms a member may read, and what they would find there. The platform is not asked for more.
        Raises as a search does.
        """
        view = await open_member_view(member, self.store, self.mirror)
        if wanted.words:
            hits = await self.search(view, wanted)
            return len(view.rooms), [_record(hit.post, view, text=hit.excerpt) for hit in hits]
        return len(view.rooms), [_record(post, view) for post in await self.search.list_newest(view, wanted)]

    async def fetch_unknown(
        self, view: ArchiveView, room: Room, *, before: str = "", after: str = "", limit: int = FETCHED
    ) -> list[Post]:
        """Fetches what may be seen of a room from the platform when the archive has nothing of it, oldest first."""
        async with self.store.work(write=False) as work:
            if await work.archive.list_posts(view.platform, room.id, limit=1):
                return []
        if view.channel is None:
            return []
        try:
            posts = await view.channel.list_posts(room.id, before=before, after=after, limit=limit)
        except (NotAllowed, NotFound):  # the account lost the room meanwhile
            return []
        roles = await view.channel.find_roles(room.id, {post.author.id for post in posts})
        await self.mirror.keep(posts, roles)
        return [post for post in await self.mirror.showable(posts, roles) if view.sees(post)]


@record
class _ScopedLookup:
    """`denizen.skill.ArchiveLookup`: each call asks anew what may be seen."""

    lookups: ArchiveLookups
    scope: CallScope

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
        view = await self._view()
        wanted = ArchiveQuery(words=words, room=room, author=author, since=since, until=until, limit=limit)
        return [_record(post, view, text=text) for post, text in await self._find(view, wanted)]

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
        view, lookups = await self._view(), self.lookups
        asked = await read_question(lookups.store, view, question, now=lookups.clock.now(), zone=self.zone)
        if author.strip():
            asked = replace(asked, author="", author_name="")
        if room.strip():
            asked = replace(asked, room="")
        if since or until:
            asked = replace(asked, period=Period())
        is_open = not (author.strip() or room.strip() or since or until or asked.is_narrowed)
        words = question if is_open else asked.words if telling_words(asked.words) else ""
        given = ArchiveQuery(words=words, room=room, author=author, since=since, until=until, limit=limit)
        narrowed = replace(
            given,
            room=asked.room or room,
            author_id=asked.author,
            since=since or asked.period.since,
            until=until or asked.period.until,
        )
        found = await self._find(view, narrowed)
        is_widened = not found and asked.is_narrowed and bool(words)
        if is_widened:
            found = await self._find(view, given)
        async with lookups.store.work(write=False) as work:
            surroundings = await list_surroundings(work, view, [post for post, _ in found])
        texts = {post.id: text for post, text in found}
        return FoundTalk(
            talk=[
                ArchivedTalk(tuple(_record(post, view, text=texts.get(post.id, "")) for post in each.posts), each.found)
                for each in merge_excerpts(surroundings)
            ],
            words=words,
            filters=TalkFilters(
                author=asked.author_name,
                room=room_label(view.rooms[asked.room]) if asked.room else "",
                since=asked.period.since,
                until=asked.period.until,
            ),
            is_widened=is_widened,
        )

    @property
    def zone(self) -> tzinfo:
        return self.lookups.zone_of(self.scope.agent)

    async def _find(self, view: ArchiveView, wanted: ArchiveQuery) -> list[tuple[Post, str]]:
        """Returns posts of the archive, or where it has nothing of the likely room, of the platform, each with the part
        of its text to show.
        """
        if wanted.words:
            found = [(hit.post, hit.excerpt) for hit in await self.lookups.search(view, wanted)]
        else:
            newest = await self.lookups.search.list_newest(view, wanted)
            found = [(post, make_excerpt(post.text, ())) for post in newest]
        if found:
            return found
        likely = view.get_room(wanted.room) if wanted.room.strip() else view.own
        fetched = await self.lookups.fetch_unknown(view, likely) if likely is not None else []
        ranked = wanted.rank(fetched)[: wanted.limit]
        return [(post, make_excerpt(post.text, wanted.selecting)) for post in ranked]

    async def list_absent(self, words: str) -> Sequence[str]:
        view = await self._view()
        return await self.lookups.search.list_absent(view, words)

    async def history(
        self, room: str = "", *, before: str = "", after: str = "", limit: int = 50
    ) -> Sequence[ArchivedPost]:
        view = await self._view()
        found = view.get_room(room)
        async with self.lookups.store.work(write=False) as work:
            posts = await work.archive.list_posts(view.platform, found.id, before=before, after=after, limit=limit)
        if not posts:
            posts = await self.lookups.fetch_unknown(view, found, before=before, after=after, limit=limit)
        return [_record(post, view) for post in posts if view.sees(post)]

    async def around(self, post_id: str, *, each_side: int = 5) -> Sequence[ArchivedPost]:
        view = await self._view()
        async with self.lookups.store.work(write=False) as work:
            post = await work.archive.find(view.platform, post_id)
            if post is not None and view.sees(post) and post.changes.deleted_at is None:
                page = work.archive.list_posts
                earlier = await page(view.platform, post.room, before=post.id, limit=each_side)
                later = await page(view.platform, post.room, after=post.id, limit=each_side)
                return [_record(shown, view) for shown in (*earlier, post, *later) if view.sees(shown)]
        fetched = await self.lookups.fetch_unknown(view, view.own) if view.own is not None else []
        places = [place for place, shown in enumerate(fetched) if shown.id == post_id]
        if not places:
            raise not_found_here()
        return [_record(shown, view) for shown in fetched[max(places[0] - each_side, 0) : places[0] + each_side + 1]]

    async def edits(self, post_id: str) -> ArchivedEdits:
        view = await self._view()
        async with self.lookups.store.work(write=False) as work:
            post = await work.archive.find(view.platform, post_id)
            if post is None or not view.sees(post):
                raise not_found_here()
            versions = await work.archive.list_versions(view.platform, post_id)
        if (versions or post.changes.deleted_at is not None) and not await _may_see_edits(view, post):
            if post.changes.deleted_at is not None:
                raise not_found_here()
            raise NotAllowed(
                "Earlier texts of a message are shown only to its author and to moderators.", code="edits_hidden"
            )
        return ArchivedEdits(_record(post, view), tuple((version.written_at, version.text) for version in versions))

    async def stats(
        self, by: ArchiveKey, *, room: str = "", since: datetime | None = None, limit: int = 20
    ) -> Sequence[ArchiveCount]:
        view, key = await self._view(), CountBy(by)
        rooms = [each.id for each in view.choose(room)]
        async with self.lookups.store.work(write=False) as work:
            counts = await work.archive.count(key, platform=view.platform, rooms=rooms, since=since, limit=limit)
        names = {each.id: room_label(each) for each in view.rooms.values()} if key is CountBy.ROOM else {}
        shown = [count for count in counts if key is not CountBy.AUTHOR or count.key not in view.hidden]
        return [ArchiveCount(names.get(count.key) or count.name or count.key, count.posts) for count in shown]

    async def _view(self) -> ArchiveView:
        return await open_view(
            self.scope, self.lookups.store, self.lookups.channels, self.lookups.mirror, self.lookups.members
        )


async def _may_see_edits(view: ArchiveView, post: Post) -> bool:
    who = view.viewer
    if who.kind is PrincipalKind.PLATFORM_USER and who.id == f"{post.platform}:{post.author.id}":
        return True
    return view.channel is not None and await view.channel.may_moderate(post.room, who)


def _record(post: Post, view: ArchiveView, *, text: str = "") -> ArchivedPost:
    room = view.rooms[post.room]
    return ArchivedPost(
        id=post.id,
        room=room_label(room),
        room_id=room.id,
        author=post.author.name,
        author_id=post.author.id,
        at=post.created_at,
        text=text or post.text,
        link=view.policy.link_to(post),
        reply_to=post.reply_to,
        edited_at=post.changes.edited_at,
        deleted_at=post.changes.deleted_at,
        attachments=tuple(attachment.name for attachment in post.attachments),
    )
