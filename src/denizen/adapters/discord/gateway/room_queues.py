"""Queues of calls for the listener, one for each room, which wait until the account is ready.

Calls of one room run one after another, and rooms do not wait for each other. A missed message must reach the
listener before a new one, or it would look as if it had been handled. So nothing that arrives after a login is
delivered before the listener's `on_ready` has returned. A resumed connection replays what was missed, and needs no
wait.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable

import anyio
from anyio.abc import TaskGroup


class ReadyGate:
    """A gate that calls wait at. It is closed at first."""

    def __init__(self) -> None:
        self._open = anyio.Event()

    def open(self) -> None:
        self._open.set()

    def close(self) -> None:
        if self._open.is_set():
            self._open = anyio.Event()

    async def wait(self) -> None:
        """Waits until the gate is open. It may have been closed and opened again meanwhile."""
        while not self._open.is_set():
            await self._open.wait()


class ShardReadiness:
    """Tracks which shards know their guilds, and announces when all do.

    discord.py reports only once that all shards are ready: when one of several logs in afresh later, it reports that
    shard alone. It also waits for silence where all guilds may have arrived long ago. So both are counted here.
    """

    def __init__(self, gate: ReadyGate, announce: Callable[[], Awaitable[None]]) -> None:
        self._gate = gate
        self._announce = announce
        self._unknown: dict[int, set[int]] | None = None
        self._due = anyio.Event()

    def begin(self, shard: int, guilds: Iterable[int], *, shards: int) -> None:
        """Notes that one of `shards` shards logged in afresh and waits for these guilds."""
        self._gate.close()
        if self._unknown is None:
            self._unknown = {each: set() for each in range(shards)}
        self._unknown[shard] = set(guilds)
        if not self._unknown[shard]:
            self.end(shard)

    def take(self, shard: int, guild: int) -> bool:
        """Notes an arrived guild. Returns whether it belongs to a login that is not finished."""
        if self._unknown is None:
            return True
        if shard not in self._unknown:
            return False
        self._unknown[shard].discard(guild)
        if not self._unknown[shard]:
            self.end(shard)
        return True

    def end(self, shard: int) -> None:
        """Notes that the shard knows its guilds, or stops waiting for the missing ones."""
        if self._unknown is not None and self._unknown.pop(shard, None) is not None and not self._unknown:
            self._due.set()

    def repeat(self) -> None:
        """Asks for an announcement for another reason than a login."""
        self._gate.close()
        if not self._unknown:
            self._due.set()

    async def run(self) -> None:
        """Announces whenever it is due, until cancelled."""
        while True:
            await self._due.wait()
            self._due = anyio.Event()
            await self._announce()
            if not self._unknown and not self._due.is_set():
                self._gate.open()


_log = logging.getLogger("denizen.discord")

QueuedCall = Callable[[], Awaitable[object]]
CatchUp = Callable[[str, str], Awaitable[None]]
"""Takes a room and a message, and reads that message and all later ones from the platform."""


class RoomQueues:
    """The queues of all rooms, each with a worker that ends when its queue is empty.

    When `limit` calls wait in a room, further messages are dropped, and `catch_up` reads them from the platform once
    the queue is empty. Other events have twice that limit, and are lost beyond it.
    """

    def __init__(self, tasks: TaskGroup, gate: ReadyGate, catch_up: CatchUp, *, limit: int) -> None:
        self._tasks = tasks
        self._gate = gate
        self._catch_up = catch_up
        self._limit = limit
        self._rooms: dict[str, _RoomQueue] = {}

    def put(self, room_id: str, call: QueuedCall, *, message_id: str = "") -> None:
        """Queues a call without waiting. `message_id` is given for new messages only."""
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
    """The queue of one room. `first_lost` is the oldest message that was dropped."""

    def __init__(self) -> None:
        self.calls: deque[QueuedCall] = deque()
        self.first_lost = ""
