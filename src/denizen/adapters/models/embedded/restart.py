"""When a child process that keeps dying may be started again. Pure; called by `runtime`."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPolicy:
    """The first restart is at once, later ones wait longer each time, and `limit` deaths within `window_s` end it.

    It goes on when enough of them are older than the window.
    """

    limit: int = 5
    window_s: float = 600
    first_pause_s: float = 0.5
    longest_pause_s: float = 30

    def recent(self, deaths: Sequence[float], now: float) -> Sequence[float]:
        """Those of the deaths (monotonic seconds, ascending) that still count."""
        return tuple(death for death in deaths if now - death < self.window_s)

    def plan_pause_s(self, deaths: Sequence[float], now: float) -> float | None:
        """Seconds to wait before the next start, 0 for none; None when it must not be started now."""
        counted = self.recent(deaths, now)
        if len(counted) >= self.limit:
            return None
        if len(counted) < 2:
            return 0
        pause = min(self.first_pause_s * 2 ** (len(counted) - 2), self.longest_pause_s)
        return max(0, counted[-1] + pause - now)
