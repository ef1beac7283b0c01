"""Discord's ids and times, and waiting for changes. A snowflake contains the millisecond of its creation; timestamps on
the wire are ISO 8601.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import anyio

from denizen.domain.clock import Clock

EPOCH = datetime(2015, 1, 1, tzinfo=UTC)
_PER_MILLISECOND = 1 << 22


class SnowflakeGenerator:
    """Generates unique, increasing ids, even when the clock stands still or is set back."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = 0

    def fresh(self) -> int:
        self._last = max(first_snowflake_at(self._clock.now()), self._last + 1)
        return self._last


def first_snowflake_at(moment: datetime) -> int:
    """Returns the lowest id of that millisecond."""
    return (moment - EPOCH) // timedelta(milliseconds=1) * _PER_MILLISECOND


def snowflake_time(snowflake: int) -> datetime:
    """Returns when this id was created, to the millisecond."""
    return EPOCH + timedelta(milliseconds=snowflake // _PER_MILLISECOND)


def format_timestamp(moment: datetime) -> str:
    """Returns `2026-11-21T10:00:00.123000+00:00`, as Discord writes it."""
    return moment.isoformat(timespec="microseconds")


def format_optional_timestamp(moment: datetime | None) -> str | None:
    return None if moment is None else format_timestamp(moment)


_LOOK_S = 0.01
"""A condition may depend on the client, whose changes make no beat, so it is also tried in this interval."""


class ChangeSignal:
    """Wakes tasks that wait for a condition. Call `beat` after each change; `until` looks again after each beat, and
    now and then without one.
    """

    def __init__(self) -> None:
        self._next: anyio.Event | None = None

    def beat(self) -> None:
        if self._next is not None:
            self._next.set()
            self._next = None

    async def until(self, predicate: Callable[[], object]) -> None:
        while not predicate():
            if self._next is None:
                self._next = anyio.Event()
            with anyio.move_on_after(_LOOK_S):
                await self._next.wait()
