"""The contract of the store about schedules: states that advance once, and runs with their ids."""

from __future__ import annotations

from dataclasses import replace

import pytest

from denizen.adapters.store.schedules import MAX_RUNS
from denizen.domain.ids import TurnId
from denizen.domain.schedule import RunStatus, ScheduleRun, ScheduleState
from denizen.ports.store import Store
from tests.clock import NOON
from tests.contracts.store.records import at

STATE = ScheduleState(name="news", definition="when_1", looked_until=NOON)


def make_run(key: str, hours: float, status: RunStatus = RunStatus.WAITING, *, schedule: str = "news") -> ScheduleRun:
    return ScheduleRun(id=key, schedule=schedule, planned_at=at(hours), seen_at=at(hours), status=status)


async def add_runs(store: Store, *runs: ScheduleRun) -> None:
    async with store.work() as work:
        for run in runs:
            assert await work.schedules.add_run(run)


@pytest.mark.anyio
class ScheduleContract:
    @pytest.mark.proves("T-store-schedules")
    async def test_the_definition_and_the_last_run_of_a_schedule_are_kept(self, store: Store) -> None:
        async with store.work() as work:
            await work.schedules.put(STATE)
            await work.schedules.put(replace(STATE, name="other"))
            await work.schedules.put(replace(STATE, definition="when_2"))
            await work.schedules.set_last_run("news", at(1))
        async with store.work() as work:
            kept = replace(STATE, definition="when_2", last_run_at=at(1))
            assert await work.schedules.list_states() == [kept, replace(STATE, name="other")]
            await work.schedules.remove("other")
            assert await work.schedules.list_states() == [kept]

    async def test_of_two_processes_that_saw_the_same_time_one_deals_with_it(self, store: Store) -> None:
        async with store.work() as work:
            await work.schedules.put(STATE)
        async with store.work() as work:
            assert await work.schedules.advance("news", before=NOON, until=at(1))
        async with store.work() as work:
            assert not await work.schedules.advance("news", before=NOON, until=at(1))
            assert not await work.schedules.advance("none", before=NOON, until=at(1))
            assert [each.looked_until for each in await work.schedules.list_states()] == [at(1)]

    async def test_a_run_is_there_once_and_tells_how_it_goes_on(self, store: Store) -> None:
        run = replace(make_run("a", 1), note="late", asked_by="local:ana")
        await add_runs(store, run)
        async with store.work() as work:
            assert not await work.schedules.add_run(replace(run, status=RunStatus.MISSED))
            await work.schedules.set_status("a", RunStatus.STARTED, turn_id=TurnId("t"))
        async with store.work() as work:
            begun = replace(run, status=RunStatus.STARTED, turn_id=TurnId("t"))
            assert await work.schedules.list_runs("news") == [begun]
            await work.schedules.set_status("a", RunStatus.FAILED, note="no channel")
            assert await work.schedules.list_runs() == [replace(run, status=RunStatus.FAILED, note="no channel")]

    @pytest.mark.proves("TW10")
    async def test_runs_are_listed_by_schedule_by_status_and_the_newest_of_each(self, store: Store) -> None:
        done, missed = make_run("a", 1, RunStatus.STARTED), make_run("b", 2, RunStatus.MISSED)
        waiting, other = make_run("c", 3), make_run("d", 1, schedule="other")
        await add_runs(store, done, missed, waiting, other)
        async with store.work(write=False) as work:
            assert await work.schedules.list_runs("news") == [waiting, missed, done]
            assert await work.schedules.list_runs(limit=2) == [other, waiting]
            assert await work.schedules.list_begun("news", limit=5) == [waiting, done]
            assert await work.schedules.list_waiting() == [waiting, other]
            assert list(await work.schedules.list_newest()) == [waiting, other]

    async def test_only_the_newest_runs_of_a_schedule_are_kept(self, store: Store) -> None:
        await add_runs(store, make_run("other", 0, schedule="other"))
        await add_runs(store, *(make_run(f"r{number}", 0) for number in range(MAX_RUNS + 2)))
        async with store.work(write=False) as work:
            kept = await work.schedules.list_runs("news", limit=2 * MAX_RUNS)
            assert [kept[0].id, kept[-1].id, len(kept)] == [f"r{MAX_RUNS + 1}", "r2", MAX_RUNS]
            assert len(await work.schedules.list_runs("other")) == 1
