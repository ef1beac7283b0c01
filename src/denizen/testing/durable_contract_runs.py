"""Runs and their errors, as every implementation of `denizen.ports.durable.DurableExecution` has them."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from functools import partial

import anyio

from denizen.domain.errors import (
    Conflict,
    DenizenError,
    InvalidInput,
    NotFound,
    Unavailable,
)
from denizen.domain.json import Json, JsonObject
from denizen.testing.durable_processes import Hold, Processes, failure, result, returning, started

_inherited: ContextVar[str] = ContextVar("durable_contract_inherited", default="nothing")


class RunContract:
    """Part of `DurableContract`."""

    async def test_a_run_gives_its_result_while_it_runs_and_after(self, processes: Processes) -> None:
        async def work(payload: JsonObject) -> Json:
            return {"got": payload["text"]}

        durable = await started(processes, work)
        text = 'nul \0, half a pair \ud800, "quotes", line\u2028end, \N{GRINNING FACE}'
        await durable.submit("work", "run", {"text": text})
        assert await result(durable, "run") == {"got": text}
        assert await result(durable, "run") == {"got": text}
        await durable.aclose()
        later = await started(processes, work)
        assert await result(later, "run") == {"got": text}
        await later.aclose()

    async def test_the_same_id_is_one_run_at_once_while_it_runs_and_after_it_ended(self, processes: Processes) -> None:
        hold = Hold()
        seen: list[Json] = []

        async def work(payload: JsonObject) -> Json:
            seen.append(payload["n"])
            return await hold()

        durable = await started(processes, work)
        async with anyio.create_task_group() as tasks:
            for n in range(5):
                tasks.start_soon(partial(durable.submit, "work", "run", {"n": n}))
        await hold.reached()
        await durable.submit("work", "run", {"n": 5})
        hold.go()
        assert await result(durable, "run") == 1
        await durable.submit("work", "run", {"n": 6})
        assert await result(durable, "run") == 1
        await durable.aclose()
        later = await started(processes, work)
        await later.submit("work", "run", {"n": 7})
        assert await result(later, "run") == 1
        assert len(seen) == 1
        await later.aclose()

    async def test_submitting_does_not_wait_for_the_run(self, processes: Processes) -> None:
        hold = Hold()

        async def work(_payload: JsonObject) -> Json:
            return await hold()

        durable = await started(processes, work)
        with anyio.fail_after(20):
            await durable.submit("work", "run", {})
        await hold.reached()
        assert await durable.pending() == ["run"]
        hold.go()
        assert await result(durable, "run") == 1
        assert await durable.pending() == []
        await durable.aclose()

    async def test_runs_go_side_by_side_and_pending_lists_the_oldest_first(self, processes: Processes) -> None:
        holds = {f"run-{n}": Hold() for n in range(4)}

        async def work(payload: JsonObject) -> Json:
            return await holds[str(payload["id"])]()

        durable = await started(processes, work)
        for run_id in holds:
            await durable.submit("work", run_id, {"id": run_id})
        for hold in holds.values():
            await hold.reached()
        assert await durable.pending() == list(holds)
        for hold in holds.values():
            hold.go()
        for run_id in holds:
            assert await result(durable, run_id) == 1
        await durable.aclose()

    async def test_several_may_wait_for_one_run(self, processes: Processes) -> None:
        hold = Hold()
        results: list[Json] = []

        async def work(_payload: JsonObject) -> Json:
            await hold()
            return {"list": [1]}

        durable = await started(processes, work)
        await durable.submit("work", "run", {})

        async def wait() -> None:
            results.append(await result(durable, "run"))

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

        durable = await started(processes, work)
        token = _inherited.set("something of whoever submits")
        await durable.submit("work", "run", given)
        _inherited.reset(token)
        assert await result(durable, "run") == "nothing"
        assert given == {"list": [1]}
        assert loops == [asyncio.get_running_loop()]
        await durable.aclose()

    async def test_a_run_may_submit_and_await_another(self, processes: Processes) -> None:
        durable = processes.create()

        async def outer(_payload: JsonObject) -> Json:
            await durable.submit("inner", "second", {"n": 1})
            first = await durable.step("one", lambda: returning("outer step"))
            return [first, await durable.wait("second")]

        async def inner(payload: JsonObject) -> Json:
            return await durable.step("one", lambda: returning(payload["n"]))

        durable.register("outer", outer)
        durable.register("inner", inner)
        await durable.start()
        await durable.submit("outer", "first", {})
        assert await result(durable, "first") == ["outer step", 1]
        await durable.aclose()

    async def test_a_run_starts_even_when_whoever_submits_it_is_stopped(self, processes: Processes) -> None:
        hold = Hold()

        async def work(_payload: JsonObject) -> Json:
            return await hold()

        durable = await started(processes, work)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await durable.submit("work", "run", {})
        await hold.reached()
        hold.go()
        assert await result(durable, "run") == 1
        await durable.aclose()

    async def test_an_error_of_a_run_reaches_whoever_waits_with_all_that_it_says(self, processes: Processes) -> None:
        async def work(_payload: JsonObject) -> Json:
            raise Unavailable("No.", code="model_down", why="It is down.", fix="Wait.", retry_after_s=2.5, detail="s")

        durable = await started(processes, work)
        await durable.submit("work", "run", {})
        seen = [await failure(durable.wait("run")), await failure(durable.wait("run"))]
        await durable.aclose()
        later = await started(processes, work)
        seen.append(await failure(later.wait("run")))
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

        durable = await started(processes, work)
        await durable.submit("work", "run", {"secret": "the password"})
        error = await failure(durable.wait("run"))
        assert type(error) is DenizenError
        assert error.code == "internal"
        assert "password" not in error.explain()
        assert "run" in error.fix
        await durable.aclose()

    async def test_what_is_not_json_is_refused(self, processes: Processes) -> None:
        async def work(_payload: JsonObject) -> Json:
            return {"set": {1, 2}}  # pyright: ignore[reportReturnType]

        durable = await started(processes, work)
        error = await failure(durable.submit("work", "bad", {"n": float("nan")}))
        assert isinstance(error, InvalidInput)
        assert await durable.pending() == []
        await durable.submit("work", "run", {})
        error = await failure(durable.wait("run"))
        assert isinstance(error, InvalidInput)
        assert error.code == "not_json"
        await durable.aclose()

    async def test_unknown_names_and_ids_are_refused(self, processes: Processes) -> None:
        async def work(_payload: JsonObject) -> Json:
            return None

        durable = processes.create()
        durable.register("work", work)
        durable.register("other", work)
        assert isinstance(await failure(durable.submit("work", "run", {})), Unavailable)
        await durable.start()
        assert isinstance(await failure(durable.submit("nothing", "run", {})), InvalidInput)
        assert isinstance(await failure(durable.wait("run")), NotFound)
        assert isinstance(await failure(durable.cancel("run")), NotFound)
        await durable.submit("work", "run", {})
        assert await result(durable, "run") is None
        assert isinstance(await failure(durable.submit("other", "run", {})), Conflict)
        await durable.aclose()
        assert isinstance(await failure(durable.submit("work", "run", {})), Unavailable)
        assert isinstance(await failure(durable.wait("run")), Unavailable)
        await durable.aclose()

    async def test_workflows_are_registered_once_and_before_the_start(self, processes: Processes) -> None:
        async def work(_payload: JsonObject) -> Json:
            return None

        async def register(name: str) -> None:
            durable.register(name, work)

        durable = processes.create()
        durable.register("work", work)
        assert isinstance(await failure(register("work")), Conflict)
        await durable.start()
        assert isinstance(await failure(register("late")), Conflict)
        await durable.aclose()
