"""Turns of one conversation and agent run one after another; conversations run side by side.

Each queue is bounded. A message that finds its queue full is refused with words, never dropped. A turn that waits for
people gives its slot to others meanwhile, and is the next to run when it comes back.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import anyio
from anyio.lowlevel import checkpoint

from denizen.domain.errors import LimitExceeded
from denizen.domain.ids import TurnId

MAX_WAITING = 20


@dataclass(slots=True)
class _TurnQueue:
    """`load` counts those who have the queue or wait for it, `known` those who may come back besides."""

    is_taken: bool = False
    waiting: deque[anyio.Event] = field(default_factory=deque[anyio.Event])
    load: int = 0
    known: int = 0


class QueueSlot:
    """One turn's place in its queue: held, left or waited for. Not for several tasks at once, but for any."""

    def __init__(self, queue: _TurnQueue) -> None:
        self._queue = queue
        self.is_held = False

    async def take(self, *, first: bool = False) -> None:
        """Waits until the queue is free; `first` before all others who wait."""
        queue = self._queue
        self._count(1)
        try:
            await checkpoint()
            if queue.is_taken:
                mine = anyio.Event()
                queue.waiting.insert(0 if first else len(queue.waiting), mine)
                await self._wait(mine)
            queue.is_taken = self.is_held = True
        finally:
            if not self.is_held:
                self._count(-1)

    async def _wait(self, mine: anyio.Event) -> None:
        queue = self._queue
        try:
            await mine.wait()
        except anyio.get_cancelled_exc_class():
            if mine.is_set():  # it was handed over in the same moment
                self._hand_on()
            else:
                queue.waiting.remove(mine)
            raise

    def leave(self) -> None:
        """Nothing happens when it is not held."""
        if self.is_held:
            self.is_held = False
            self._count(-1)
            self._hand_on()

    def _hand_on(self) -> None:
        """The queue stays taken when somebody waits: nobody comes between."""
        if self._queue.waiting:
            self._queue.waiting.popleft().set()
        else:
            self._queue.is_taken = False

    def _count(self, by: int) -> None:
        self._queue.load += by


class TurnQueues:
    """First come, first served, per queue."""

    def __init__(self, *, max_waiting: int = MAX_WAITING) -> None:
        self._max_waiting = max_waiting
        self._queues: dict[str, _TurnQueue] = {}

    def check_not_full(self, queue: str) -> None:
        """Raises LimitExceeded when the queue is full."""
        known = self._queues.get(queue)
        if known is not None and known.load > self._max_waiting:
            raise LimitExceeded(
                "I am still busy with earlier messages here. Please try again in a moment.",
                code="queue_full",
                why=f"{self._max_waiting} messages are waiting in this conversation",
            )

    @asynccontextmanager
    async def turn(self, queue: str) -> AsyncGenerator[QueueSlot]:
        """Waits until every earlier turn of the queue has ended or left its slot."""
        own = self._queues.setdefault(queue, _TurnQueue())
        own.known += 1
        slot = QueueSlot(own)
        try:
            await slot.take()
            yield slot
        finally:
            slot.leave()
            own.known -= 1
            if not own.known:
                del self._queues[queue]


class TurnPause:
    """The pause of one turn: it waits for people, leaves its queue to others, and its clock stands still."""

    def __init__(self, slot: QueueSlot) -> None:
        self._slot = slot
        self._taking = anyio.Lock()
        self._running = 0
        self._waiting = 0
        self._limits: set[anyio.CancelScope] = set()
        self._left_s: dict[anyio.CancelScope, float] = {}

    @contextmanager
    def limited(self, scope: anyio.CancelScope) -> Generator[None]:
        """The scope's deadline does not come nearer while people are waited for."""
        self._limits.add(scope)
        try:
            yield
        finally:
            self._limits.discard(scope)
            self._left_s.pop(scope, None)

    @asynccontextmanager
    async def calling(self) -> AsyncGenerator[None]:
        """A call runs, or waits, until the block ends."""
        self._running += 1
        try:
            await self._return()
            yield
        finally:
            self._running -= 1
            self._leave_if_idle()

    @asynccontextmanager
    async def away(self) -> AsyncGenerator[None]:
        """A call waits for people until the block ends; then the turn has its slot again."""
        if not self._waiting:
            self._freeze()
        self._waiting += 1
        self._running -= 1
        self._leave_if_idle()
        is_over = False
        try:
            yield
            is_over = True
        finally:
            self._running += 1
            try:
                if is_over:  # who is cancelled waits for nothing
                    await self._return()
            finally:
                self._waiting -= 1
                if not self._waiting:
                    self._thaw()

    async def _return(self) -> None:
        async with self._taking:
            if not self._slot.is_held:
                await self._slot.take(first=True)

    def _leave_if_idle(self) -> None:
        if self._waiting and not self._running:
            self._slot.leave()

    def _freeze(self) -> None:
        now = anyio.current_time()
        for scope in self._limits:
            self._left_s[scope] = scope.deadline - now
            scope.deadline = math.inf

    def _thaw(self) -> None:
        now = anyio.current_time()
        for scope, left_s in self._left_s.items():
            scope.deadline = now + left_s
        self._left_s.clear()


class TurnPauses:
    """The pauses of all turns of this process."""

    def __init__(self) -> None:
        self._by_turn: dict[TurnId, TurnPause] = {}

    def find(self, turn_id: TurnId) -> TurnPause | None:
        return self._by_turn.get(turn_id)

    @contextmanager
    def open(self, turn_id: TurnId, slot: QueueSlot) -> Generator[TurnPause]:
        """For as long as the turn runs."""
        pause = self._by_turn[turn_id] = TurnPause(slot)
        try:
            yield pause
        finally:
            del self._by_turn[turn_id]
