"""The order of questions across a restart: turns that an earlier process left open go before new ones.

Their runs are taken up while new messages arrive already, and in no certain order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable

import anyio

from denizen.domain.ids import TurnId

PATIENCE_S = 60.0
"""How long after the start a turn is awaited: a process that died is noticed after 40 s at the latest. One that lives
goes on with its turns itself.
"""
LOOK_EVERY_S = 1.0


class ResumedTurns:
    """The turns that have not taken their places yet, by queue, in the order in which they were asked."""

    def __init__(self, is_over: Callable[[TurnId], Awaitable[bool]]) -> None:
        self._is_over = is_over
        self._awaited: dict[str, deque[TurnId]] = {}
        self._changed = anyio.Event()
        self._until_s = 0.0

    def expect(self, turns: Iterable[tuple[str, TurnId]]) -> None:
        """Awaits these turns, by queue and in order, from now on."""
        self._until_s = anyio.current_time() + PATIENCE_S
        for queue, turn_id in turns:
            self._awaited.setdefault(queue, deque()).append(turn_id)

    async def wait_behind(self, queue: str, turn_id: TurnId | None = None) -> None:
        """Waits for those that go first: with an awaited turn for those before it, else for all of the queue. Whoever
        waited takes its place next, before anything else happens.
        """
        try:
            while (first := self._find_first(queue)) not in (None, turn_id):
                with anyio.move_on_after(LOOK_EVERY_S):
                    await self._changed.wait()
                if first == self._find_first(queue) and await self._is_over(first):
                    self._drop(queue, first)
        finally:
            if turn_id is not None:
                self._drop(queue, turn_id)

    def _find_first(self, queue: str) -> TurnId | None:
        if anyio.current_time() >= self._until_s:
            self._awaited.clear()
        return next(iter(self._awaited.get(queue, ())), None)

    def _drop(self, queue: str, turn_id: TurnId) -> None:
        awaited = self._awaited.get(queue, deque())
        if turn_id in awaited:
            awaited.remove(turn_id)
            changed, self._changed = self._changed, anyio.Event()
            changed.set()
