"""The contract of durable runs: results, errors, closing and cancelling."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from functools import partial

import anyio

from denizen.domain.errors import Conflict, DenizenError, InvalidInput, NotFound, Unavailable
from denizen.domain.json import Json, JsonObject
from tests.contracts.durable.processes import (
    BlockingAction,
    Processes,
    get_failure,
    return_value,
    start_process,
    wait_for_result,
)
from tests.timing import HANG_LIMIT_S

_inherited: ContextVar[str] = ContextVar("durable_contract_inherited", default="nothing")


class RunContract:
    """Part of `DurableContract`."""

    async def test_a_run_gives_its_result_while_it_runs_and_after(self, processes: Processes) -> None:
        async def work(payload: JsonObject) -> Json:
            return {"got": payload["text"]}

        durable = await start_process(processes, work)
        text = 'nul \0, half a pair \ud800, "quotes", line\u2028end, \N{GRINNING FACE}'
        await durable.submit("work", "run", {"text": text})
        assert await wait_for_result(durable, "run") == {"got": text}
        assert await wait_for_result(durable, "run") == {"got": text}
        await durable.aclose()
        later = await start_process(processes, work)
        assert await wait_for_result(later, "run") == {"got": text}
        await later.aclose()

    async def test_the_same_id_is_one_run_at_once_while_it_runs_and_after_it_ended(self, processes: Processes) -> None:
        hold = BlockingAction()
        seen: list[Json] = []

        async def work(payload: JsonObject) -> Json:
            seen.append(payload["n"])
            return await hold()

        durable = await start_process(processes, work)
        async with anyio.create_task_group() as tasks:
            for n in range(5):
                tasks.start_soon(partial(durable.submit, "work", "run", {"n": n}))
        await hold.reached()
        await durable.submit("work", "run", {"n": 5})
        hold.go()
        assert await wait_for_result(durable, "run") == 1
        await durable.submit("work", "run", {"n": 6})
        assert await wait_for_result(durable, "run") == 1
        await durable.aclose()
        later = await start_process(processes, work)
        await later.submit("work", "run", {"n": 7})
        assert await wait_for_result(later, "run") == 1
        assert len(seen) == 1
        await later.aclose()

    async def test_submitting_does_not_wait_for_the_run(self, processes: Processes) -> None:
        hold = BlockingAction()

        async def work(_payload: JsonObject) -> Json:
            return await hold()

        durable = await start_process(processes, work)
        with anyio.fail_after(HANG_LIMIT_S):
            await durable.submit("work", "run", {})
        await hold.reached()
        assert await durable.pending() == ["run"]
        hold.go()
        assert await wait_for_result(durable, "run") == 1
        assert await durable.pending() == []
        await durable.aclose()

    async def test_runs_go_side_by_side_and_pending_lists_the_oldest_first(self, processes: Processes) -> None:
        holds = {f"run-{n}": BlockingAction() for n in range(4)}

        async def work(payload: JsonObject) -> Json:
            return await holds[str(payload["id"])]()

        durable = await start_process(processes, work)
        for run_id in holds:
            await durable.submit("work", run_id, {"id": run_id})
        for hold in holds.values():
            await hold.reached()
        assert await durable.pending() == list(holds)
        for hold in holds.values():
            hold.go()
        for run_id in holds:
            assert await wait_for_result(durable, run_id) == 1
        await durable.aclose()

    async def test_several_may_wait_for_one_run(self, processes: Processes) -> None:
        hold = BlockingAction()
        results: list[Json] = []

        async def work(_payload: JsonObject) -> Json:
            await hold()
            return {"list": [1]}

        durable = await start_process(processes, work)
        await durable.submit("work", "run", {})

        async def wait() -> None:
            results.append(await wait_for_result(durable, "run"))

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(wait)
            await hold.reached()
            hold.go()
        assert results == [{"list": [1]}] * 3
        assert results[0] is not results[1]
        await durable.aclose()

    async def test_a_run_has_the_event_loop_of_its_process_and_a_context_of_its_own(self, processes: Processes) -> None:
        loops: list[asyncio.AbstractEventLoop] = []
        given: JsonObject = {"list": [1]}

        async def work(payload: JsonObject) -> Json:
            loops.append(asyncio.get_running_loop())
            payload["list"] = "changed by the run"
            return _inherited.get()

        durable = await start_process(processes, work)
        token = _inherited.set("something of whoever submits")
        await durable.submit("work", "run", given)
        _inherited.reset(token)
        assert await wait_for_result(durable, "run") == "nothing"
        assert given == {"list": [1]}
        assert loops == [asyncio.get_running_loop()]
        await durable.aclose()

    async def test_a_run_may_submit_and_await_another(self, processes: Processes) -> None:
        durable = processes.create()

        async def outer(_payload: JsonObject) -> Json:
            await durable.submit("inner", "second", {"n": 1})
            first = await durable.step("one", lambda: return_value("outer step"))
            return [first, await durable.wait("second")]

        async def inner(payload: JsonObject) -> Json:
            return await durable.step("one", lambda: return_value(payload["n"]))

        durable.register("outer", outer)
        durable.register("inner", inner)
        await durable.start()
        await durable.submit("outer", "first", {})
        assert await wait_for_result(durable, "first") == ["outer step", 1]
        await durable.aclose()

    async def test_a_run_starts_even_when_whoever_submits_it_is_stopped(self, processes: Processes) -> None:
        hold = BlockingAction()

        async def work(_payload: JsonObject) -> Json:
            return await hold()

        durable = await start_process(processes, work)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await durable.submit("work", "run", {})
        await hold.reached()
        hold.go()
        assert await wait_for_result(durable, "run") == 1
        await durable.aclose()

    async def test_an_error_of_a_run_reaches_whoever_waits_with_all_that_it_says(self, processes: Processes) -> None:
        async def work(_payload: JsonObject) -> Json:
            raise Unavailable("No.", code="model_down", why="It is down.", fix="Wait.", retry_after_s=2.5, detail="s")

        durable = await start_process(processes, work)
        await durable.submit("work", "run", {})
        seen = [await get_failure(durable.wait("run")), await get_failure(durable.wait("run"))]
        await durable.aclose()
        later = await start_process(processes, work)
        seen.append(await get_failure(later.wait("run")))
        for error in seen:
            assert isinstance(error, Unavailable)
            assert (error.message, error.code, error.why, error.fix) == ("No.", "model_down", "It is down.", "Wait.")
            assert error.retry_after_s == 2.5
            assert error.context == {}
        assert seen[0] is not seen[1]
        await later.aclose()

    async def test_a_bug_in_a_run_shows_nothing_of_the_inside(self, processes: Processes) -> None:
        async def work(payload: JsonObject) -> Json:
            raise KeyError(payload["secret"])

        durable = await start_process(processes, work)
        await durable.submit("work", "run", {"secret": "the password"})
        error = await get_failure(durable.wait("run"))
        assert type(error) is DenizenError
        assert error.code == "internal"
        assert "password" not in error.explain()
        assert "run" in error.fix
        await durable.aclose()

    async def test_runs_can_be_recorded_while_it_is_open(self, processes: Processes) -> None:
        async def work(_payload: JsonObject) -> Json:
            return None

        durable = processes.create()
        durable.register("work", work)
        assert isinstance(await get_failure(durable.check_write()), Unavailable)
        await durable.start()
        await durable.check_write()
        await durable.aclose()
        assert isinstance(await get_failure(durable.check_write()), Unavailable)

    async def test_what_is_not_json_is_refused(self, processes: Processes) -> None:
        async def work(_payload: JsonObject) -> Json:
            return {"set": {1, 2}}  # pyright: ignore[reportReturnType]

        durable = await start_process(processes, work)
        error = await get_failure(durable.submit("work", "bad", {"n": float("nan")}))
        assert isinstance(error, InvalidInput)
        assert await durable.pending() == []
        await durable.submit("work", "run", {})
        error = await get_failure(durable.wait("run"))
        assert isinstance(error, InvalidInput)
        assert error.code == "not_json"
        await durable.aclose()

    async def test_unknown_names_and_ids_are_refused(self, processes: Processes) -> None:
        async def work(_payload: JsonObject) -> Json:
            return None

        durable = processes.create()
        durable.register("work", work)
        durable.register("other", work)
        assert isinstance(await get_failure(durable.submit("work", "run", {})), Unavailable)
        await durable.start()
        assert isinstance(await get_failure(durable.submit("nothing", "run", {})), InvalidInput)
        assert isinstance(await get_failure(durable.wait("run")), NotFound)
        assert isinstance(await get_failure(durable.cancel("run")), NotFound)
        await durable.submit("work", "run", {})
        assert await wait_for_result(durable, "run") is None
        assert isinstance(await get_failure(durable.submit("other", "run", {})), Conflict)
        await durable.aclose()
        assert isinstance(await get_failure(durable.submit("work", "run", {})), Unavailable)
        assert isinstance(await get_failure(durable.wait("run")), Unavailable)
        await durable.aclose()

    async def test_workflows_are_registered_once_and_before_the_start(self, processes: Processes) -> None:
        async def work(_payload: JsonObject) -> Json:
            return None

        async def register(name: str) -> None:
            durable.register(name, work)

        durable = processes.create()
        durable.register("work", work)
        assert isinstance(await get_failure(register("work")), Conflict)
        await durable.start()
        assert isinstance(await get_failure(register("late")), Conflict)
        await durable.aclose()


class StopContract:
    """Part of `DurableContract`."""

    async def test_closing_leaves_runs_pending_and_tells_whoever_waits(self, processes: Processes) -> None:
        hold = BlockingAction()
        told: list[DenizenError] = []

        async def work(_payload: JsonObject) -> Json:
            try:
                return await durable.step("hold", hold)
            finally:
                # Cleaning up may fail while everything is being closed: that is not the end of the run.
                if hold.count == 1:
                    raise RuntimeError("closed")

        async def wait() -> None:
            told.append(await get_failure(durable.wait("run")))

        durable = await start_process(processes, work)
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
        assert await wait_for_result(durable, "run") == 2
        await durable.aclose()

    async def test_who_registered_hears_of_runs_that_do_not_end_well_here(self, processes: Processes) -> None:
        hold = BlockingAction()
        told: list[tuple[str, str]] = []

        async def work(payload: JsonObject) -> Json:
            if payload["fails"]:
                raise Unavailable("Away.", code="away")
            return await durable.step("hold", hold) if payload["holds"] else 1

        durable = processes.create()
        durable.register("work", work, lambda run_id, error: told.append((run_id, error.code)))
        await durable.start()
        await durable.submit("work", "good", {"fails": False, "holds": False})
        assert await wait_for_result(durable, "good") == 1
        await durable.submit("work", "bad", {"fails": True, "holds": False})
        await get_failure(durable.wait("bad"))
        await durable.submit("work", "held", {"fails": False, "holds": True})
        await hold.reached()
        await durable.aclose()
        assert told == [("bad", "away"), ("held", "durable_closed")]

    async def test_a_run_that_makes_something_else_of_being_stopped_has_not_ended(self, processes: Processes) -> None:
        hold = BlockingAction()

        async def work(_payload: JsonObject) -> Json:
            try:
                return await durable.step("hold", hold)
            except asyncio.CancelledError:
                return "swallowed"

        durable = await start_process(processes, work)
        await durable.submit("work", "run", {})
        await hold.reached()
        await durable.aclose()
        durable = processes.create()
        durable.register("work", work)
        hold.go()
        await durable.start()
        assert await wait_for_result(durable, "run") == 2
        await durable.aclose()

    async def test_what_a_step_has_done_is_recorded_even_while_the_process_closes(self, processes: Processes) -> None:
        sending, release = anyio.Event(), anyio.Event()
        sent: list[str] = []
        waits = BlockingAction()

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

        durable = await start_process(processes, work)
        await durable.submit("work", "run", {})
        await sending.wait()
        await waits.reached()
        await durable.aclose()
        assert sent == ["sent"]
        durable = processes.create()
        durable.register("work", work)
        waits.go()
        await durable.start()
        assert await wait_for_result(durable, "run") == ["sent", 2]
        assert sent == ["sent"]
        await durable.aclose()

    async def test_closing_gives_runs_the_time_that_it_is_told(self, processes: Processes) -> None:
        hold = BlockingAction()

        async def work(_payload: JsonObject) -> Json:
            first = await durable.step("hold", hold)
            second = await durable.step("after", lambda: return_value("second"))
            return [first, second, *await durable.gather(("last", lambda: return_value("third")))]

        durable = await start_process(processes, work)
        await durable.submit("work", "run", {})
        await hold.reached()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: durable.aclose(grace_s=20))
            await anyio.wait_all_tasks_blocked()
            hold.go()
        later = await start_process(processes, work)
        assert await later.pending() == []
        assert await wait_for_result(later, "run") == [1, "second", "third"]
        await later.aclose()

    async def test_a_run_that_needs_another_while_its_process_closes_stays_pending(self, processes: Processes) -> None:
        hold = BlockingAction()

        async def work(payload: JsonObject) -> Json:
            if payload["child"]:
                return "of the child"
            await hold()
            await durable.submit("work", "child", {"child": True})
            return await durable.wait("child")

        durable = await start_process(processes, work)
        await durable.submit("work", "run", {"child": False})
        await hold.reached()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: durable.aclose(grace_s=20))
            await anyio.wait_all_tasks_blocked()
            assert isinstance(await get_failure(durable.submit("work", "new", {"child": True})), Unavailable)
            hold.go()
        durable = await start_process(processes, work)
        assert await wait_for_result(durable, "run") == "of the child"
        await durable.aclose()

    async def test_a_cancelled_run_ends_and_is_not_resumed(self, processes: Processes) -> None:
        hold = BlockingAction()
        unwound = anyio.Event()
        told: list[DenizenError] = []

        async def work(_payload: JsonObject) -> Json:
            try:
                return await durable.step("hold", hold)
            finally:
                unwound.set()

        async def wait() -> None:
            told.append(await get_failure(durable.wait("run")))

        durable = await start_process(processes, work)
        await durable.submit("work", "run", {})
        await hold.reached()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            await durable.cancel("run")
        await unwound.wait()
        told.append(await get_failure(durable.wait("run")))
        assert [(type(error), error.code) for error in told] == [(Unavailable, "run_cancelled")] * 2
        assert await durable.pending() == []
        await durable.cancel("run")
        await durable.submit("work", "run", {})
        await durable.aclose()
        later = await start_process(processes, work)
        assert (await get_failure(later.wait("run"))).code == "run_cancelled"
        assert hold.count == 1
        await later.aclose()

    async def test_a_forgotten_run_is_unknown_and_one_that_runs_is_not_forgotten(self, processes: Processes) -> None:
        hold = BlockingAction()

        async def work(payload: JsonObject) -> Json:
            return await durable.step("hold", hold) if payload.get("hold") else await durable.step("say", said)

        async def said() -> Json:
            return "secret"

        durable = await start_process(processes, work)
        await durable.submit("work", "done", {"text": "secret"})
        await durable.submit("work", "kept", {})
        assert await wait_for_result(durable, "done") == await wait_for_result(durable, "kept") == "secret"
        await durable.submit("work", "held", {"hold": True})
        await hold.reached()
        await durable.forget(["done", "held", "unknown"])
        await durable.forget([])
        assert isinstance(await get_failure(durable.wait("done")), NotFound)
        assert await wait_for_result(durable, "kept") == "secret"
        assert await durable.pending() == ["held"]
        hold.go()
        await wait_for_result(durable, "held")
        await durable.aclose()

    async def test_cancelling_a_run_that_has_ended_changes_nothing(self, processes: Processes) -> None:
        async def work(_payload: JsonObject) -> Json:
            return 1

        durable = await start_process(processes, work)
        await durable.submit("work", "run", {})
        assert await wait_for_result(durable, "run") == 1
        await durable.cancel("run")
        assert await wait_for_result(durable, "run") == 1
        await durable.aclose()

    async def test_a_process_may_start_again_after_it_closed(self, processes: Processes) -> None:
        async def work(payload: JsonObject) -> Json:
            return payload["n"]

        durable = await start_process(processes, work)
        await durable.submit("work", "first", {"n": 1})
        assert await wait_for_result(durable, "first") == 1
        await durable.aclose()
        await durable.start()
        await durable.submit("work", "second", {"n": 2})
        assert await wait_for_result(durable, "second") == 2
        assert await wait_for_result(durable, "first") == 1
        await durable.aclose()
