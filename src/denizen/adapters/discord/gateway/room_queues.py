"""When an account knows the present again: after each fresh login of a shard, and before anything new is heard.

A message that was missed must be heard before one that is new, else it looks as if it had been heard. So nothing that
arrives after a login is heard before the listener's `on_ready` has returned. A resumed connection replays what was
missed by itself, and needs nothing. Called by `events`; `room_queues` waits at the gate.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable

import anyio
from anyio.abc import TaskGroup


class ReadyGate:
    """Closed at first."""

    def __init__(self) -> None:
        self._open = anyio.Event()

    def open(self) -> None:
        self._open.set()

    def close(self) -> None:
        if self._open.is_set():
            self._open = anyio.Event()

    async def wait(self) -> None:
        """Until it is open, though it may have been closed and opened meanwhile."""
        while not self._open.is_set():
            await self._open.wait()


class ShardReadiness:
    """Which shards know their guilds, and the calls that follow.

    discord.py tells that all are ready only once: when later one of several logs in afresh it says no more than that
    this shard is. And it waits for silence where all guilds may have arrived long ago. So both are counted here.
    """

    def __init__(self, gate: ReadyGate, announce: Callable[[], Awaitable[None]]) -> None:
        self._gate = gate
        self._announce = announce
        self._unknown: dict[int, set[int]] | None = None
        self._due = anyio.Event()

    def begin(self, shard: int, guilds: Iterable[int], *, shards: int) -> None:
        """One of so many shards logged in afresh, and waits for those guilds."""
        self._gate.close()
        if self._unknown is None:
            self._unknown = {each: set() for each in range(shards)}
        self._unknown[shard] = set(guilds)
        if not self._unknown[shard]:
            self.end(shard)

    def take(self, shard: int, guild: int) -> bool:
        """A guild arrived: whether it belongs to a login that is not over, else it is news."""
        if self._unknown is None:
            return True
        if shard not in self._unknown:
            return False
        self._unknown[shard].discard(guild)
        if not self._unknown[shard]:
            self.end(shard)
        return True

    def end(self, shard: int) -> None:
        """The shard knows its guilds, or those that it will get to know."""
        if self._unknown is not None and self._unknown.pop(shard, None) is not None and not self._unknown:
            self._due.set()

    def repeat(self) -> None:
        """Something else than a login has made the past unknown."""
        self._gate.close()
        if not self._unknown:
            self._due.set()

    async def run(self) -> None:
        """Announces, for ever."""
        while True:
            await self._due.wait()
            self._due = anyio.Event()
            await self._announce()
            if not self._unknown and not self._due.is_set():
                self._gate.open()


_log = logging.getLogger("denizen.discord")

QueuedCall = Callable[[], Awaitable[object]]
CatchUp = Callable[[str, str], Awaitable[None]]
"""Is given a room and a message, and hears that message and all later ones from the platform."""


class RoomQueues:
    """A queue for each room in which something waits, each with a worker that ends when nothing waits any more.

    When `limit` calls wait in a room, further messages are let go, and are read from the platform (`catch_up`) when the
    queue is empty. Other news has twice that room, and is lost beyond it.
    """

    def __init__(self, tasks: TaskGroup, gate: ReadyGate, catch_up: CatchUp, *, limit: int) -> None:
        self._tasks = tasks
        self._gate = gate
        self._catch_up = catch_up
        self._limit = limit
        self._rooms: dict[str, _RoomQueue] = {}

    def put(self, room_id: str, call: QueuedCall, *, message_id: str = "") -> None:
        """Never waits. `message_id` is given for new messages only."""
        queue = self._rooms.get(room_id)
        if queue is None:
            queue = self._rooms[room_id] = _RoomQueue()
            self._tasks.start_soon(self._work, room_id, queue)
        if message_id and (queue.first_lost or len(queue.calls) >= self._limit):
            if not queue.first_lost:
                _log.warning("a room has more messages than are kept; catching up later", extra={"room": room_id})
            queue.first_lost = queue.first_lost or message_id
        elif len(queue.calls) < 2 * self._limit:
            queue.calls.append(call)
        else:
            _log.warning("a room has more news than is kept; an edit or a deletion is lost", extra={"room": room_id})

    async def _work(self, room_id: str, queue: _RoomQueue) -> None:
        while queue.calls or queue.first_lost:
            await self._gate.wait()
            if queue.calls:
                await queue.calls.popleft()()
            else:
                first, queue.first_lost = queue.first_lost, ""
                await self._catch_up(room_id, first)
        del self._rooms[room_id]


class _RoomQueue:
    """`first_lost` is the oldest message that was let go."""

    def __init__(self) -> None:
        self.calls: deque[QueuedCall] = deque()
        self.first_lost = ""
