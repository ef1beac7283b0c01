"""What people and operators take out of the archive: a user's posts, a channel's, from now on or altogether.

Deletion reaches the posts, their earlier versions, the index, the copies in sessions and the summaries of those; that
of a user also what agents remember of them, what they told agents for all, their reminders, their questions that no
document answers, and the answers that were learned from them; and the statistics of usage do not name them any more.
Called by commands, the web and the command line, which decide who may ask for what.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from denizen.domain.clock import Clock
from denizen.domain.principal import Principal, PrincipalKind
from denizen.engine.archive.mirror import Mirror
from denizen.engine.archive.withholding import withhold
from denizen.ports.archive import Backfill, OptOutKind
from denizen.ports.store import UnitOfWork


class Privacy:
    """Each method returns how many posts it deleted, for the reply, unless it deletes none by its nature."""

    def __init__(self, mirror: Mirror, clock: Clock) -> None:
        self._mirror = mirror
        self._clock = clock
        self._told: list[Callable[[str], Awaitable[object]]] = []

    def tell_of_forgotten(self, tell: Callable[[str], Awaitable[object]]) -> None:
        """Calls it with the platform after each time that something was deleted here, before the answer is given: for
        what was made of posts and is kept elsewhere.
        """
        self._told.append(tell)

    async def forget_user(self, platform: str, user_id: str) -> int:
        """Everything they wrote until now goes, and is not fetched again; what they write later is kept."""
        async with self._mirror.changing(platform) as work:
            await self._mirror.set_forgotten(work, platform, user_id)
            await _forget_memories(work, platform, user_id)
            await self._forget_usage(work, platform, user_id)
            await work.reminders.forget_asker(_key_of(platform, user_id))
            await work.gaps.forget_asker(_key_of(platform, user_id))
            await _forget_answers(work, platform, user_id)
            gone = await work.archive.forget_author(platform, user_id)
            await withhold(work, platform)
        await self._tell(platform)
        return gone

    async def opt_out_user(self, platform: str, user_id: str) -> int:
        """As `forget_user`, and nothing is archived from now on. Pending reminders stay: they were asked for."""
        async with self._mirror.changing(platform) as work:
            await work.archive.opt_out(platform, OptOutKind.USER, user_id, now=self._clock.now())
            await self._mirror.set_forgotten(work, platform, user_id)
            await _forget_memories(work, platform, user_id)
            await work.gaps.forget_asker(_key_of(platform, user_id))
            await _forget_answers(work, platform, user_id)
            await self._forget_usage(work, platform, user_id)
            gone = await work.archive.forget_author(platform, user_id)
            await withhold(work, platform)
        await self._tell(platform)
        return gone

    async def _forget_usage(self, work: UnitOfWork, platform: str, user_id: str) -> None:
        await work.statistics.forget_user(_key_of(platform, user_id))
        await work.spending.forget_users(_key_of(platform, user_id), now=self._clock.now())

    async def opt_in_user(self, platform: str, user_id: str) -> None:
        """What they write is kept again; what was deleted stays so."""
        async with self._mirror.changing(platform) as work:
            await work.archive.opt_in(platform, OptOutKind.USER, user_id)

    async def opt_out_channel(self, platform: str, channel: str) -> int:
        """The posts of the channel and of its threads go, and none are kept from now on."""
        async with self._mirror.changing(platform) as work:
            await work.archive.opt_out(platform, OptOutKind.CHANNEL, channel, now=self._clock.now())
            await work.proposals.forget_room(platform, channel)
            gone = await work.archive.forget_room(platform, channel)
            await withhold(work, platform)
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

    async def _tell(self, platform: str) -> None:
        for tell in self._told:
            await tell(platform)


async def _forget_memories(work: UnitOfWork, platform: str, user_id: str) -> None:
    await work.memories.forget_teller(_key_of(platform, user_id))


async def _forget_answers(work: UnitOfWork, platform: str, user_id: str) -> None:
    """Those that they gave go; of those that others gave them their question."""
    await work.proposals.forget_author(_key_of(platform, user_id))
    await work.proposals.forget_asker(_key_of(platform, user_id))


def _key_of(platform: str, user_id: str) -> str:
    return Principal(PrincipalKind.PLATFORM_USER, f"{platform}:{user_id}", "").key
