"""Turns of one conversation and agent run one after another; conversations run side by side.

Each lane is bounded. A message that finds its lane full is refused with words, never dropped (inventory C17,
section 6 "Busy"). A turn that waits for people leaves its seat meanwhile, and is the next to have it when it comes
back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from anyio.lowlevel import checkpoint

from denizen.domain.errors import Exhausted

MAX_WAITING = 20


@dataclass(slots=True)
class _Lane:
    """`load` counts those who have the lane or wait for it, `known` those who may come back besides."""

    is_taken: bool = False
    waiting: deque[anyio.Event] = field(default_factory=deque[anyio.Event])
    load: int = 0
    known: int = 0


class Seat:
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


class Inbox:
    """First come, first served, per lane."""

    def __init__(self, *, max_waiting: int = MAX_WAITING) -> None:
        self._max_waiting = max_waiting
        self._lanes: dict[str, _Lane] = {}

    def check_room(self, lane: str) -> None:
        """Raises Exhausted when the lane is full."""
        known = self._lanes.get(lane)
        if known is not None and known.load > self._max_waiting:
            raise Exhausted(
                "I am still busy with earlier messages here. Please try again in a moment.",
                code="inbox_full",
                why=f"{self._max_waiting} messages are waiting in this conversation",
            )

    @asynccontextmanager
    async def turn(self, lane: str) -> AsyncGenerator[Seat]:
        """Waits until every earlier turn of the lane has ended or left its seat."""
        own = self._lanes.setdefault(lane, _Lane())
        own.known += 1
        seat = Seat(own)
        try:
            await seat.take()
            yield seat
        finally:
            seat.leave()
            own.known -= 1
            if not own.known:
                del self._lanes[lane]
