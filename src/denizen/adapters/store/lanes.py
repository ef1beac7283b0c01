"""A bounded number of lanes, opened as they are needed and kept for the next unit of work."""

from __future__ import annotations

import anyio
import sqlalchemy as sa

from denizen.adapters.store.lane import Lane

CLOSE_S = 30.0
"""How long `aclose` waits: no statement takes longer."""


class Lanes:
    """Whoever takes a lane gives it back, from the same task."""

    def __init__(self, name: str, engine: sa.Engine, maximum: int) -> None:
        self._name = name
        self._engine = engine
        self._maximum = maximum
        self._limit = anyio.CapacityLimiter(maximum)
        self._idle: list[Lane] = []
        self._opened = 0

    @property
    def in_use(self) -> int:
        return int(self._limit.borrowed_tokens)

    async def take(self) -> Lane:
        """Waits, first come first served, until one is free. A task that has one already gets a RuntimeError instead of
        waiting for itself.
        """
        await self._limit.acquire()
        if self._idle:
            return self._idle.pop()
        try:
            lane = Lane(f"{self._name}-{self._opened + 1}", self._engine)
        except RuntimeError:  # no thread more
            self._limit.release()
            raise
        self._opened += 1
        return lane

    def give_back(self, lane: Lane) -> None:
        self._idle.append(lane)
        self._limit.release()

    async def aclose(self) -> None:
        """Waits for the units of work that are under way, though not for ever, then closes every connection."""
        with anyio.move_on_after(CLOSE_S, shield=True):
            for _ in range(self._maximum):
                await self._limit.acquire_on_behalf_of(object())
        with anyio.CancelScope(shield=True):
            while self._idle:
                await self._idle.pop().close()
