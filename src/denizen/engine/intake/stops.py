"""Stops in a fleet: whoever stops a turn may be in another process than the turn, which perhaps runs nowhere yet.

A word by the relay is quick, and may be missed. What counts is a note with the turn: a process that runs turns looks
for it when it begins one, and every few seconds at those that it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import anyio

from denizen.domain.ids import TurnId
from denizen.ports.store import Store

LOOK_EVERY_S = 2.0


class StopRequests:
    """The stops that were asked for here, until they are written down, and those that concern turns of this process:
    `list_running` are its turns, and `stop` ends one of them that does not end already.
    """

    def __init__(
        self, store: Store, list_running: Callable[[], Collection[TurnId]], stop: Callable[[TurnId], object]
    ) -> None:
        self._store = store
        self._list_running = list_running
        self._stop = stop
        self._wanted: set[TurnId] = set()
        self._asked = anyio.Event()

    def ask(self, turn_id: TurnId) -> None:
        """Stops a turn of another process, soon. Returns at once."""
        self._wanted.add(turn_id)
        self._asked.set()

    async def run(self) -> None:
        """Writes down and looks, until it is cancelled."""
        while True:
            self._asked = asked = anyio.Event()
            await self.settle()
            with anyio.move_on_after(LOOK_EVERY_S):
                await asked.wait()

    async def settle(self) -> None:
        """Writes down what was asked for here, and stops the turns of this process that somebody stopped, or ended in
        the store: with their chat, perhaps.
        """
        for turn_id in list(self._wanted):
            async with self._store.work() as work:
                await work.turns.ask_stop(turn_id)
            self._wanted.discard(turn_id)
        running = set(self._list_running())
        if not running:
            return
        async with self._store.work(write=False) as work:
            found = {turn.id: turn for turn in await work.turns.find_many(running)}
        for turn_id in running:
            turn = found.get(turn_id)
            if turn is None or turn.is_stop_asked or turn.status.is_final:
                self._stop(turn_id)
