"""The mirror of a platform's messages, with edits and deletions, and the withholding of talk that was deleted.

A source that reads a channel of which something was deleted, closed or forgotten has nothing that may be published
until it is read anew, which is due at once (`ChannelSourceReader.is_urgent`). The note of that is in the store, so a
process that dies right after does not lose it: the next one publishes without the talk (`knowledge/snapshots`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from types import MappingProxyType

import anyio

from denizen.domain.archiving import ArchivePolicy, OptOuts, is_opted_out, keeps_post
from denizen.domain.clock import Clock
from denizen.domain.data_uri import describe_data_uris
from denizen.domain.ids import AgentName, fresh
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.reasoning import is_reasoning
from denizen.domain.record import record
from denizen.domain.room import Post, Room
from denizen.domain.source import Source, SourceKind, SourceState
from denizen.domain.speech_notice import is_speech_notice
from denizen.engine.configuration.guild_settings import GuildSettingsOverlay
from denizen.engine.events.signal import Signal
from denizen.ports.archive import ArchiveRepository, Backfill, OptOutKind
from denizen.ports.store import Store, UnitOfWork

CLOCKS_DIFFER = timedelta(minutes=1)
"""The time of a post is the platform's."""


async def withhold_sources(work: UnitOfWork, platform: str, rooms: Collection[str] = ()) -> bool:
    """Withholds the sources that read these channels, or the channels of these threads; without rooms, all of them.
    Returns False when no source reads any of them.
    """
    sources = await _find_sources(work, platform, await _with_channels(work, platform, rooms))
    for source in sources:
        await work.sources.put_state(withheld_state(source.id))
    return bool(sources)


async def withhold_posts(work: UnitOfWork, platform: str, posts: Sequence[Post]) -> bool:
    """Likewise of the channels in which these are, unless all of them are too new to have been read. A reading that
    goes on meanwhile begins anew in any case: the state is not what it was.
    """
    if not posts:
        return False
    is_withheld = False
    rooms = {room for post in posts for room in (post.room, post.parent) if room}
    states = {state.source_id: state for state in await work.sources.list_states()}
    for source in await _find_sources(work, platform, await _with_channels(work, platform, rooms)):
        state = states.get(source.id)
        if state is None or state.taken is None or _is_read(state, min(post.created_at for post in posts)):
            is_withheld = True
            await work.sources.put_state(withheld_state(source.id))
        else:
            await work.sources.put_state(replace(state, revision=fresh("gone")))
    return is_withheld


def withheld_state(source_id: str) -> SourceState:
    """Different each time, so that a reading that has begun before notices it."""
    return SourceState(source_id=source_id, revision=fresh("gone"))


def _is_read(state: SourceState, said_at: datetime) -> bool:
    return state.synced_at is None or said_at <= state.synced_at + CLOCKS_DIFFER


async def _with_channels(work: UnitOfWork, platform: str, rooms: Collection[str]) -> set[str]:
    known = [await work.archive.find_room(platform, room) for room in rooms]
    return {*rooms, *(room.channel for room in known if room is not None)}


async def _find_sources(work: UnitOfWork, platform: str, rooms: Collection[str]) -> list[Source]:
    return [
        source
        for source in await work.sources.list_sources()
        if source.kind is SourceKind.ARCHIVE
        and source.location.partition(":")[0] == platform
        and (not rooms or source.location.partition(":")[2] in rooms)
    ]


OPT_OUTS_AGE_S = 30.0
"""How long stored opt-outs are believed; changes made in this process count at once."""

ROOMS_AT_ONCE = 100
POSTS_AT_ONCE = 500
REMEMBERED_DELETIONS = 10_000

Roles = Mapping[str, frozenset[str]]
"""Author id to role ids; authors whose roles are unknown are missing."""
RolesOf = Callable[[str, Collection[str]], Awaitable[Roles]]
"""(room id, author ids) to the roles of those that are known."""

UNKNOWN_ROLES: Roles = MappingProxyType({})


@record
class _StoredOptOuts:
    """The stored opt-outs of a platform, and when they were read."""

    opt_outs: OptOuts
    read_at_s: float


class ArchiveMirror:
    """One for a process. `policy` is asked each time: it may change while Denizen runs."""

    def __init__(
        self,
        store: Store,
        policy: Callable[[], ArchivePolicy],
        clock: Clock,
        guilds: GuildSettingsOverlay | None = None,
    ) -> None:
        self._store = store
        self._policy = policy
        self._guilds = guilds
        self._clock = clock
        self._lock = anyio.Lock()
        self._chosen: dict[str, _StoredOptOuts] = {}
        self._deleted: dict[tuple[str, str], datetime] = {}
        self._gone_rooms: dict[tuple[str, str], None] = {}
        self.withheld = Signal()
        """Sent whenever agents may no longer see what was made of posts."""

    @property
    def policy(self) -> ArchivePolicy:
        return self._policy()

    async def keep(
        self, posts: Sequence[Post], roles_of_author: Roles = UNKNOWN_ROLES, *, progress: Backfill | None = None
    ) -> int:
        """Adds posts of one platform, or their new texts, and returns how many were new. `progress` is stored in the
        same unit of work. A post that nobody opted out of but whose author's roles are unknown is left out as soon as
        any role is opted out. So are posts of our accounts that repeat what somebody said in a voice channel.
        """
        if not posts and progress is None:
            return 0
        async with self._lock:
            chosen = await self._load_opt_outs(posts[0].platform) if posts else OptOuts()
            policy, now = self.policy, self._clock.now()
            if self._guilds is not None and posts:
                policy = replace(policy, guild_days=await self._guilds.load_retention(posts[0].platform))
            has_notice = any(map(is_speech_notice, posts))
            ours = await self.load_accounts(posts[0].platform) if has_notice else frozenset[str]()
            wanted = [
                replace(post, text=describe_data_uris(post.text))
                for post in posts
                if not (is_reasoning(post) or self._is_room_gone(post))
                and not (post.author.id in ours and is_speech_notice(post))
                and keeps_post(post, roles_of_author.get(post.author.id), policy, chosen, now=now)
            ]
            if not wanted and progress is None:
                return 0
            async with self._store.work() as work:
                kept = await _without_forgotten(work, wanted)
                new = await work.archive.put(kept)
                await self._repeat_deletions(work.archive, kept)
                if progress is not None:
                    await work.archive.put_backfill(progress)
        return new

    async def delete(self, platform: str, post_ids: Sequence[str]) -> int:
        """Marks them as deleted, from now on, and returns how many were here. One that comes only afterwards, because
        its page was on its way, is deleted too.
        """
        now = self._clock.now()
        async with self._lock:
            self._deleted |= {(platform, post_id): now for post_id in post_ids}
            for key in list(self._deleted)[:-REMEMBERED_DELETIONS]:
                del self._deleted[key]
            async with self._store.work() as work:
                known = await work.archive.find_many(platform, post_ids)
                marked = await work.archive.mark_deleted(platform, post_ids, at=now)
                is_withheld = await withhold_posts(work, platform, known)
        self._tell(is_withheld=is_withheld)
        return marked

    async def delete_room(self, platform: str, room_id: str) -> int:
        """Marks everything in the room and its threads as deleted, and returns how many posts that were. None comes
        afterwards.
        """
        now, total = self._clock.now(), 0
        async with self._lock:
            self._gone_rooms[platform, room_id] = None
            for key in list(self._gone_rooms)[:-REMEMBERED_DELETIONS]:
                del self._gone_rooms[key]
        while True:
            async with self._store.work() as work:
                marked = await work.archive.mark_room_deleted(platform, room_id, at=now, limit=POSTS_AT_ONCE)
                is_withheld = await withhold_sources(work, platform, [room_id]) if marked else False
            self._tell(is_withheld=is_withheld)
            total += marked
            if not marked:
                return total

    async def close_room(self, platform: str, room_id: str) -> None:
        """Nobody tells any more who may read it. What was said there stays."""
        async with self._store.work() as work:
            is_withheld = await withhold_sources(work, platform, [room_id])
        self._tell(is_withheld=is_withheld)

    async def rooms(self, rooms: Sequence[Room]) -> None:
        """Adds rooms or renews what is known of them. Rooms are kept whoever opted out: they are names, without which
        nothing could be found by name.
        """
        for start in range(0, len(rooms) if self.policy.enabled else 0, ROOMS_AT_ONCE):
            async with self._store.work() as work:
                for room in rooms[start : start + ROOMS_AT_ONCE]:
                    await work.archive.put_room(room)

    async def load_opt_outs(self, platform: str) -> OptOuts:
        """Loads the opt-outs that people chose, beyond the policy."""
        async with self._lock:
            return await self._load_opt_outs(platform)

    async def showable(self, posts: Sequence[Post], roles_of_author: Roles = UNKNOWN_ROLES) -> list[Post]:
        """Those of one platform whose authors and rooms did not opt out, nor were forgotten, whether kept or not."""
        chosen, policy = await self.load_opt_outs(posts[0].platform) if posts else OptOuts(), self.policy
        left = [post for post in posts if not is_opted_out(post, roles_of_author.get(post.author.id), policy, chosen)]
        async with self._store.work(write=False) as work:
            shown = await _without_forgotten(work, left)
        return [replace(post, text=describe_data_uris(post.text)) for post in shown]

    async def note_account(self, platform: str, user_id: str, agent: AgentName) -> None:
        """Remembers that an account of the platform is one of ours, also for when it is gone."""
        async with self._store.work() as work:
            await work.user_settings.put(_accounts_key(platform), user_id, agent, now=self._clock.now())

    async def load_accounts(self, platform: str) -> frozenset[str]:
        """Loads the ids of all accounts of ours that were ever connected to the platform."""
        async with self._store.work(write=False) as work:
            return frozenset(await work.user_settings.get(_accounts_key(platform)))

    @asynccontextmanager
    async def changing(self, platform: str) -> AsyncGenerator[UnitOfWork]:
        """A unit of work during which nothing is mirrored, after which opt-outs are read anew. For `removal`."""
        async with self._lock:
            self._chosen.pop(platform, None)
            async with self._store.work() as work:
                yield work

    async def set_forgotten(self, work: UnitOfWork, platform: str, user_id: str) -> None:
        """Marks the user as forgotten: what they wrote until now never comes back, whoever brings it. Only within
        `changing`.
        """
        now = self._clock.now()
        await work.user_settings.put(_settings_key(user_id), _forgotten_key(platform), now.isoformat(), now=now)

    async def find_forgotten(self, platform: str, user_id: str) -> datetime | None:
        """Returns the time until which what the user wrote and said was forgotten; None if it never was."""
        async with self._store.work(write=False) as work:
            return await _find_forgotten(work, platform, user_id)

    async def _load_opt_outs(self, platform: str) -> OptOuts:
        known, now_s = self._chosen.get(platform), self._clock.monotonic_s()
        if known is None or now_s - known.read_at_s > OPT_OUTS_AGE_S:
            async with self._store.work(write=False) as work:
                archive = work.archive
                known = _StoredOptOuts(
                    OptOuts(
                        await archive.list_opt_outs(platform, OptOutKind.USER),
                        await archive.list_opt_outs(platform, OptOutKind.ROLE),
                        await archive.list_opt_outs(platform, OptOutKind.CHANNEL),
                    ),
                    now_s,
                )
            self._chosen[platform] = known
        return known.opt_outs

    def _tell(self, *, is_withheld: bool) -> None:
        if is_withheld:
            self.withheld.send()

    def _is_room_gone(self, post: Post) -> bool:
        return any((post.platform, room) in self._gone_rooms for room in (post.room, post.parent) if room)

    async def _repeat_deletions(self, archive: ArchiveRepository, posts: Sequence[Post]) -> None:
        for post in posts:
            at = self._deleted.get((post.platform, post.id))
            if at is not None:
                await archive.mark_deleted(post.platform, [post.id], at=at)


async def _find_forgotten(work: UnitOfWork, platform: str, user_id: str) -> datetime | None:
    settings = await work.user_settings.get(_settings_key(user_id))
    stored = settings.get(_forgotten_key(platform))
    return datetime.fromisoformat(stored) if isinstance(stored, str) else None


async def _without_forgotten(work: UnitOfWork, posts: Sequence[Post]) -> list[Post]:
    until: dict[str, datetime] = {}
    for post in {post.author.id: post for post in posts}.values():
        forgotten = await _find_forgotten(work, post.platform, post.author.id)
        if forgotten is not None:
            until[post.author.id] = forgotten
    return [post for post in posts if post.author.id not in until or post.created_at > until[post.author.id]]


def _settings_key(user_id: str) -> str:
    return Principal(PrincipalKind.PLATFORM_USER, user_id, "").key


def _forgotten_key(platform: str) -> str:
    return f"archive_forgotten_until:{platform}"


def _accounts_key(platform: str) -> str:
    return f"own_accounts:{platform}"
