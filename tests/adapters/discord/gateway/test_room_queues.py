"""Queues of rooms and the gate before them, without Discord."""

from __future__ import annotations

import logging

import anyio
import pytest

from denizen.adapters.discord.gateway.room_queues import QueuedCall, ReadyGate, RoomQueues, ShardReadiness
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio


class EventRecorder:
    """What was called, in order."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, line: str) -> QueuedCall:
        async def call() -> None:
            self.lines.append(line)

        return call

    async def catch_up(self, room: str, first: str) -> None:
        self.lines.append(f"catch up with {room} from {first}")


async def test_nothing_is_called_before_the_gate_opens() -> None:
    recorder, gate = EventRecorder(), ReadyGate()
    async with anyio.create_task_group() as tasks:
        queues = RoomQueues(tasks, gate, recorder.catch_up, limit=10)
        queues.put("1", recorder.note("one"))
        queues.put("2", recorder.note("two"))
        await anyio.wait_all_tasks_blocked()
        assert recorder.lines == []
        gate.open()
    assert recorder.lines == ["one", "two"]


async def test_messages_beyond_the_limit_are_caught_up_with_and_other_news_is_kept() -> None:
    recorder, gate = EventRecorder(), ReadyGate()
    async with anyio.create_task_group() as tasks:
        queues = RoomQueues(tasks, gate, recorder.catch_up, limit=2)
        for number in range(4):
            queues.put("1", recorder.note(f"message {number}"), message_id=str(number + 10))
        queues.put("1", recorder.note("deletion"))
        gate.open()
    assert recorder.lines == ["message 0", "message 1", "deletion", "catch up with 1 from 12"]


async def test_events_beyond_the_limit_are_dropped_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    recorder, gate = EventRecorder(), ReadyGate()
    with caplog.at_level(logging.WARNING, "denizen.discord"):
        async with anyio.create_task_group() as tasks:
            queues = RoomQueues(tasks, gate, recorder.catch_up, limit=2)
            for number in range(6):
                queues.put("1", recorder.note(f"deletion {number}"))
            gate.open()
    assert recorder.lines == [f"deletion {number}" for number in range(4)]
    assert len(caplog.messages) == 2


async def test_a_room_that_is_quiet_again_holds_nothing() -> None:
    recorder, gate = EventRecorder(), ReadyGate()
    gate.open()
    async with anyio.create_task_group() as tasks:
        queues = RoomQueues(tasks, gate, recorder.catch_up, limit=2)
        queues.put("1", recorder.note("one"))
        await anyio.wait_all_tasks_blocked()
        assert queues._rooms == {}
        queues.put("1", recorder.note("two"))
    assert recorder.lines == ["one", "two"]


class AnnouncementCounter:
    """Counts them; each may be held."""

    def __init__(self) -> None:
        self.count = 0
        self.hold = anyio.Event()

    async def announce(self) -> None:
        self.count += 1
        await self.hold.wait()


async def test_shards_are_announced_together_and_again_for_each_that_comes_afresh() -> None:
    gate, announcements = ReadyGate(), AnnouncementCounter()
    announcements.hold.set()
    readiness = ShardReadiness(gate, announcements.announce)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(readiness.run)
        readiness.begin(0, [1, 2], shards=2)
        assert readiness.take(0, 1)
        assert readiness.take(0, 2)
        readiness.begin(1, [], shards=2)
        with anyio.fail_after(HANG_LIMIT_S):
            await gate.wait()
        assert announcements.count == 1
        assert not readiness.take(0, 3)
        readiness.begin(1, [4, 5], shards=2)
        assert readiness.take(1, 4)
        readiness.end(1)  # the other never came
        with anyio.fail_after(HANG_LIMIT_S):
            await gate.wait()
        assert announcements.count == 2
        tasks.cancel_scope.cancel()


async def test_a_login_during_an_announcement_is_announced_too_before_the_gate_opens() -> None:
    gate, announcements = ReadyGate(), AnnouncementCounter()
    readiness = ShardReadiness(gate, announcements.announce)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(readiness.run)
        readiness.begin(0, [], shards=1)
        await anyio.wait_all_tasks_blocked()
        assert announcements.count == 1
        readiness.begin(0, [], shards=1)
        announcements.hold.set()
        with anyio.fail_after(HANG_LIMIT_S):
            await gate.wait()
        assert announcements.count == 2
        tasks.cancel_scope.cancel()
