"""What was said while the account was away: read in order, mirrored, and answered (promise 1).

Messages older than the account's limit get one reply together. A room that was never read before is read from now on:
nobody wants answers to last year's questions.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence

import anyio

from denizen.domain.errors import NotAllowed, NotFound, Unavailable
from denizen.domain.room import Room, RoomKind, is_newer
from denizen.engine.resident.positions import Positions
from denizen.engine.resident.receiver import Begun, Receiver, age_s
from denizen.ports.channel import Arrival

PAGE = 100
SIDE_BY_SIDE = 4
RETRY_S = 2.0
MAX_RETRY_S = 60.0

Hear = Callable[[Arrival], Awaitable[None]]
Began = Callable[[Begun], None]

_log = logging.getLogger("denizen.resident")


class Missed:
    """Catching up, for one account. `hear` mirrors and considers one message, `mirror` only mirrors it; `began` is told
    of the turn that answers several.
    """

    def __init__(self, receiver: Receiver, positions: Positions, *, hear: Hear, mirror: Hear, began: Began) -> None:
        self._desk = receiver.desk
        self._receiver = receiver
        self._positions = positions
        self._hear = hear
        self._mirror = mirror
        self._began = began

    def plan(self, rooms: Sequence[Room]) -> list[Room]:
        """The rooms in which something was posted since their position; these wait from now on until they are read."""
        behind = [room for room in rooms if self._is_behind(room)]
        for room in behind:
            self._positions.hold(room.id)
        return behind

    async def catch_up(self, behind: Sequence[Room]) -> None:
        """Reads the planned rooms, a few side by side."""
        limiter = anyio.CapacityLimiter(SIDE_BY_SIDE)
        async with anyio.create_task_group() as group:
            for room in behind:
                group.start_soon(self._room, room, limiter)

    def _is_behind(self, room: Room) -> bool:
        position = self._positions.find(room.id)
        if position is None:
            self._positions.advance(room.id, room.latest_post or "0")
            return False
        if room.kind is RoomKind.DIRECT:  # nobody tells what is new there
            return True
        return is_newer(room.latest_post, position)

    async def _room(self, room: Room, limiter: anyio.CapacityLimiter) -> None:
        pause_s = RETRY_S
        while True:
            try:
                async with limiter:
                    await self._read(room)
            except Unavailable as error:
                _log.warning("catching up waits", extra={"room": room.id, "code": error.code})
                await anyio.sleep(max(error.retry_after_s or 0.0, pause_s))
                pause_s = min(2 * pause_s, MAX_RETRY_S)
                continue
            except (NotAllowed, NotFound) as error:
                _log.info("room cannot be read", extra={"room": room.id, "code": error.code})
            self._positions.release(room.id)
            return

    async def _read(self, room: Room) -> None:
        """Page by page; the position stays before the oldest question that waits for the common answer."""
        old: list[Arrival] = []
        at = self._positions.find(room.id) or ""
        while True:
            arrivals = await self._desk.channel.list_arrivals(room, after=at, limit=PAGE)
            for arrival in arrivals:
                at = arrival.post.id
                if await self._is_old_question(arrival):
                    old.append(arrival)
                    await self._mirror(arrival)
                else:
                    await self._hear(arrival)
                if not old:
                    self._positions.advance(room.id, at)
            if len(arrivals) < PAGE:
                break
        if old:
            begun = await self._receiver.begin_missed(old)
            if begun is not None:
                self._began(begun)
        self._positions.advance(room.id, at)

    async def _is_old_question(self, arrival: Arrival) -> bool:
        limit_s = self._desk.manners.missed_limit_s
        if arrival.is_mine or age_s(arrival, self._desk.clock.now()) <= limit_s:
            return False
        return (await self._receiver.look(arrival)).answers and not await self._receiver.is_claimed(arrival.post.id)
