"""What was said while the account was away: read in order, mirrored, and answered (promise 1).

Messages older than the account's limit get one reply together. What was never read before is read from now on: nobody
wants answers to last year's questions. But a new room in a guild that was read before was made while the account was
away, or shown to it, and is read from the newest message that it knew (ids of posts grow across rooms, too).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import anyio

from denizen.domain.errors import DenizenError, InvalidInput, NotAllowed, NotFound, Unavailable
from denizen.domain.room import Room, RoomKind, is_newer
from denizen.engine.resident.errands import run_errand
from denizen.engine.resident.positions import Positions
from denizen.engine.resident.receiver import Begun, Receiver, age_s
from denizen.ports.channel import IncomingMessage

PAGE = 100
SIDE_BY_SIDE = 4
RETRY_S = 2.0
MAX_RETRY_S = 60.0

Hear = Callable[[IncomingMessage], Awaitable[None]]
Began = Callable[[Begun], None]

_log = logging.getLogger("denizen.resident")


class Missed:
    """Catching up, for one account. `hear` mirrors and considers one message, `mirror` only mirrors it; `began` is told
    of the turn that answers several, before which `look_back` fetches what was said earlier.
    """

    def __init__(
        self, receiver: Receiver, positions: Positions, *, hear: Hear, mirror: Hear, began: Began, look_back: Hear
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
                group.start_soon(run_errand, "catching up", partial(self._room, room, limiter))

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
        is_late = age_s(arrival, self._desk.clock.now()) > self._desk.manners.missed_limit_s
        return is_late and not arrival.is_mine and (await self._receiver.look(arrival)).trigger is not None

    async def _is_open_question(self, arrival: IncomingMessage) -> bool:
        """Whether it deserves an answer and has none."""
        return (await self._receiver.look(arrival)).answers and not await self._receiver.is_claimed(arrival.post.id)
