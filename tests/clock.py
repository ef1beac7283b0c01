"""The clocks of tests: one that stands until it is moved, and one that runs ahead of the machine's or behind it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import anyio.lowlevel

from denizen.domain.clock import SystemClock

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


class ManualClock:
    """A clock that stands until a test moves it, or somebody sleeps on it: `sleeps` are those pauses, in seconds."""

    def __init__(self, time: datetime = NOON) -> None:
        self.time = self._start = time
        self.sleeps: list[float] = []

    def now(self) -> datetime:
        return self.time

    def monotonic_s(self) -> float:
        return (self.time - self._start).total_seconds()

    def advance(self, seconds: float = 0, *, minutes: float = 0, hours: float = 0, days: float = 0) -> None:
        self.time += timedelta(days, seconds, minutes=minutes, hours=hours)

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.advance(seconds)
        await anyio.lowlevel.checkpoint()


class OffsetClock(SystemClock):
    """The machine's clock, `offset` ahead of it or behind it. It goes on, since a server with rate limits and real
    processes as clients would otherwise refuse all of them after the first few requests.
    """

    def __init__(self, offset: timedelta = timedelta()) -> None:
        self.offset = offset

    def now(self) -> datetime:
        return super().now() + self.offset
