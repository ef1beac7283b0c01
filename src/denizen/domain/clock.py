"""The only place where the time comes from. Everything else is given a clock."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> datetime:
        """An aware UTC time."""
        ...

    def monotonic_s(self) -> float:
        """Seconds that only go forward, for measuring."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic_s(self) -> float:
        return time.monotonic()


def tell_elapsed_s() -> float:
    """Returns seconds that pass also while the machine is suspended, where the system counts them."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)
