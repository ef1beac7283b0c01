"""Wakes whoever waits for the world to change. Tests wait for a condition, never for a time."""

from __future__ import annotations

from collections.abc import Callable

import anyio

_LOOK_S = 0.01
"""What is waited for may lie in the client, whose changes make no beat."""


class Pulse:
    """`beat` after each change; `until` looks again after each beat, and now and then without one."""

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
