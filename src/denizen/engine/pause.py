"""A turn that waits for people: it leaves its lane to others, and its time stands still.

One for each running turn, opened by `turn.py`; the gate's door says when a call runs and when one waits. The lane is
left while no call of the turn runs and at least one waits.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

import anyio

from denizen.domain.ids import TurnId
from denizen.engine.inbox import Seat


class Pause:
    """Of one turn."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        self._taking = anyio.Lock()
        self._running = 0
        self._waiting = 0
        self._limits: set[anyio.CancelScope] = set()
        self._left_s: dict[anyio.CancelScope, float] = {}

    @contextmanager
    def limited(self, scope: anyio.CancelScope) -> Generator[None]:
        """The scope's deadline does not come nearer while people are waited for."""
        self._limits.add(scope)
        try:
            yield
        finally:
            self._limits.discard(scope)
            self._left_s.pop(scope, None)

    @asynccontextmanager
    async def calling(self) -> AsyncGenerator[None]:
        """A call runs, or waits, until the block ends."""
        self._running += 1
        try:
            await self._return()
            yield
        finally:
            self._running -= 1
            self._leave_if_idle()

    @asynccontextmanager
    async def away(self) -> AsyncGenerator[None]:
        """A call waits for people until the block ends; then the turn has its seat again."""
        if not self._waiting:
            self._freeze()
        self._waiting += 1
        self._running -= 1
        self._leave_if_idle()
        is_over = False
        try:
            yield
            is_over = True
        finally:
            self._running += 1
            try:
                if is_over:  # who is cancelled waits for nothing
                    await self._return()
            finally:
                self._waiting -= 1
                if not self._waiting:
                    self._thaw()

    async def _return(self) -> None:
        async with self._taking:
            if not self._seat.is_held:
                await self._seat.take(first=True)

    def _leave_if_idle(self) -> None:
        if self._waiting and not self._running:
            self._seat.leave()

    def _freeze(self) -> None:
        now = anyio.current_time()
        for scope in self._limits:
            self._left_s[scope] = scope.deadline - now
            scope.deadline = math.inf

    def _thaw(self) -> None:
        now = anyio.current_time()
        for scope, left_s in self._left_s.items():
            scope.deadline = now + left_s
        self._left_s.clear()


class Pauses:
    """Of the turns that run in this process."""

    def __init__(self) -> None:
        self._by_turn: dict[TurnId, Pause] = {}

    def find(self, turn_id: TurnId) -> Pause | None:
        return self._by_turn.get(turn_id)

    @contextmanager
    def open(self, turn_id: TurnId, seat: Seat) -> Generator[Pause]:
        """For as long as the turn runs."""
        pause = self._by_turn[turn_id] = Pause(seat)
        try:
            yield pause
        finally:
            del self._by_turn[turn_id]
