"""Removal from the archive: what people and operators delete or opt out, and what the retention policy ends.

Deletion reaches the posts, their earlier versions, the index, the copies in sessions and the summaries of those; that
of a user also what agents remember of them, what they told agents for all, their reminders, the events that they
caused, what agents asked the owner in their turns, their questions that no document answers, and the answers that were
learned from them; and the statistics of usage do not name them any more. Called by commands, the web and the command
line, which decide who may ask for what.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime

import anyio

from denizen.domain.archiving import ArchivePolicy, OptOuts
from denizen.domain.clock import Clock
from denizen.domain.errors import Unavailable
from denizen.domain.ids import TurnId
from denizen.domain.principal import Principal, PrincipalKind
from denizen.engine.archive.mirror import ArchiveMirror, withhold_sources
from denizen.engine.configuration.guild_settings import GuildSettingsOverlay
from denizen.ports.archive import Backfill, OptOutKind
from denizen.ports.store import Store, UnitOfWork


class ArchiveRemoval:
    """Each method returns how many posts it deleted, for the reply, unless it deletes none by its nature.

    `on_forgotten` is called with the platform after each deletion, before the answer is given: for what was made of
    posts and is kept elsewhere. `on_runs_forgotten` gets the runs of workflows that somebody had started who was
    forgotten: it ends them, and what the durable log has of them.
    """

    on_runs_forgotten: Callable[[Sequence[TurnId]], Awaitable[None]] | None = None

    def __init__(
        self, mirror: ArchiveMirror, clock: Clock, *, on_forgotten: Callable[[str], Awaitable[object]] | None = None
    ) -> None:
        self._mirror = mirror
        self._clock = clock
        self._on_forgotten = on_forgotten

    async def forget_user(self, platform: str, user_id: str) -> int:
        """Everything they wrote until now goes, and is not fetched again; what they write later is kept."""
        async with self._mirror.changing(platform) as work:
            await work.reminders.forget_asker(_principal_key(platform, user_id))
            await work.projects.forget_author(_principal_key(platform, user_id))
            await work.questions.forget_asker(_principal_key(platform, user_id))
            gone, runs = await self._forget(work, platform, user_id)
        await self._tell(platform, runs)
        return gone

    async def opt_out_user(self, platform: str, user_id: str) -> int:
        """As `forget_user`, and nothing is archived from now on. Reminders and tasks stay: they were asked for."""
        async with self._mirror.changing(platform) as work:
            await work.archive.opt_out(platform, OptOutKind.USER, user_id, now=self._clock.now())
            gone, runs = await self._forget(work, platform, user_id)
        await self._tell(platform, runs)
        return gone

    async def _forget(self, work: UnitOfWork, platform: str, user_id: str) -> tuple[int, Sequence[TurnId]]:
        """Returns how many posts are gone, and the runs of workflows."""
        key = _principal_key(platform, user_id)
        await self._mirror.set_forgotten(work, platform, user_id)
        await work.memories.forget_teller(key)
        await work.statistics.forget_user(key)
        await work.spending.forget_users(key, now=self._clock.now())
        await work.gaps.forget_asker(key)
        await work.events.forget_actor(key)
        await work.feeds.forget_subscriber(key)
        runs = await work.workflows.forget_starter(key)
        # Answers that they gave go; those that others gave them lose their question.
        await work.proposals.forget_author(key)
        await work.proposals.forget_asker(key)
        gone = await work.archive.forget_author(platform, user_id)
        await withhold_sources(work, platform)
        return gone, runs

    async def opt_in_user(self, platform: str, user_id: str) -> None:
        """Keeps what they write again; what was deleted stays deleted."""
        async with self._mirror.changing(platform) as work:
            await work.archive.opt_in(platform, OptOutKind.USER, user_id)

    async def opt_out_channel(self, platform: str, channel: str) -> int:
        """The posts of the channel and of its threads go, and none are kept from now on."""
        async with self._mirror.changing(platform) as work:
            await work.archive.opt_out(platform, OptOutKind.CHANNEL, channel, now=self._clock.now())
            await work.proposals.forget_room(platform, channel)
            gone = await work.archive.forget_room(platform, channel)
            await withhold_sources(work, platform)
        await self._tell(platform)
        return gone

    async def opt_in_channel(self, platform: str, channel: str) -> None:
        """The next backfill begins anew there and in its threads."""
        async with self._mirror.changing(platform) as work:
            await work.archive.opt_in(platform, OptOutKind.CHANNEL, channel)
            known = await work.archive.list_rooms(platform)
            rooms = {channel} | {room.id for room in known if room.channel == channel}
            for backfill in await work.archive.list_backfills(platform):
                if backfill.room in rooms:
                    await work.archive.put_backfill(Backfill(platform, backfill.room))

    async def opt_out_role(self, platform: str, role_id: str) -> None:
        """From now on. A post does not say which roles its author had, so nothing is deleted."""
        async with self._mirror.changing(platform) as work:
            await work.archive.opt_out(platform, OptOutKind.ROLE, role_id, now=self._clock.now())

    async def opt_in_role(self, platform: str, role_id: str) -> None:
        async with self._mirror.changing(platform) as work:
            await work.archive.opt_in(platform, OptOutKind.ROLE, role_id)

    async def _tell(self, platform: str, runs: Sequence[TurnId] = ()) -> None:
        if self._on_forgotten is not None:
            await self._on_forgotten(platform)
        if runs and self.on_runs_forgotten is not None:
            await self.on_runs_forgotten(runs)


def _principal_key(platform: str, user_id: str) -> str:
    return Principal(PrincipalKind.PLATFORM_USER, f"{platform}:{user_id}", "").key


PIECE = 200
PAUSE_S = 0.05
INTERVAL_S = 3600.0

_log = logging.getLogger("denizen.archive")

Sleep = Callable[[float], Awaitable[None]]


class ArchiveRetention:
    """`policy` is asked each time: it may change while Denizen runs."""

    def __init__(
        self,
        store: Store,
        policy: Callable[[], ArchivePolicy],
        clock: Clock,
        *,
        guilds: GuildSettingsOverlay | None = None,
        sleep: Sleep = anyio.sleep,
    ) -> None:
        self._guilds = guilds
        self._store = store
        self._policy = policy
        self._clock = clock
        self._sleep = sleep
        self._emptied: set[tuple[str, str]] = set()

    async def run(self, platforms: Sequence[str]) -> None:
        """Sweeps now and every hour, until it is cancelled."""
        while True:
            for platform in platforms:
                try:
                    await self.sweep(platform)
                except Unavailable as error:
                    _log.warning("retention waits for the store", extra={"platform": platform, **error.fields})
            await self._sleep(INTERVAL_S)

    async def sweep(self, platform: str) -> int:
        """Also while nothing is archived any more; returns how many posts went."""
        policy = self._policy()
        total = await self._empty(platform, policy.opt_outs)
        horizon = policy.horizon(self._clock.now())
        if horizon is not None:
            total += await self._forget_before(platform, horizon)
        days = await self._guilds.load_retention(platform) if self._guilds is not None else dict[str, int]()
        for guild in days:
            horizon = replace(policy, guild_days=days).horizon(self._clock.now(), guild)
            if horizon is not None:
                total += await self._forget_before(platform, horizon, guild=guild)
        if total:
            _log.info("posts deleted", extra={"platform": platform, "posts": total})
        return total

    async def _forget_before(self, platform: str, horizon: datetime, *, guild: str = "") -> int:
        total = 0
        while True:
            async with self._store.work() as work:
                gone = await work.archive.forget_before(platform, horizon, limit=PIECE, guild=guild)
            total += gone
            if gone < PIECE:
                return total
            await self._sleep(PAUSE_S)

    async def _empty(self, platform: str, opt_outs: OptOuts) -> int:
        """Once for each user and channel: nothing of theirs comes in any more."""
        total = 0
        for key in (*opt_outs.users, *opt_outs.channels):
            if (platform, key) not in self._emptied:
                async with self._store.work() as work:
                    forget = work.archive.forget_author if key in opt_outs.users else work.archive.forget_room
                    total += await forget(platform, key)
                self._emptied.add((platform, key))
        return total
