"""A process that dies at a chosen moment: after so many doings (a unit of work, a call to the platform, a request to
the model) nothing happens any more, as after kill -9. Walking the number through a scenario walks every step of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

import anyio

from denizen.ports.model import ModelEvent, ModelRequest
from denizen.ports.store import UnitOfWork
from denizen.testing.memory_channel import MemoryChannel, Operation
from denizen.testing.memory_store import MemoryStore
from denizen.testing.scripted_model import ScriptedModel


@dataclass
class Bomb:
    """Blows at doing number `at`, counted from 1; 0 never does."""

    at: int = 0
    count: int = 0
    blown: anyio.Event = field(default_factory=anyio.Event)

    async def tick(self, *, shielded: bool = False) -> None:
        """Once it has blown, nothing goes on that comes here; what may stand under a shield is thrown out instead."""
        self.count += 1
        if self.at and self.count >= self.at:
            self.blown.set()
            if shielded:
                raise asyncio.CancelledError
            await anyio.sleep_forever()


class MortalStore(MemoryStore):
    """A store whose process may die before and after each unit of work that writes."""

    bomb = Bomb()

    def work(self, *, write: bool = True) -> AbstractAsyncContextManager[UnitOfWork]:
        return self._mortal(write=write)

    @asynccontextmanager
    async def _mortal(self, *, write: bool) -> AsyncGenerator[UnitOfWork]:
        if write:
            await self.bomb.tick(shielded=True)
        async with super().work(write=write) as work:
            yield work
        if write:
            await self.bomb.tick(shielded=True)


class MortalChannel(MemoryChannel):
    """An account whose process may die before and after each thing that it does."""

    bomb = Bomb()

    @asynccontextmanager
    async def _asking(self, operation: Operation) -> AsyncGenerator[None]:
        await self.bomb.tick()
        async with super()._asking(operation):
            yield
        await self.bomb.tick()


class MortalModel(ScriptedModel):
    bomb = Bomb()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        await self.bomb.tick()
        async for event in super().stream(request):
            yield event
        await self.bomb.tick()
