"""What people see of a call that takes long (inventory L6, LW8): after half a minute one line, which then follows what
the tool says of its progress. It belongs to the call, so nothing of it comes after the call's end, however that ends.

Run by the door, for every tool of every source. Where it is shown, and that it goes when the call ends, is the business
of those who watch the turn.
"""

from __future__ import annotations

from collections.abc import Callable

import anyio

INTERIM_AFTER_S = 30.0
EVERY_S = 3.0
"""Progress is told at most so often."""


class Interim:
    """For one call. `tell` takes a line for people."""

    def __init__(self, tool: str, tell: Callable[[str], None]) -> None:
        self._tool = tool
        self._tell = tell
        self._progress = ""
        self._news = anyio.Event()

    def report(self, progress: str) -> None:
        """What the tool says of its progress; it is told once the call has taken long."""
        if progress and progress != self._progress:
            self._progress = progress
            self._news.set()

    async def run(self, after_s: float) -> None:
        """Until it is cancelled, with the end of the call."""
        await anyio.sleep(after_s)
        while True:
            self._news = anyio.Event()
            self._tell(f"`{self._tool}` is still at work{f': {self._progress}' if self._progress else '.'}")
            await self._news.wait()
            await anyio.sleep(EVERY_S)
