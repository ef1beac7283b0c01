"""Closing and cancelling, as every implementation of `denizen.ports.durable.DurableExecution` does them."""

from __future__ import annotations

import asyncio

import anyio

from denizen.domain.errors import (
    DenizenError,
    Unavailable,
)
from denizen.domain.json import Json, JsonObject
from denizen.testing.durable_processes import Hold, Processes, failure, result, returning, started


class StopContract:
    """Part of `DurableContract`."""

    async def test_closing_leaves_runs_pending_and_tells_whoever_waits(self, processes: Processes) -> None:
        hold = Hold()
        told: list[DenizenError] = []

        async def work(_payload: JsonObject) -> Json:
            try:
                return await durable.step("hold", hold)
            finally:
                # Cleaning up may fail while everything is being closed: that is not the end of the run.
                if hold.count == 1:
                    raise RuntimeError("closed")

        async def wait() -> None:
            told.append(await failure(durable.wait("run")))

        durable = await started(processes, work)
        await durable.submit("work", "run", {})
        await hold.reached()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            await durable.aclose()
        assert [type(error) for error in told] == [Unavailable]
        durable = processes.create()
        durable.register("work", work)
        hold.go()
        await durable.start()
        assert await result(durable, "run") == 2
        await durable.aclose()

    async def test_who_registered_hears_of_runs_that_do_not_end_well_here(self, processes: Processes) -> None:
        hold = Hold()
        told: list[tuple[str, str]] = []

        async def work(payload: JsonObject) -> Json:
            if payload["fails"]:
                raise Unavailable("Away.", code="away")
            return await durable.step("hold", hold) if payload["holds"] else 1

        durable = processes.create()
        durable.register("work", work, lambda run_id, error: told.append((run_id, error.code)))
        await durable.start()
        await durable.submit("work", "good", {"fails": False, "holds": False})
        assert await result(durable, "good") == 1
        await durable.submit("work", "bad", {"fails": True, "holds": False})
        await failure(durable.wait("bad"))
        await durable.submit("work", "held", {"fails": False, "holds": True})
        await hold.reached()
        await durable.aclose()
        assert told == [("bad", "away"), ("held", "durable_closed")]

    async def test_a_run_that_makes_something_else_of_being_stopped_has_not_ended(self, processes: Processes) -> None:
        hold = Hold()

        async def work(_payload: JsonObject) -> Json:
            try:
                return await durable.step("hold", hold)
            except asyncio.CancelledError:
                return "swallowed"

        durable = await started(processes, work)
        await durable.submit("work", "run", {})
        await hold.reached()
        await durable.aclose()
        durable = processes.create()
        durable.register("work", work)
        hold.go()
        await durable.start()
        assert await result(durable, "run") == 2
        await durable.aclose()

    async def test_what_a_step_has_done_is_recorded_even_while_the_process_closes(self, processes: Processes) -> None:
        sending, release = anyio.Event(), anyio.Event()
        sent: list[str] = []
        waits = Hold()

        async def send() -> Json:
            with anyio.CancelScope(shield=True):
                sending.set()
                await release.wait()
            sent.append("sent")
            return "sent"

        async def wait() -> Json:
            try:
                return await waits()
            finally:
                # Only being stopped leads here the first time.
                release.set()

        async def work(_payload: JsonObject) -> Json:
            return await durable.gather(("send", send), ("wait", wait))

        durable = await started(processes, work)
        await durable.submit("work", "run", {})
        await sending.wait()
        await waits.reached()
        await durable.aclose()
        assert sent == ["sent"]
        durable = processes.create()
        durable.register("work", work)
        waits.go()
        await durable.start()
        assert await result(durable, "run") == ["sent", 2]
        assert sent == ["sent"]
        await durable.aclose()

    async def test_closing_gives_runs_the_time_that_it_is_told(self, processes: Processes) -> None:
        hold = Hold()

        async def work(_payload: JsonObject) -> Json:
            first = await durable.step("hold", hold)
            second = await durable.step("after", lambda: returning("second"))
            return [first, second, *await durable.gather(("last", lambda: returning("third")))]

        durable = await started(processes, work)
        await durable.submit("work", "run", {})
        await hold.reached()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: durable.aclose(grace_s=20))
            await anyio.wait_all_tasks_blocked()
            hold.go()
        later = await started(processes, work)
        assert await later.pending() == []
        assert await result(later, "run") == [1, "second", "third"]
        await later.aclose()

    async def test_a_run_that_needs_another_while_its_process_closes_stays_pending(self, processes: Processes) -> None:
        hold = Hold()

        async def work(payload: JsonObject) -> Json:
            if payload["child"]:
                return "of the child"
            await hold()
            await durable.submit("work", "child", {"child": True})
            return await durable.wait("child")

        durable = await started(processes, work)
        await durable.submit("work", "run", {"child": False})
        await hold.reached()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: durable.aclose(grace_s=20))
            await anyio.wait_all_tasks_blocked()
            assert isinstance(await failure(durable.submit("work", "new", {"child": True})), Unavailable)
            hold.go()
        durable = await started(processes, work)
        assert await result(durable, "run") == "of the child"
        await durable.aclose()

    async def test_a_cancelled_run_ends_and_is_not_resumed(self, processes: Processes) -> None:
        hold = Hold()
        unwound = anyio.Event()
        told: list[DenizenError] = []

        async def work(_payload: JsonObject) -> Json:
            try:
                return await durable.step("hold", hold)
            finally:
                unwound.set()

        async def wait() -> None:
            told.append(await failure(durable.wait("run")))

        durable = await started(processes, work)
        await durable.submit("work", "run", {})
        await hold.reached()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            await durable.cancel("run")
        await unwound.wait()
        told.append(await failure(durable.wait("run")))
        assert [(type(error), error.code) for error in told] == [(Unavailable, "run_cancelled")] * 2
        assert await durable.pending() == []
        await durable.cancel("run")
        await durable.submit("work", "run", {})
        await durable.aclose()
        later = await started(processes, work)
        assert (await failure(later.wait("run"))).code == "run_cancelled"
        assert hold.count == 1
        await later.aclose()

    async def test_cancelling_a_run_that_has_ended_changes_nothing(self, processes: Processes) -> None:
        async def work(_payload: JsonObject) -> Json:
            return 1

        durable = await started(processes, work)
        await durable.submit("work", "run", {})
        assert await result(durable, "run") == 1
        await durable.cancel("run")
        assert await result(durable, "run") == 1
        await durable.aclose()

    async def test_a_process_may_start_again_after_it_closed(self, processes: Processes) -> None:
        async def work(payload: JsonObject) -> Json:
            return payload["n"]

        durable = await started(processes, work)
        await durable.submit("work", "first", {"n": 1})
        assert await result(durable, "first") == 1
        await durable.aclose()
        await durable.start()
        await durable.submit("work", "second", {"n": 2})
        assert await result(durable, "second") == 2
        assert await result(durable, "first") == 1
        await durable.aclose()
