"""The time of tests: one limit for waits that only guard against hanging, and a clock of the event loop to move."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

HANG_LIMIT_S = 120.0
"""A test that waits this long for an event has failed. Generous, since a busy machine must not fail a test; below the
`faulthandler_timeout` of pytest, so that the test says what it waited for.
"""

PROCESS_LIMIT_S = 2 * HANG_LIMIT_S
"""A process that a test started is killed after this time: later than a wait ends, so that the one who waits tells what
happened.
"""


class LoopClock:
    """Adds to the clock of an event loop: every deadline and sleep of that loop comes nearer by as much."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def advance(self, seconds: float) -> None:
        self.ahead_s += seconds


@contextmanager
def controlled_clock() -> Generator[LoopClock]:
    """The clock of the running loop can be moved within the block. A deadline around the block would be moved too."""
    loop, clock = asyncio.get_running_loop(), LoopClock()
    read_time = loop.time
    loop.time = lambda: read_time() + clock.ahead_s
    try:
        yield clock
    finally:
        loop.time = read_time
