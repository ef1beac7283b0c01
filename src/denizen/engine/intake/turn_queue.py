"""Turns of one conversation and agent run one after another; conversations run side by side.

Those who ask take turns: the second question of one waits behind the first of another. Each queue is bounded, and
nobody can take all of its places. A message that finds no place is refused with words, never dropped. A turn that waits
for people gives its slot to others meanwhile, and is the next to run when it comes back.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import anyio

from denizen.domain.errors import LimitExceeded
from denizen.domain.ids import TurnId

MAX_WAITING = 20


@dataclass(slots=True)
class _TurnQueue:
    """Those who wait, by asker: the asker who is first is served next, and stands behind the others then. `returning`
    are those who come back, before all others. `known` counts who has the queue, waits for it or may come back.
    `usual_s` is how long it was held lately, newer times counting more; 0 until somebody left it.
    """

    is_taken: bool = False
    returning: deque[anyio.Event] = field(default_factory=deque[anyio.Event])
    waiting: dict[str, deque[anyio.Event]] = field(default_factory=dict[str, deque[anyio.Event]])
    known: int = 0
    usual_s: float = 0.0

    def note_held(self, held_s: float) -> None:
        self.usual_s += (held_s - self.usual_s) / 4 if self.usual_s else held_s

    def join(self, asker: str, mine: anyio.Event, *, first: bool) -> None:
        """Sets the event when the queue is free, now or later."""
        if not self.is_taken:
            self.is_taken = True
            mine.set()
        elif first:
            self.returning.appendleft(mine)
        else:
            self.waiting.setdefault(asker, deque()).append(mine)

    def part(self, asker: str, mine: anyio.Event) -> None:
        """Takes back `join`, and hands on a queue that was free already."""
        if mine.is_set():
            self.hand_on()
        elif mine in self.returning:
            self.returning.remove(mine)
        else:
            self.waiting[asker].remove(mine)
            if not self.waiting[asker]:
                del self.waiting[asker]

    def hand_on(self) -> None:
        """The queue stays taken when somebody waits: nobody comes between."""
        if self.returning:
            self.returning.popleft().set()
        elif self.waiting:
            asker = next(iter(self.waiting))
            theirs = self.waiting.pop(asker)
            theirs.popleft().set()
            if theirs:
                self.waiting[asker] = theirs
        else:
            self.is_taken = False


class QueueSlot:
    """One turn's place in its queue: held, left or waited for. Not for several tasks at once, but for any."""

    def __init__(self, queue: _TurnQueue, asker: str) -> None:
        self._queue = queue
        self._asker = asker
        self._since_s = 0.0
        self.is_held = False

    async def take(self, *, first: bool = False) -> None:
        """Waits until the queue is free; `first` before all others who wait. The place is taken before the wait."""
        mine = anyio.Event()
        self._queue.join(self._asker, mine, first=first)
        try:
            await mine.wait()
        except anyio.get_cancelled_exc_class():
            self._queue.part(self._asker, mine)
            raise
        self.is_held = True
        self._since_s = anyio.current_time()

    def leave(self) -> None:
        """Nothing happens when it is not held."""
        if self.is_held:
            self.is_held = False
            self._queue.note_held(anyio.current_time() - self._since_s)
            self._queue.hand_on()


class TurnQueues:
    """Askers take turns within a queue; what one of them asks stays in order."""

    def __init__(self, *, max_waiting: int = MAX_WAITING) -> None:
        self._max_waiting = max_waiting
        self._queues: dict[str, _TurnQueue] = {}

    def check_not_full(self, queue: str, asker: str = "") -> None:
        """Raises LimitExceeded when the queue is full, or the asker has as many places as are left for others."""
        known = self._queues.get(queue)
        if known is None or not known.is_taken:
            return
        waiting = sum(map(len, known.waiting.values()))
        if len(known.waiting.get(asker, ())) >= self._max_waiting - waiting:
            raise LimitExceeded(
                f"I am still busy: {waiting} messages wait here already. "
                f"Please ask again in {_show_wait(waiting * known.usual_s)}.",
                code="queue_full",
                why=f"at most {self._max_waiting} messages wait in one conversation, and nobody takes all the places",
            )

    @asynccontextmanager
    async def turn(self, queue: str, asker: str = "") -> AsyncGenerator[QueueSlot]:
        """Waits until every earlier turn of the queue has ended or left its slot."""
        own = self._queues.setdefault(queue, _TurnQueue())
        own.known += 1
        slot = QueueSlot(own, asker)
        try:
            await slot.take()
            yield slot
        finally:
            slot.leave()
            own.known -= 1
            if not own.known:
                del self._queues[queue]


def _show_wait(wait_s: float) -> str:
    if not wait_s:
        return "a few minutes"
    minutes = max(1, round(wait_s / 60))
    return "about a minute" if minutes == 1 else f"about {minutes} minutes"


class TurnPause:
    """The pause of one turn: it waits for people, leaves its queue to others, and its clock stands still."""

    def __init__(self, slot: QueueSlot) -> None:
        self._slot = slot
        self._taking = anyio.Lock()
        self._running = 0
        self._waiting = 0
        self._limits: set[anyio.CancelScope] = set()
        self._left_s: dict[anyio.CancelScope, float] = {}

    @property
    def is_working(self) -> bool:
        """Whether the turn has its slot, and does not wait for people or another turn."""
        return self._slot.is_held

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

    def count_working(self) -> int:
        """Returns how many turns do not wait for people or another turn. May be called from any thread."""
        return sum(pause.is_working for pause in list(self._by_turn.values()))

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
