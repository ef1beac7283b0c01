"""Crashes a process at a chosen moment: after a number of operations (a unit of work, a call to the platform, a request
to the model) nothing happens any more, as after kill -9. A test that tries each number crashes at every step.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

import anyio

from denizen.ports.model import ModelEvent, ModelRequest
from denizen.ports.store import UnitOfWork
from denizen.testing.scripted_model import ScriptedModel
from denizen.testing.temporary_store import TemporaryStore
from tests.memory_channel import MemoryChannel, Operation


@dataclass
class CrashInjector:
    """Crashes at operation number `at`, counted from 1; 0 never crashes."""

    at: int = 0
    count: int = 0
    crashed: anyio.Event = field(default_factory=anyio.Event)

    async def tick(self, *, shielded: bool = False) -> None:
        """Counts an operation. After the crash the caller stops for ever; a shielded one is cancelled."""
        self.count += 1
        if self.at and self.count >= self.at:
            self.crashed.set()
            if shielded:
                raise asyncio.CancelledError
            await anyio.sleep_forever()


class CrashingStore(TemporaryStore):
    """A store whose process may die before and after each unit of work that writes."""

    injector = CrashInjector()

    def work(self, *, write: bool = True) -> AbstractAsyncContextManager[UnitOfWork]:
        return self._open_unit(write=write)

    @asynccontextmanager
    async def _open_unit(self, *, write: bool) -> AsyncGenerator[UnitOfWork]:
        if write:
            await self.injector.tick(shielded=True)
        async with super().work(write=write) as work:
            yield work
        if write:
            await self.injector.tick(shielded=True)


class CrashingChannel(MemoryChannel):
    """An account whose process may die before and after each thing that it does."""

    injector = CrashInjector()

    @asynccontextmanager
    async def _asking(self, operation: Operation) -> AsyncGenerator[None]:
        await self.injector.tick()
        async with super()._asking(operation):
            yield
        await self.injector.tick()


class CrashingModel(ScriptedModel):
    injector = CrashInjector()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        await self.injector.tick()
        async for event in super().stream(request):
            yield event
        await self.injector.tick()
