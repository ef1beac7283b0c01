"""A sliding-window limiter. Refused attempts do not count, so that a lock-out ends (LW1)."""

from __future__ import annotations

from collections import deque

from denizen.domain.clock import Clock
from denizen.engine.gate.policy import RateLimit

SWEEP_AT = 10_000
"""With so many keys those that are over are looked for."""
LONGEST_S = 30 * 86_400.0
"""The longest window that a configuration may ask for."""


class SlidingWindow:
    """Counts per key, in memory."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._times: dict[str, deque[float]] = {}
        self._sweep_at = SWEEP_AT

    def give_back(self, key: str) -> None:
        """The newest slot: nothing came of what it was taken for."""
        times = self._times.get(key)
        if times:
            times.pop()

    def take(self, key: str, limit: RateLimit) -> float:
        """Takes one slot and returns 0, or takes none and returns the seconds until one is free."""
        now = self._clock.monotonic_s()
        if len(self._times) > self._sweep_at:
            self._forget(now)
        times = self._times.setdefault(key, deque())
        while times and times[0] <= now - limit.window_s:
            times.popleft()
        if len(times) >= limit.calls:
            return (times[0] + limit.window_s - now) if times else limit.window_s
        times.append(now)
        return 0.0

    def _forget(self, now: float) -> None:
        """Keys of which nothing was heard for the longest window that there is."""
        self._times = {key: times for key, times in self._times.items() if times and times[-1] > now - LONGEST_S}
        self._sweep_at = max(SWEEP_AT, 2 * len(self._times))
