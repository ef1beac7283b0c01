"""Live events of running turns, for those who watch in this process.

Best effort by design: what counts is in the store. Watchers subscribe before the turn is submitted, so they miss
nothing; a watcher that is slow makes its own queue long and blocks nobody.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from contextlib import contextmanager

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from denizen.domain.errors import DenizenError
from denizen.domain.events import TurnEvent
from denizen.domain.ids import TurnId

Sign = TurnEvent | DenizenError
"""Something that happens in a turn, or why nothing more of it will be seen here."""
Watch = MemoryObjectReceiveStream[Sign]


class LiveEvents:
    """Who watches which turn."""

    def __init__(self) -> None:
        self._watchers: dict[TurnId, list[MemoryObjectSendStream[Sign]]] = {}

    def publish(self, turn_id: TurnId, event: Sign) -> None:
        """Hands the event to every watcher of the turn; nobody watching is the normal case."""
        for stream in self._watchers.get(turn_id, ()):
            stream.send_nowait(event)

    def is_watched(self, turn_id: TurnId) -> bool:
        return turn_id in self._watchers

    @contextmanager
    def watch(self, turn_id: TurnId) -> Generator[Watch]:
        """Events of the turn from now on. The stream does not end by itself: stop at `TurnFinished`, or an error."""
        send, receive = anyio.create_memory_object_stream[Sign](math.inf)
        self._watchers.setdefault(turn_id, []).append(send)
        try:
            yield receive
        finally:
            watchers = self._watchers[turn_id]
            watchers.remove(send)
            if not watchers:
                del self._watchers[turn_id]
            send.close()
            receive.close()
