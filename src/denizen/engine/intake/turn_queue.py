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
class _Lane:
    """`load` counts those who have the lane or wait for it, `known` those who may come back besides."""

    is_taken: bool = False
    waiting: deque[anyio.Event] = field(default_factory=deque[anyio.Event])
    load: int = 0
    known: int = 0


class QueueSlot:
    """One turn's place in its lane: held, left or waited for. Not for several tasks at once, but for any."""

    def __init__(self, lane: _Lane) -> None:
        self._lane = lane
        self.is_held = False

    async def take(self, *, first: bool = False) -> None:
        """Waits until the lane is free; `first` before all others who wait."""
        lane = self._lane
        self._count(1)
        try:
            await checkpoint()
            if lane.is_taken:
                mine = anyio.Event()
                lane.waiting.insert(0 if first else len(lane.waiting), mine)
                await self._wait(mine)
            lane.is_taken = self.is_held = True
        finally:
            if not self.is_held:
                self._count(-1)

    async def _wait(self, mine: anyio.Event) -> None:
        lane = self._lane
        try:
            await mine.wait()
        except anyio.get_cancelled_exc_class():
            if mine.is_set():  # it was handed over in the same moment
                self._hand_on()
            else:
                lane.waiting.remove(mine)
            raise

    def leave(self) -> None:
        """Nothing happens when it is not held."""
        if self.is_held:
            self.is_held = False
            self._count(-1)
            self._hand_on()

    def _hand_on(self) -> None:
        """The lane stays taken when somebody waits: nobody comes between."""
        if self._lane.waiting:
            self._lane.waiting.popleft().set()
        else:
            self._lane.is_taken = False

    def _count(self, by: int) -> None:
        self._lane.load += by


class TurnQueues:
    """First come, first served, per lane."""

    def __init__(self, *, max_waiting: int = MAX_WAITING) -> None:
        self._max_waiting = max_waiting
        self._lanes: dict[str, _Lane] = {}

    def check_room(self, lane: str) -> None:
        """Raises LimitExceeded when the lane is full."""
        known = self._lanes.get(lane)
        if known is not None and known.load > self._max_waiting:
            raise LimitExceeded(
                "I am still busy with earlier messages here. Please try again in a moment.",
                code="inbox_full",
                why=f"{self._max_waiting} messages are waiting in this conversation",
            )

    @asynccontextmanager
    async def turn(self, lane: str) -> AsyncGenerator[QueueSlot]:
        """Waits until every earlier turn of the lane has ended or left its seat."""
        own = self._lanes.setdefault(lane, _Lane())
        own.known += 1
        seat = QueueSlot(own)
        try:
            await seat.take()
            yield seat
        finally:
            seat.leave()
            own.known -= 1
            if not own.known:
                del self._lanes[lane]


class TurnPause:
    """The pause of one turn: it waits for people, leaves its queue to others, and its clock stands still."""

    def __init__(self, seat: QueueSlot) -> None:
        self._seat = seat
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
        """A call waits for people until the block ends; then the turn has its seat again."""
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
            if not self._seat.is_held:
                await self._seat.take(first=True)

    def _leave_if_idle(self) -> None:
        if self._waiting and not self._running:
            self._seat.leave()

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
    def open(self, turn_id: TurnId, seat: QueueSlot) -> Generator[TurnPause]:
        """For as long as the turn runs."""
        pause = self._by_turn[turn_id] = TurnPause(seat)
        try:
            yield pause
        finally:
            del self._by_turn[turn_id]
