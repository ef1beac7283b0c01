"""A store that fails when it is told to, as one does that is locked or whose disk is full."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio

from denizen.domain.errors import DenizenError, Unavailable
from denizen.ports.store import UnitOfWork
from denizen.testing.temporary_store import TemporaryStore


class FailingStore(TemporaryStore):
    """Every unit of work fails while `error` is set; `failed` counts them."""

    def __init__(self) -> None:
        super().__init__()
        self.error: DenizenError | None = None
        self.writes_only = False
        self.failed = 0

    def break_down(self, error: DenizenError | None = None, *, writes_only: bool = False) -> None:
        self.error, self.writes_only = error or Unavailable("the store is locked"), writes_only

    def recover(self) -> None:
        self.error = None

    def work(self, *, write: bool = True) -> AbstractAsyncContextManager[UnitOfWork]:
        return self._open_unit(write=write)

    @asynccontextmanager
    async def _open_unit(self, *, write: bool) -> AsyncGenerator[UnitOfWork]:
        error = self.error
        if error is not None and (write or not self.writes_only):
            await anyio.lowlevel.checkpoint()
            self.failed += 1
            raise error
        async with super().work(write=write) as work:
            yield work
