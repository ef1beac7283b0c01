"""A channel of the archive as a source of knowledge.

A snapshot is read by everybody who talks to an agent. So only a channel is read that everybody of its server may read
at that moment, with its public threads; what was deleted, forgotten or opted out is no part of it. Nor is what our own
accounts posted: an agent's answer would prove its next one. Whatever cannot be known counts against reading:
`knowledge/reading` then takes away what was read before.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from denizen.domain.archiving import is_room_opted_out, keeps_post
from denizen.domain.channel_documents import ChannelDocuments, RoomPosts, write_channel_documents
from denizen.domain.clock import Clock
from denizen.domain.errors import DenizenError, InvalidInput, NeedsAttention, NotAllowed, NotFound, Unavailable
from denizen.domain.room import Post, Room, RoomKind
from denizen.domain.source import Source, SourceState
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.archive.mirror import ArchiveMirror
from denizen.ports.channel import Channel
from denizen.ports.source import ReportProgress, SourceFile, SourceTree
from denizen.ports.store import Store

PAGE = 500
CHANGED = "archive_changed"
MAX_POSTS = 20_000
"""The limit of each room; the newest posts count."""


class ChannelSourceReader:
    """`denizen.ports.source.SourceReader`."""

    def __init__(self, store: Store, channels: ConnectedAccounts, mirror: ArchiveMirror, clock: Clock) -> None:
        self._store = store
        self._channels = channels
        self._mirror = mirror
        self._clock = clock

    async def look(self, source: Source) -> str:
        return (await self._collect(source)).revision

    @asynccontextmanager
    async def open(self, source: Source, report: ReportProgress) -> AsyncGenerator[SourceTree]:
        """Raises Unavailable when something was forgotten, deleted, edited or closed while it was read. What was said
        meanwhile comes with the next reading: some channels are never quiet.
        """
        del report
        chronicle = await self._collect(source)
        documents = write_channel_documents(chronicle)
        yield SourceTree(chronicle.revision, len(documents), map(_file, documents))
        now = await self._collect(source, most=MAX_POSTS + PAGE)  # with what new posts would push out
        if not now.includes(chronicle):
            raise Unavailable("The channel changed while it was read.", code=CHANGED)

    async def forget(self, source_ids: Sequence[str]) -> None:
        """Nothing is kept."""

    async def is_urgent(self, source: Source, state: SourceState) -> bool:
        """Whether it is to be read at once: it was withheld because something was taken back, or there was too much
        talk to read it, or no account was connected, or it may not be shown any more. Cheap: nothing is read.
        """
        if state.is_skipped:
            return bool(self._channels.list_platform(source.location.partition(":")[0]))
        if state.taken is None:
            return state.is_withheld or state.error_code == CHANGED
        try:
            await self._enter(source)
        except (NeedsAttention, Unavailable):
            return False
        except DenizenError:
            return True
        return False

    async def _collect(self, source: Source, *, most: int = MAX_POSTS) -> ChannelDocuments:
        room, channel = await self._enter(source)
        policy, chosen = self._mirror.policy, await self._mirror.load_opt_outs(room.platform)
        async with self._store.work(write=False) as work:
            known = await work.archive.list_rooms(room.platform, guild=room.guild)
        own = await self._mirror.load_accounts(room.platform)
        own |= {each.user_id for each in self._channels.list_platform(room.platform)}
        threads = [each for each in known if each.kind is RoomKind.THREAD and each.parent == room.id]
        talks = [
            RoomPosts(each, await self._load(each, channel, most, own))
            for each in (room, *sorted(threads, key=lambda thread: (len(thread.id), thread.id)))
            if not is_room_opted_out(each, policy, chosen)
        ]
        former = await self._find_senders(room.platform, [post for talk in talks for post in talk.posts])
        talks = [RoomPosts(talk.room, [post for post in talk.posts if post.author.id not in former]) for talk in talks]
        if not any(talk.posts for talk in talks):
            raise NotFound("Nothing that people said in the channel is in the archive.", code="source_empty")
        return ChannelDocuments(talks[0], talks[1:], self._mirror.policy)

    async def _find_senders(self, platform: str, posts: Sequence[Post]) -> set[str]:
        """Returns the accounts that sent answers of ours. Of one that was removed long ago nothing else is known."""
        by_bots = {post.id: post.author.id for post in posts if post.author.is_bot}
        async with self._store.work(write=False) as work:
            sent = await work.outbox.find_sent(platform, by_bots)
        return {by_bots[post_id] for post_id in sent}

    async def _enter(self, source: Source) -> tuple[Room, Channel]:
        """The room, and an account that says that everybody there may read it."""
        platform, _, room_id = source.location.partition(":")
        channels = self._channels.list_platform(platform)
        if not channels:
            raise NeedsAttention(
                "Channels of the archive are read only where an account is connected.",
                code="archive_not_connected",
                why="Who may read a channel is asked each time.",
                fix="A Denizen that runs reads them by itself.",
            )
        async with self._store.work(write=False) as work:
            room = await work.archive.find_room(platform, room_id)
        if room is None:
            raise NotFound(
                "The archive knows no such channel.", code="source_missing", fix="Check the id, and archive.channels."
            )
        if source.guild and source.guild != room.guild:
            raise NotAllowed(
                "The channel belongs to another server than the source.",
                code="source_guild_foreign",
                why=f"The source is for the server {source.guild} alone.",
                fix="Name a channel of that server.",
            )
        if room.kind not in (RoomKind.CHANNEL, RoomKind.FORUM):
            raise InvalidInput(
                "Only channels of a server can be a source.",
                code="source_invalid",
                fix="A public thread comes with its channel; private threads and direct talk are never read.",
            )
        return room, await self._find_witness(room, channels)

    async def _find_witness(self, room: Room, channels: Sequence[Channel]) -> Channel:
        away: Unavailable | None = None
        for channel in channels:
            try:
                if await channel.is_open(room):
                    return channel
            except Unavailable as error:
                away = error
            else:
                raise NotAllowed(
                    "Not everybody of the server may read the channel.",
                    code="archive_closed",
                    why="Everybody who talks to an agent reads what sources hold.",
                    fix="Open the channel to everyone, or remove the source.",
                )
        raise away or Unavailable("Nobody can tell who may read the channel.", code="source_unavailable")

    async def _load(self, room: Room, channel: Channel, most: int, own: frozenset[str]) -> list[Post]:
        """Oldest first, without those that may not be shown and those of our `own` accounts."""
        pages: list[list[Post]] = []
        count, before = 0, ""
        while count < most and room.kind is not RoomKind.FORUM:
            async with self._store.work(write=False) as work:
                page = await work.archive.list_posts(room.platform, room.id, before=before, limit=PAGE)
            said = [post for post in page if post.author.id not in own]
            pages.append(await self._choose(room, said, channel))
            count += len(page)
            if len(page) < PAGE:
                break
            before = page[0].id
        return [post for page in reversed(pages) for post in page]

    async def _choose(self, room: Room, posts: Sequence[Post], channel: Channel) -> list[Post]:
        if not posts:
            return []
        roles = await channel.find_roles(room.id, {post.author.id for post in posts})
        policy, now = self._mirror.policy, self._clock.now()
        chosen = await self._mirror.load_opt_outs(room.platform)
        shown = await self._mirror.showable(posts, roles)
        return [post for post in shown if keeps_post(post, roles.get(post.author.id), policy, chosen, now=now)]


def _file(document: tuple[str, str]) -> SourceFile:
    path, text = document
    data = text.encode(errors="replace")
    return SourceFile(path, len(data), lambda: data)
