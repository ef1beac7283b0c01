"""The metrics of a server whose store hangs: they are served, and say so."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import anyio
import pytest

from denizen.app import readiness
from denizen.app.metrics import QueueCounter
from denizen.domain.clock import SystemClock
from denizen.domain.errors import Unavailable
from denizen.ports.store import UnitOfWork
from denizen.testing.temporary_store import TemporaryStore
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio

NOTHING = {"approvals": 0, "deliveries": 0, "events_waiting": 0, "events_failed": 0}


class StallingStore(TemporaryStore):
    """A store whose units of work wait until they may go on, and cannot be cancelled meanwhile, like those of a
    database that does not answer.
    """

    def __init__(self) -> None:
        super().__init__()
        self.goes_on = anyio.Event()
        self.error: Unavailable | None = None

    def work(self, *, write: bool = True) -> AbstractAsyncContextManager[UnitOfWork]:
        return self._stalled(write=write)

    @asynccontextmanager
    async def _stalled(self, *, write: bool) -> AsyncGenerator[UnitOfWork]:
        with anyio.CancelScope(shield=True):
            await self.goes_on.wait()
        if self.error is not None:
            raise self.error
        async with super().work(write=write) as work:
            yield work


async def test_a_store_that_hangs_or_fails_leaves_its_numbers_out_until_it_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "ANSWER_S", 0.05)
    monkeypatch.setattr(readiness, "PAUSE_S", 0.0)
    store = StallingStore()
    queues = QueueCounter(store, tmp_path, SystemClock(), list)
    async with anyio.create_task_group() as group:
        group.start_soon(queues.run)
        assert [await queues.find_counts() for _ in range(3)] == [None, None, None]
        monkeypatch.setattr(readiness, "ANSWER_S", HANG_LIMIT_S)
        store.goes_on.set()
        assert await queues.find_counts() == NOTHING
        store.error = Unavailable("The database is away.", code="store_unavailable")
        await anyio.wait_all_tasks_blocked()
        assert await queues.find_counts() is None
        group.cancel_scope.cancel()
    await store.aclose()
