"""The time of tests: one limit for waits that only guard against hanging, waits for what tells nobody that it happened,
and a clock of the event loop to move.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

import anyio

T = TypeVar("T")

HANG_LIMIT_S = 120.0
"""A test that waits this long for an event has failed. Generous, since a busy machine must not fail a test; below the
`faulthandler_timeout` of pytest, so that the test says what it waited for.
"""

PROCESS_LIMIT_S = 2 * HANG_LIMIT_S
"""A process that a test started is killed after this time: later than a wait ends, so that the one who waits tells what
happened.
"""


def wait_until(is_true: Callable[[], bool]) -> None:
    """Looks again and again until it is true, for what another process does."""
    pause = threading.Event()
    for _ in range(int(HANG_LIMIT_S / 0.02)):
        if is_true():
            return
        pause.wait(0.02)
    raise AssertionError("it did not become true")


async def poll(look: Callable[[], Awaitable[T]]) -> T:
    """Returns the first result of `look` that is true, for what the store or another process has in the end."""
    with anyio.fail_after(HANG_LIMIT_S):
        while True:
            found = await look()
            if found:
                return found
            await anyio.sleep(0.001)


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
