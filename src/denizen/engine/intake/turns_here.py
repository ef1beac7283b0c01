"""The turns of this process: those that were opened and have not begun, that wait behind others, that run.

Called by `turn`, which sees them through.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, KeysView
from contextlib import asynccontextmanager, contextmanager

import anyio

from denizen.domain.ids import TurnId
from denizen.domain.turn import Turn
from denizen.engine.intake.opening import OpenTurn, turn_queue_key
from denizen.engine.intake.resumed_turns import ResumedTurns
from denizen.engine.intake.turn_queue import QueueSlot, TurnPauses, TurnQueues

MAX_OPENED = 1000
"""Turns that are kept in memory until their run begins; others are loaded from the store."""


class TurnsHere:
    """Knows the turns of this process, has those of a queue wait for each other, and stops them."""

    def __init__(self, queues: TurnQueues, resumed: ResumedTurns, pauses: TurnPauses) -> None:
        self._queues = queues
        self._resumed = resumed
        self._pauses = pauses
        self._opened: dict[TurnId, OpenTurn] = {}
        self._running: dict[TurnId, anyio.CancelScope] = {}
        self._closing: set[TurnId] = set()
        """Turns among the running ones that have an outcome, which is being written down."""
        self._ended = anyio.Event()
        """Set when a running turn ends."""
        self._queued: dict[TurnId, anyio.Event] = {}
        """Turns among the running ones that wait behind others; the event is set when the wait ends."""
        self._stopped: set[TurnId] = set()
        """Turns among the opened ones that were cancelled before they ran."""

    @property
    def running(self) -> KeysView[TurnId]:
        """The turns that have begun and not ended, those that wait among them."""
        return self._running.keys()

    @property
    def queued(self) -> frozenset[TurnId]:
        """The turns that wait behind others of their queue."""
        return frozenset(self._queued)

    def count_idle(self) -> int:
        """Returns how many running turns wait, for people or for other turns. May be called from any thread."""
        return len(self._running) - self._pauses.count_working()

    async def wait_for_working(self) -> None:
        """Waits until none of the turns works, because it has ended or waits when another one ends."""
        while self._pauses.count_working():
            await self._ended.wait()

    def keep(self, opened: OpenTurn) -> None:
        """Keeps a turn until its run begins, which need not load it then. Not for a fleet: any process may run it."""
        self._opened[opened.turn.id] = opened
        if len(self._opened) > MAX_OPENED:  # another process may win a run, which then takes nothing from here
            oldest = next(iter(self._opened))
            del self._opened[oldest]
            self._stopped.discard(oldest)

    def take(self, key: TurnId) -> OpenTurn | None:
        """Returns the turn that was kept, and keeps it no longer."""
        return self._opened.pop(key, None)

    @contextmanager
    def run(self, turn: Turn) -> Generator[None]:
        """The turn runs until the block ends, or is stopped: then the block ends without an error. Whoever was
        cancelled before it ran is stopped at once.
        """
        with anyio.CancelScope() as scope:
            self._running[turn.id] = scope
            if turn.id in self._stopped or turn.is_stop_asked:
                self._stopped.discard(turn.id)
                scope.cancel()
            try:
                yield
            finally:
                del self._running[turn.id]
                self._closing.discard(turn.id)
                ended, self._ended = self._ended, anyio.Event()
                ended.set()

    def close(self, key: TurnId) -> None:
        """The outcome of a running turn is known: nobody but its asker stops it now."""
        self._closing.add(key)

    @asynccontextmanager
    async def next_in_queue(self, turn: Turn) -> AsyncGenerator[QueueSlot]:
        """Waits until the turn is next in its conversation."""
        queue = turn_queue_key(turn)
        self._queued[turn.id] = anyio.Event()
        try:
            await self._resumed.wait_behind(queue, turn.id)
            async with self._queues.turn(queue, turn.principal.key) as slot:
                self._queued.pop(turn.id).set()
                yield slot
        finally:
            if turn.id in self._queued:
                self._queued.pop(turn.id).set()

    def is_queued(self, key: TurnId) -> bool:
        """Whether the turn waits behind others in this process."""
        return key in self._queued

    async def wait_while_queued(self, key: TurnId) -> None:
        """Returns when the turn no longer waits behind others."""
        waits = self._queued.get(key)
        if waits is not None:
            await waits.wait()

    def cancel(self, key: TurnId) -> bool:
        """Stops a turn; False when it is none of this process."""
        running = self._running.get(key)
        if running is not None:
            running.cancel()
        elif key in self._opened:
            self._stopped.add(key)
        else:
            return False
        return True

    def end_unwanted(self, key: TurnId) -> None:
        """Stops a turn that runs, unless it ends already."""
        if key in self._running and key not in self._closing:
            self._running[key].cancel()

    def is_stopped(self, key: TurnId) -> bool:
        """Whether a turn that runs here was stopped with `cancel`, and does not only leave the process."""
        running = self._running.get(key)
        return running is not None and running.cancel_called
