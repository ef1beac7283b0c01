"""What happens in one room is heard one after another, and rooms do not wait for each other.

discord.py runs each event in a task of its own; the handlers only put a call in here, without waiting, so that the
order of arrival stays. Called by `events` and `interactions`. What the calls do is not known here.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable

from anyio.abc import TaskGroup

from denizen.adapters.discord.readiness import Gate

_log = logging.getLogger("denizen.discord")

Call = Callable[[], Awaitable[object]]
CatchUp = Callable[[str, str], Awaitable[None]]
"""Is given a room and a message, and hears that message and all later ones from the platform."""


class RoomQueues:
    """A queue for each room in which something waits, each with a worker that ends when nothing waits any more.

    When `limit` calls wait in a room, further messages are let go, and are read from the platform (`catch_up`) when the
    queue is empty. Other news has twice that room, and is lost beyond it.
    """

    def __init__(self, tasks: TaskGroup, gate: Gate, catch_up: CatchUp, *, limit: int) -> None:
        self._tasks = tasks
        self._gate = gate
        self._catch_up = catch_up
        self._limit = limit
        self._rooms: dict[str, _Queue] = {}

    def put(self, room_id: str, call: Call, *, message_id: str = "") -> None:
        """Never waits. `message_id` is given for new messages only."""
        queue = self._rooms.get(room_id)
        if queue is None:
            queue = self._rooms[room_id] = _Queue()
            self._tasks.start_soon(self._work, room_id, queue)
        if message_id and (queue.first_lost or len(queue.calls) >= self._limit):
            if not queue.first_lost:
                _log.warning("a room has more messages than are kept; catching up later", extra={"room": room_id})
            queue.first_lost = queue.first_lost or message_id
        elif len(queue.calls) < 2 * self._limit:
            queue.calls.append(call)
        else:
            _log.warning("a room has more news than is kept; an edit or a deletion is lost", extra={"room": room_id})

    async def _work(self, room_id: str, queue: _Queue) -> None:
        while queue.calls or queue.first_lost:
            await self._gate.wait()
            if queue.calls:
                await queue.calls.popleft()()
            else:
                first, queue.first_lost = queue.first_lost, ""
                await self._catch_up(room_id, first)
        del self._rooms[room_id]


class _Queue:
    """`first_lost` is the oldest message that was let go."""

    def __init__(self) -> None:
        self.calls: deque[Call] = deque()
        self.first_lost = ""
