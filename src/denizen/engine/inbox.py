"""Turns of one conversation and agent run one after another; conversations run side by side.

Each lane is bounded. A message that finds its lane full is refused with words, never dropped (inventory C17,
section 6 "Busy").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from denizen.domain.errors import Exhausted

MAX_WAITING = 20


class Inbox:
    """First come, first served, per lane."""

    def __init__(self, *, max_waiting: int = MAX_WAITING) -> None:
        self._max_waiting = max_waiting
        self._locks: dict[str, anyio.Lock] = {}
        self._load: Counter[str] = Counter()

    def check_room(self, lane: str) -> None:
        """Raises Exhausted when the lane is full."""
        if self._load[lane] > self._max_waiting:
            raise Exhausted(
                "I am still busy with earlier messages here. Please try again in a moment.",
                code="inbox_full",
                why=f"{self._max_waiting} messages are waiting in this conversation",
            )

    @asynccontextmanager
    async def turn(self, lane: str) -> AsyncGenerator[None]:
        """Waits until every earlier turn of the lane has ended."""
        self._load[lane] += 1
        lock = self._locks.setdefault(lane, anyio.Lock())
        try:
            async with lock:
                yield
        finally:
            self._load[lane] -= 1
            if not self._load[lane]:
                del self._load[lane], self._locks[lane]
