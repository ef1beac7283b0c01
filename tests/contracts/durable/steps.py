"""The contract of durable steps: each is recorded once, and a resumed run replays what was recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import anyio
import pytest

from denizen.domain.errors import (
    Conflict,
    DenizenError,
    InvalidInput,
    LimitExceeded,
    NeedsAttention,
    NotAllowed,
    NotFound,
)
from denizen.domain.json import Json, JsonObject
from tests.contracts.durable.processes import (
    BlockingAction,
    Processes,
    get_failure,
    return_value,
    start_process,
    wait_for_result,
)


class StepContract:
    """Part of `DurableContract`."""

    async def test_after_a_kill_finished_steps_are_kept_and_the_interrupted_one_runs_again(
        self, processes: Processes
    ) -> None:
        ran: list[str] = []
        loops: list[asyncio.AbstractEventLoop] = []
        hold = BlockingAction()

        def action(name: str) -> Callable[[], Awaitable[Json]]:
            async def act() -> Json:
                ran.append(name)
                return {"ran": len(ran)}

            return act

        async def work(payload: JsonObject) -> Json:
            loops.append(asyncio.get_running_loop())
            first = await durable.step("first", action("first"))
            second = await durable.step("second", hold)
            third = await durable.step("third", action("third"))
            return [payload["n"], first, second, third]

        durable = await start_process(processes, work)
        await durable.submit("work", "run", {"n": 7})
        await hold.reached()
        await processes.kill(durable)
        durable = processes.create()
        durable.register("work", work)
        hold.go()
        await durable.start()
        assert await wait_for_result(durable, "run") == [7, {"ran": 1}, 2, {"ran": 2}]
        assert ran == ["first", "third"]
        assert hold.count == 2
        assert loops == [asyncio.get_running_loop()] * 2
        assert await durable.pending() == []
        await durable.aclose()

    async def test_an_error_of_a_step_is_recorded_and_raised_again(self, processes: Processes) -> None:
        hold = BlockingAction()
        kinds = {kind.__name__: kind for kind in (LimitExceeded, NeedsAttention, NotAllowed, DenizenError)}
        ran: list[str] = []

        async def work(_payload: JsonObject) -> Json:
            seen: list[Json] = []
            for name, kind in kinds.items():

                async def act(name: str = name, kind: type[DenizenError] = kind) -> Json:
                    ran.append(name)
                    raise kind("No.", code="special", why="w", fix="f")

                try:
                    await durable.step(name, act)
                except DenizenError as error:
                    seen.append([type(error).__name__, error.message, error.code, error.why, error.fix])
            await durable.step("hold", hold)
            return seen

        durable = await start_process(processes, work)
        await durable.submit("work", "run", {})
        await hold.reached()
        await processes.kill(durable)
        durable = processes.create()
        durable.register("work", work)
        hold.go()
        await durable.start()
        assert await wait_for_result(durable, "run") == [[name, "No.", "special", "w", "f"] for name in kinds]
        assert ran == list(kinds)
        await durable.aclose()

    async def test_a_bug_in_a_step_is_the_same_error_at_first_and_on_replay(self, processes: Processes) -> None:
        hold = BlockingAction()
        seen: list[str] = []

        async def act() -> Json:
            raise KeyError("the password")

        async def work(_payload: JsonObject) -> Json:
            try:
                await durable.step("breaks", act)
            except DenizenError as error:
                seen.append(f"{type(error).__name__} {error.explain()}")
            return await durable.step("hold", hold)

        durable = await start_process(processes, work)
        await durable.submit("work", "run", {})
        await hold.reached()
        await processes.kill(durable)
        durable = processes.create()
        durable.register("work", work)
        hold.go()
        await durable.start()
        assert await wait_for_result(durable, "run") == 2
        assert len(seen) == 2
        assert seen[0] == seen[1]
        assert "password" not in seen[0]
        await durable.aclose()

    async def test_a_step_gives_the_first_time_what_it_gives_on_replay(self, processes: Processes) -> None:
        async def act() -> Json:
            return {"pair": (1, 2)}

        async def work(_payload: JsonObject) -> Json:
            return repr(await durable.step("one", act))

        durable = await start_process(processes, work)
        await durable.submit("work", "run", {})
        assert await wait_for_result(durable, "run") == "{'pair': [1, 2]}"
        await durable.aclose()

    async def test_a_run_that_took_another_way_than_its_record_fails(self, processes: Processes) -> None:
        hold = BlockingAction()

        async def old(_payload: JsonObject) -> Json:
            await durable.step("old step", lambda: return_value(1))
            return await durable.step("hold", hold)

        async def new(_payload: JsonObject) -> Json:
            return await durable.step("new step", lambda: return_value(2))

        durable = await start_process(processes, old)
        await durable.submit("work", "run", {})
        await hold.reached()
        await processes.kill(durable)
        durable = await start_process(processes, new)
        error = await get_failure(durable.wait("run"))
        assert isinstance(error, Conflict)
        assert error.code == "run_changed"
        await durable.aclose()

    async def test_a_step_within_a_step_is_part_of_it(self, processes: Processes) -> None:
        hold = BlockingAction()
        ran: list[str] = []

        async def inner() -> Json:
            ran.append("inner")
            return 1

        async def outer() -> Json:
            return [await durable.step("inner", inner), *await durable.gather(("a", inner), ("b", inner))]

        async def work(_payload: JsonObject) -> Json:
            first = await durable.step("outer", outer)
            return [first, await durable.step("hold", hold)]

        durable = await start_process(processes, work)
        await durable.submit("work", "run", {})
        await hold.reached()
        await processes.kill(durable)
        durable = processes.create()
        durable.register("work", work)
        hold.go()
        await durable.start()
        assert await wait_for_result(durable, "run") == [[1, 1, 1], 2]
        assert ran == ["inner"] * 3
        await durable.aclose()

    async def test_steps_outside_of_a_run_are_refused(self, processes: Processes) -> None:
        durable = processes.create()
        await durable.start()
        assert isinstance(await get_failure(durable.step("one", lambda: return_value(1))), InvalidInput)
        assert isinstance(await get_failure(durable.gather(("one", lambda: return_value(1)))), InvalidInput)
        await durable.aclose()

    @pytest.mark.proves("T13")
    async def test_gathered_steps_run_at_once_and_give_results_in_order(self, processes: Processes) -> None:
        waiting = [anyio.Event() for _ in range(3)]

        def action(index: int) -> Callable[[], Awaitable[Json]]:
            async def act() -> Json:
                # The last to be started is the first to end.
                if index + 1 < len(waiting):
                    await waiting[index + 1].wait()
                waiting[index].set()
                return index

            return act

        async def work(_payload: JsonObject) -> Json:
            nothing = await durable.gather()
            return [nothing, await durable.gather(*((f"step {index}", action(index)) for index in range(3)))]

        durable = await start_process(processes, work)
        await durable.submit("work", "run", {})
        assert await wait_for_result(durable, "run") == [[], [0, 1, 2]]
        await durable.aclose()

    async def test_after_a_kill_a_gather_repeats_only_what_had_not_ended(self, processes: Processes) -> None:
        hold = BlockingAction()
        ran: list[str] = []
        recorded = anyio.Event()

        def action(name: str) -> Callable[[], Awaitable[Json]]:
            async def act() -> Json:
                ran.append(name)
                return name

            return act

        async def last() -> Json:
            await hold()
            return "slow"

        async def work(_payload: JsonObject) -> Json:
            quick = await durable.gather(("a", action("a")), ("b", action("b")))
            recorded.set()
            mixed = await durable.gather(("c", action("c")), ("slow", last), ("d", action("d")))
            return [quick, mixed, await durable.step("after", lambda: return_value("after"))]

        durable = await start_process(processes, work)
        await durable.submit("work", "run", {})
        await recorded.wait()
        await hold.reached()
        await processes.kill(durable)
        durable = processes.create()
        durable.register("work", work)
        hold.go()
        await durable.start()
        assert await wait_for_result(durable, "run") == [["a", "b"], ["c", "slow", "d"], "after"]
        assert ran.count("a") == ran.count("b") == 1
        assert hold.count == 2
        await durable.aclose()

    async def test_of_gathered_steps_that_raise_the_first_in_order_does_after_all_ended(
        self, processes: Processes
    ) -> None:
        ended: list[str] = []

        def action(name: str, error: DenizenError | None) -> Callable[[], Awaitable[Json]]:
            async def act() -> Json:
                ended.append(name)
                if error is not None:
                    raise error
                return name

            return act

        async def work(_payload: JsonObject) -> Json:
            return await durable.gather(
                ("a", action("a", None)),
                ("b", action("b", NotFound("b"))),
                ("c", action("c", LimitExceeded("c"))),
                ("d", action("d", None)),
            )

        durable = await start_process(processes, work)
        await durable.submit("work", "run", {})
        assert isinstance(await get_failure(durable.wait("run")), NotFound)
        assert sorted(ended) == ["a", "b", "c", "d"]
        await durable.aclose()
