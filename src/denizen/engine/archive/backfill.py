"""How fast an account asks a platform for old posts: one request at a time, slower when the platform is slow."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import anyio

from denizen.domain.archiving import keeps_room
from denizen.domain.clock import Clock
from denizen.domain.errors import InvalidInput, NotAllowed, NotFound, Unavailable
from denizen.domain.record import record
from denizen.domain.room import Post, Room, RoomKind
from denizen.engine.archive.mirror import UNKNOWN_ROLES, ArchiveMirror, Roles, RolesOf
from denizen.ports.archive import Backfill
from denizen.ports.channel import Channel
from denizen.ports.store import Store

MIN_PAUSE_S = 0.1
MAX_PAUSE_S = 60.0
FIRST_WAIT_S = 1.0

Sleep = Callable[[float], Awaitable[None]]


class BackfillPace:
    """`begin` before a request, then `succeed` or `fail`, which wait as long as it is polite."""

    def __init__(self, clock: Clock, sleep: Sleep = anyio.sleep) -> None:
        self._clock = clock
        self._sleep = sleep
        self._began_s = 0.0
        self._failures = 0

    def begin(self) -> None:
        self._began_s = self._clock.monotonic_s()

    async def succeed(self) -> None:
        """Rests as long as the request took, so that at most half of the time is spent asking."""
        self._failures = 0
        took_s = self._clock.monotonic_s() - self._began_s
        await self._sleep(min(max(took_s, MIN_PAUSE_S), MAX_PAUSE_S))

    async def fail(self, error: Unavailable) -> None:
        """Waits as long as the platform said, else twice as long each time."""
        wait_s = error.retry_after_s
        if wait_s is None:
            wait_s = min(FIRST_WAIT_S * 2 ** min(self._failures, 10), MAX_PAUSE_S)
        self._failures += 1
        await self._sleep(max(wait_s, MIN_PAUSE_S))


PAGE = 100
LOG_EVERY_S = 30.0

_log = logging.getLogger("denizen.archive")


@record
class BackfillProgress:
    """The progress of one account. `posts` were fetched by it since it began, whether they were kept or not. `refused`
    are rooms that the account may not read; another account may have them.
    """

    rooms_total: int
    rooms_done: int = 0
    posts: int = 0
    refused: tuple[str, ...] = ()
    is_over: bool = False


Report: TypeAlias = Callable[[BackfillProgress], None]


class Backfiller:
    """One for a process: it sees to it that no two accounts fetch the same room at once."""

    def __init__(self, store: Store, mirror: ArchiveMirror, clock: Clock, *, sleep: Sleep = anyio.sleep) -> None:
        self._store = store
        self._mirror = mirror
        self._clock = clock
        self._sleep = sleep
        self._locks: defaultdict[tuple[str, str], anyio.Lock] = defaultdict(anyio.Lock)

    async def run(
        self, channel: Channel, rooms: Sequence[Room], report: Report, *, roles_of: RolesOf | None = None
    ) -> BackfillProgress:
        """Fetches until every room is complete, at its limit, or refused; rooms with the most recent talk come first.
        An unavailable platform or store is waited for. Without `list_role_ids`, nothing is kept while a role is opted
        out.
        """
        account = _Account(channel, roles_of, BackfillPace(self._clock, self._sleep), report, self._clock)
        waiting = await self._plan(account, rooms)
        account.tell(BackfillProgress(len(waiting)))
        while waiting and self._is_on():
            room = next((room for room in waiting if not self._lock(room).locked()), waiting[0])
            waiting.remove(room)
            async with self._lock(room):
                await self._fetch_room(account, room)
            account.tell(replace(account.progress, rooms_done=account.progress.rooms_done + 1))
        account.tell(replace(account.progress, is_over=True))
        return account.progress

    async def restart(self, platform: str) -> None:
        """Forgets how far the backfill came: the next run fetches everything again, and changes nothing that it knows
        already. Not while one runs.
        """
        async with self._store.work() as work:
            for backfill in await work.archive.list_backfills(platform):
                await work.archive.put_backfill(Backfill(platform, backfill.room))

    def _lock(self, room: Room) -> anyio.Lock:
        return self._locks[room.platform, room.id]

    def _is_on(self) -> bool:
        policy = self._mirror.policy
        return policy.enabled and policy.backfill

    async def _plan(self, account: _Account, rooms: Sequence[Room]) -> list[Room]:
        """Rooms that may be kept and are not complete. Forums hold no posts of their own."""
        while True:
            try:
                await self._mirror.rooms(rooms)
                async with self._store.work(write=False) as work:
                    rows = await work.archive.list_backfills(account.channel.platform)
                complete = {row.room for row in rows if row.is_complete}
                wanted = [room for room in rooms if room.id not in complete and await self._is_wanted(room)]
            except Unavailable as error:
                await account.pace.fail(error)
            else:
                return sorted(wanted, key=lambda room: (len(room.latest_post), room.latest_post), reverse=True)

    async def _is_wanted(self, room: Room) -> bool:
        chosen = await self._mirror.load_opt_outs(room.platform)
        return room.kind is not RoomKind.FORUM and keeps_room(room, self._mirror.policy, chosen)

    async def _fetch_room(self, account: _Account, room: Room) -> None:
        goes_on = True
        while goes_on and self._is_on():
            try:
                known = await self._find_work(room)
                if known is None:
                    return
                account.pace.begin()
                goes_on = await self._fetch_page(account, room, known)
                await account.pace.succeed()
            except Unavailable as error:
                await account.pace.fail(error)
            except (NotAllowed, NotFound, InvalidInput) as error:
                _log.info("backfill leaves a room out", extra={"room": room.id, **error.fields, "why": error.explain()})
                account.tell(replace(account.progress, refused=(*account.progress.refused, room.id)))
                return

    async def _find_work(self, room: Room) -> Backfill | None:
        """From where to go on; None when there is nothing more to fetch, perhaps because another account did."""
        async with self._store.work(write=False) as work:
            known = await work.archive.find_backfill(room.platform, room.id) or Backfill(room.platform, room.id)
        limit = self._mirror.policy.backfill_limit_per_room
        is_full = known.is_complete or (limit > 0 and known.fetched >= limit)
        return None if is_full or not await self._is_wanted(room) else known

    async def _fetch_page(self, account: _Account, room: Room, known: Backfill) -> bool:
        """One request; whether there may be more."""
        policy = self._mirror.policy
        limit = policy.backfill_limit_per_room
        size = min(PAGE, max(limit - known.fetched, 1)) if limit else PAGE
        posts = await account.channel.list_posts(room.id, before=known.oldest, limit=size)
        if not posts:
            await self._mirror.keep((), progress=replace(known, is_complete=True))
            return False
        row = replace(known, oldest=posts[0].id, fetched=known.fetched + len(posts))
        await self._mirror.keep(posts, await account.roles(room, posts), progress=row)
        account.tell(replace(account.progress, posts=account.progress.posts + len(posts)))
        horizon = policy.horizon(self._clock.now())
        return horizon is None or posts[0].created_at >= horizon


class _Account:
    """An account at work, and what it says about it."""

    def __init__(
        self, channel: Channel, roles_of: RolesOf | None, pace: BackfillPace, report: Report, clock: Clock
    ) -> None:
        self.channel = channel
        self.pace = pace
        self.progress = BackfillProgress(0)
        self._roles_of = roles_of
        self._report = report
        self._clock = clock
        self._logged_s = clock.monotonic_s()

    async def roles(self, room: Room, posts: Sequence[Post]) -> Roles:
        if self._roles_of is None:
            return UNKNOWN_ROLES
        return await self._roles_of(room.id, {post.author.id for post in posts})

    def tell(self, progress: BackfillProgress) -> None:
        """Reports what is new, and logs it from time to time and at the end."""
        self.progress = progress
        self._report(progress)
        now_s = self._clock.monotonic_s()
        if progress.is_over or now_s - self._logged_s >= LOG_EVERY_S:
            self._logged_s = now_s
            extra = {"agent": self.channel.agent, "rooms": progress.rooms_total, "rooms_done": progress.rooms_done}
            _log.info(
                "backfill is over" if progress.is_over else "backfill goes on",
                extra=extra | {"posts": progress.posts, "refused": len(progress.refused)},
            )
