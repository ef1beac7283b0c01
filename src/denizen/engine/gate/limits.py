"""A sliding-window limiter. Refused attempts do not count, so that a lock-out ends (LW1)."""

from __future__ import annotations

from collections import deque

from denizen.domain.clock import Clock
from denizen.engine.gate.policy import RateLimit


class SlidingWindow:
    """Counts per key, in memory."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._times: dict[str, deque[float]] = {}

    def take(self, key: str, limit: RateLimit) -> float:
        """Takes one slot and returns 0, or takes none and returns the seconds until one is free."""
        now = self._clock.monotonic_s()
        times = self._times.setdefault(key, deque())
        while times and times[0] <= now - limit.window_s:
            times.popleft()
        if len(times) >= limit.calls:
            return (times[0] + limit.window_s - now) if times else limit.window_s
        times.append(now)
        return 0.0
