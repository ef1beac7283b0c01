"""Whether a process can do its work: checks that fail, that hang, and that many ask for."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from denizen.app import readiness
from denizen.app.readiness import ReadinessMonitor, check_disk, check_store
from denizen.domain.errors import NeedsAttention, Unavailable
from denizen.testing.temporary_store import TemporaryStore
from tests.e2e.records import lock_database
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio


class FakePart:
    """A part that fails with `error`, or hangs until it may go on."""

    def __init__(self) -> None:
        self.checks = 0
        self.error: Exception | None = None
        self.goes_on = anyio.Event()
        self.goes_on.set()

    async def check(self) -> None:
        self.checks += 1
        await self.goes_on.wait()
        if self.error is not None:
            raise self.error


@asynccontextmanager
async def run_monitor(**parts: FakePart) -> AsyncGenerator[ReadinessMonitor]:
    monitor = ReadinessMonitor({name: part.check for name, part in parts.items()})
    async with anyio.create_task_group() as group:
        group.start_soon(monitor.run)
        with anyio.fail_after(HANG_LIMIT_S):
            yield monitor
        group.cancel_scope.cancel()


async def test_parts_that_fail_are_named_with_the_reason_until_they_work_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "PAUSE_S", 0.0)
    store, disk, accounts = FakePart(), FakePart(), FakePart()
    store.error = Unavailable("The database is busy.", why="it is locked")
    disk.error = OSError(28, "No space left on device")
    async with run_monitor(store=store, disk=disk, accounts=accounts) as monitor:
        problems = await monitor.find_problems()
        assert problems == {"store": "The database is busy.\nwhy: it is locked", "disk": "No space left on device"}
        store.error = disk.error = None
        await anyio.wait_all_tasks_blocked()
        assert await monitor.find_problems() == {}


async def test_who_asks_again_within_a_second_waits_for_no_new_check() -> None:
    store = FakePart()
    async with run_monitor(store=store) as monitor:
        for _ in range(3):
            assert await monitor.find_problems() == {}
        assert store.checks == 1


async def test_a_check_that_hangs_is_not_waited_for_and_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "ANSWER_S", 0.05)
    monkeypatch.setattr(readiness, "PAUSE_S", 0.0)
    store, accounts = FakePart(), FakePart()
    store.goes_on = anyio.Event()
    async with run_monitor(store=store, accounts=accounts) as monitor:
        for _ in range(3):
            assert list(await monitor.find_problems()) == ["store"]
        assert (store.checks, accounts.checks) == (1, 3)
        store.goes_on.set()
        monkeypatch.setattr(readiness, "ANSWER_S", HANG_LIMIT_S)
        assert await monitor.find_problems() == {}


async def test_many_who_ask_at_once_get_the_answer_of_one_check() -> None:
    store, found = FakePart(), list[int]()

    async def ask(monitor: ReadinessMonitor) -> None:
        found.append(len(await monitor.find_problems()))

    async with run_monitor(store=store) as monitor, anyio.create_task_group() as group:
        for _ in range(100):
            group.start_soon(ask, monitor)
    assert (found, store.checks) == ([0] * 100, 1)


async def test_a_store_that_another_process_holds_locked_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    store = TemporaryStore()
    await check_store(store)
    with lock_database(store.path), pytest.raises(Unavailable, match="busy"):
        await check_store(store)
    await check_store(store)
    await store.aclose()


async def test_a_folder_that_cannot_be_written_is_not_ready_and_nothing_is_left_in_one_that_can(tmp_path: Path) -> None:
    await check_disk(tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OSError, match="No such file"):
        await check_disk(tmp_path / "gone")


async def test_an_error_that_needs_the_operator_is_explained() -> None:
    store = FakePart()
    store.error = NeedsAttention("The disk is full.", fix="Free space.")
    async with run_monitor(store=store) as monitor:
        assert await monitor.find_problems() == {"store": "The disk is full.\nfix: Free space."}
