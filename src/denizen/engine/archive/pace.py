"""How fast an account asks a platform for old posts: one request at a time, slower when the platform is slow."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio

from denizen.domain.clock import Clock
from denizen.domain.errors import Unavailable

MIN_PAUSE_S = 0.1
MAX_PAUSE_S = 60.0
FIRST_WAIT_S = 1.0

Sleep = Callable[[float], Awaitable[None]]


class Pace:
    """`begin` before a request, then `succeed` or `fail`, which wait as long as it is polite."""

    def __init__(self, clock: Clock, sleep: Sleep = anyio.sleep) -> None:
        self._clock = clock
        self._sleep = sleep
        self._began_s = 0.0
        self._failures = 0

    def begin(self) -> None:
        self._began_s = self._clock.monotonic_s()

    async def succeed(self) -> None:
        """Rests as long as the request took, so that at most half of the time is spent asking."""
        self._failures = 0
        took_s = self._clock.monotonic_s() - self._began_s
        await self._sleep(min(max(took_s, MIN_PAUSE_S), MAX_PAUSE_S))

    async def fail(self, error: Unavailable) -> None:
        """Waits as long as the platform said, else twice as long each time."""
        wait_s = error.retry_after_s
        if wait_s is None:
            wait_s = min(FIRST_WAIT_S * 2 ** min(self._failures, 10), MAX_PAUSE_S)
        self._failures += 1
        await self._sleep(max(wait_s, MIN_PAUSE_S))
