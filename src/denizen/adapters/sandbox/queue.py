"""Whose turn it is at the workers: one owner after the other, however much each of them asks for.

With a plain queue a conversation that sends a hundred batches would have everybody else wait for all of them. Called by
`pool`.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel


class FairQueue:
    """`places` may be taken at the same time. Of one owner whoever came first goes first."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._taken = 0
        self._waiting: OrderedDict[str, deque[anyio.Event]] = OrderedDict()

    @property
    def taken(self) -> int:
        return self._taken

    @asynccontextmanager
    async def place(self, owner: str) -> AsyncGenerator[None]:
        """Waits for one, and holds it until the block ends."""
        await self._take(owner)
        try:
            yield
        finally:
            self._leave()

    async def _take(self, owner: str) -> None:
        await anyio.lowlevel.checkpoint()
        if self._free and not self._waiting:
            self._free -= 1
            self._taken += 1
            return
        turn = anyio.Event()
        self._waiting.setdefault(owner, deque()).append(turn)
        try:
            await turn.wait()
        except BaseException:
            if turn.is_set():  # it was given the place at the moment when it went away
                self._leave()
            else:
                self._forget(owner, turn)
            raise

    def _leave(self) -> None:
        """Hands the place to the next owner, who then comes last."""
        self._taken -= 1
        if not self._waiting:
            self._free += 1
            return
        owner, turns = self._waiting.popitem(last=False)
        turns.popleft().set()
        self._taken += 1
        if turns:
            self._waiting[owner] = turns

    def _forget(self, owner: str, turn: anyio.Event) -> None:
        self._waiting[owner].remove(turn)
        if not self._waiting[owner]:
            del self._waiting[owner]
