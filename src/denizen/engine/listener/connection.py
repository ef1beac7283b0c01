"""The rooms of an account as they come and go: what is kept of them, and from where on they are read.

A room that is deleted takes along what was said in it (promise 3); one that the account only left does not. What is
said there is the business of `resident`, which calls this.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial

import anyio

from denizen.domain.errors import DenizenError, InvalidInput, NotAllowed, NotFound, Unavailable
from denizen.domain.room import Room, RoomKind, is_newer
from denizen.engine.archive.mirror import Mirror
from denizen.engine.archive.pace import Pace
from denizen.engine.listener.background import run_once
from denizen.engine.listener.cursors import ReadCursors, before
from denizen.engine.listener.proposals import ProposalReactions
from denizen.engine.listener.turn_start import AccountContext, StartedTurn, TurnStarter, age_s
from denizen.ports.archive import CountBy
from denizen.ports.channel import IncomingMessage

_log = logging.getLogger("denizen.resident")


class RoomTracker:
    """One for each account."""

    def __init__(
        self, desk: AccountContext, positions: ReadCursors, mirror: Mirror, proposing: ProposalReactions
    ) -> None:
        self._desk = desk
        self._positions = positions
        self._mirror = mirror
        self._proposing = proposing
        self._new_talks: set[str] = set()

    async def come(self, room: Room) -> None:
        """It is new, or has another name."""
        await self._mirror.rooms([room])
        if self._positions.find(room.id) is None:
            self._positions.advance(room.id, room.latest_post or "0")
            await self._positions.write()

    async def go(self, room_id: str, *, is_deleted: bool) -> None:
        self._positions.forget(room_id)
        if is_deleted:
            gone = await self._mirror.delete_room(self._desk.channel.platform, room_id)
            await self._proposing.forget_room(self._desk, room_id)
            _log.info("a room was deleted", extra={"room": room_id, "posts": gone})
        else:
            await self._mirror.close_room(self._desk.channel.platform, room_id)

    async def close_deleted(self, there: Sequence[Room]) -> None:
        """Those in which something was said and that were deleted while the account was away. What is `there` is not
        asked for; whatever cannot be known stays.
        """
        pace = Pace(self._desk.clock)
        while True:
            try:
                for room_id in await self._find_deleted({room.id for room in there}):
                    await self.go(room_id, is_deleted=True)
            except Unavailable as error:
                await pace.fail(error)
            else:
                return

    async def _find_deleted(self, there: Collection[str]) -> Collection[str]:
        channel = self._desk.channel
        async with self._desk.store.work(write=False) as work:
            known = {room.id: room for room in await work.archive.list_rooms(channel.platform)}
            absent = [key for key, room in known.items() if key not in there and room.guild]
            counts = await work.archive.count(CountBy.ROOM, platform=channel.platform, rooms=absent, limit=len(absent))
        spoken = [known[each.key] for each in counts]
        above = {room.parent: known[room.parent] for room in spoken if room.parent in known}
        asked = {room.id: room for room in (*above.values(), *spoken) if room.id not in there}
        return await channel.find_deleted(list(asked.values())) if asked else ()

    def meet(self, room: Room, post_id: str) -> None:
        """Something is said there; in a room that nobody told of it is read from that on."""
        if self._positions.find(room.id) is None:
            self._positions.advance(room.id, before(post_id))
            if room.kind is RoomKind.DIRECT:
                self._new_talks.add(room.id)

    async def remember(self, room: Room) -> None:
        """Nobody lists direct talks, so one is written down before its first message is looked at."""
        if room.id in self._new_talks:
            async with self._desk.store.work() as work:
                await work.archive.put_room(room)
            await self._positions.write()
            self._new_talks.discard(room.id)


PAGE = 100
SIDE_BY_SIDE = 4
RETRY_S = 2.0
MAX_RETRY_S = 60.0

Hear = Callable[[IncomingMessage], Awaitable[None]]
Began = Callable[[StartedTurn], None]

_log = logging.getLogger("denizen.resident")


class CatchUpReader:
    """Catching up, for one account. `hear` mirrors and considers one message, `mirror` only mirrors it; `began` is told
    of the turn that answers several, before which `look_back` fetches what was said earlier.
    """

    def __init__(
        self, receiver: TurnStarter, positions: ReadCursors, *, hear: Hear, mirror: Hear, began: Began, look_back: Hear
    ) -> None:
        self._desk = receiver.desk
        self._receiver = receiver
        self._positions = positions
        self._hear = hear
        self._mirror = mirror
        self._began = began
        self._look_back = look_back

    def plan(self, rooms: Sequence[Room]) -> list[Room]:
        """The rooms in which something was posted since their position; these wait from now on until they are read."""
        positions = self._positions
        known = {room.guild for room in rooms if room.guild and positions.find(room.id) is not None}
        newest = positions.newest
        behind = [room for room in rooms if self._is_behind(room, newest if room.guild in known else "")]
        for room in behind:
            self._positions.hold(room.id)
        return behind

    async def catch_up(self, behind: Sequence[Room]) -> None:
        """Reads the planned rooms, a few side by side."""
        limiter = anyio.CapacityLimiter(SIDE_BY_SIDE)
        async with anyio.create_task_group() as group:
            for room in behind:
                group.start_soon(run_once, "catching up", partial(self._room, room, limiter))

    def _is_behind(self, room: Room, known: str) -> bool:
        """`known` is where to begin with a room that has no position; empty for now."""
        position = self._positions.find(room.id)
        if position is None:
            position = known or room.latest_post or "0"
            self._positions.advance(room.id, position)
        if room.kind is RoomKind.DIRECT:  # nobody tells what is new there
            return True
        return is_newer(room.latest_post, position)

    async def _room(self, room: Room, limiter: anyio.CapacityLimiter) -> None:
        pause_s = RETRY_S
        while True:
            try:
                async with limiter:
                    await self._read(room)
            except (NotAllowed, NotFound, InvalidInput) as error:
                _log.info("room cannot be read", extra={"room": room.id, "code": error.code})
            except DenizenError as error:
                _log.warning("catching up waits", extra={"room": room.id, "code": error.code})
                wait_s = error.retry_after_s if isinstance(error, Unavailable) else None
                await anyio.sleep(max(wait_s or 0.0, pause_s))
                pause_s = min(2 * pause_s, MAX_RETRY_S)
                continue
            self._positions.release(room.id)
            return

    async def _read(self, room: Room) -> None:
        """Page by page; the position stays before the oldest question that waits for the common answer."""
        old: list[IncomingMessage] = []
        at = self._positions.find(room.id) or ""
        while True:
            arrivals = await self._desk.channel.list_arrivals(room, after=at, limit=PAGE)
            for arrival in arrivals:
                at = arrival.post.id
                if await self._is_late_question(arrival):
                    await self._mirror(arrival)
                    if await self._is_open_question(arrival):
                        old.append(arrival)
                else:
                    await self._hear(arrival)
                if not old:
                    self._positions.advance(room.id, at)
            if len(arrivals) < PAGE:
                break
        if old:
            await self._answer_together(old)
        self._positions.advance(room.id, at)

    async def _answer_together(self, old: Sequence[IncomingMessage]) -> None:
        try:
            await self._look_back(old[-1])
            begun = await self._receiver.begin_missed(old)
        except (NotAllowed, NotFound, InvalidInput) as error:  # what a person can do something about
            await self._receiver.say(old[-1], error.explain())
            return
        if begun is not None:
            self._began(begun)

    async def _is_late_question(self, arrival: IncomingMessage) -> bool:
        """Whether it is for the agent, and from so long ago that it gets no reply of its own: no refusal either."""
        is_late = age_s(arrival, self._desk.clock.now()) > self._desk.account_policy.missed_limit_s
        return is_late and not arrival.is_mine and (await self._receiver.look(arrival)).trigger is not None

    async def _is_open_question(self, arrival: IncomingMessage) -> bool:
        """Whether it deserves an answer and has none."""
        return (await self._receiver.look(arrival)).answers and not await self._receiver.is_claimed(arrival.post.id)
