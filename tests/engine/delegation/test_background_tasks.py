"""Tasks that agents hand on without waiting: their state, their results, and for whom they are to be seen."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import anyio
import pytest

from denizen.domain.conversation import Place
from denizen.domain.delegation import MAX_FINISHED, MAX_RUNNING, BackgroundTask, TaskState
from denizen.domain.errors import Unavailable
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.tool import DataFlow, Effect, Taint
from denizen.domain.turn import TurnStatus
from denizen.testing.memory_durable import MemoryLog
from denizen.testing.scripted_model import ReplyGate, ScriptedModel, ScriptedReply, call
from denizen.testing.temporary_store import TemporaryStore
from tests.clock import ManualClock
from tests.engine.delegation.delegation_fixture import (
    ADA,
    AGENTS,
    BOB,
    DelegationFixture,
    ask_status,
    find_results,
    hand_on,
    last_result,
    open_agents,
    without_times,
)
from tests.engine.engine_fixture import ANA, LOOK, WRITE, ToolsetFixture, message
from tests.timing import HANG_LIMIT_S, poll

pytestmark = pytest.mark.anyio

START = hand_on("Think about it", is_async=True)
DONE = ScriptedReply("ok")
MEMBER = Principal(PrincipalKind.PLATFORM_USER, "discord:1", "Ana")
ROOM, OTHER_ROOM = Place("discord", "10"), Place("discord", "11")


async def list_tasks(engine: DelegationFixture) -> list[BackgroundTask]:
    return list(await engine.delegations.list_tasks())


async def await_state(engine: DelegationFixture, state: TaskState) -> BackgroundTask:
    """The newest task, once it is in that state."""

    async def look() -> list[BackgroundTask]:
        return [task for task in (await list_tasks(engine))[:1] if task.state is state]

    [task] = await poll(look)
    return task


@pytest.mark.proves("T-delegate-async", "T-task-status")
async def test_a_task_in_the_background_is_answered_at_once_and_its_result_is_read_later() -> None:
    gate = ReplyGate()
    ada, bob = ScriptedModel(START, ScriptedReply("started")), ScriptedModel(ScriptedReply("x" * 900, before=gate))
    async with open_agents(ada, bob) as engine:
        assert (await engine.say("go")).reply == "started"
        task = await await_state(engine, TaskState.RUNNING)
        assert re.fullmatch("task_[0-9a-f]{8}", task.id)
        assert last_result(ada).text.startswith(f"{task.id}: bob works on it.")
        ada.script(ask_status(), DONE)
        await engine.say("how far?")
        assert without_times(last_result(ada)) == f"{task.id}, bob, running: Think about it"
        gate.open.set()
        await await_state(engine, TaskState.COMPLETED)
        ada.script(ask_status(task.id), DONE)
        await engine.say("and?")
        head, _, result = without_times(last_result(ada)).partition("\n")
        assert head.startswith(f"{task.id}, bob, completed at ")
        assert result.startswith("x" * 490)
        assert len(result) == 500


@pytest.mark.proves("T-background-tasks")
async def test_a_task_that_fails_says_why() -> None:
    ada = ScriptedModel(START, DONE)
    async with open_agents(ada, ScriptedModel(Unavailable("The model is away.", code="model_away"))) as engine:
        await engine.say("go")
        task = await await_state(engine, TaskState.FAILED)
        ada.script(ask_status(task.id), DONE)
        await engine.say("and?")
        assert ", failed at " in last_result(ada).text
        assert "The model is away." in last_result(ada).text


@pytest.mark.proves("TW15")
async def test_a_task_can_be_stopped_by_its_asker_and_nobody_else() -> None:
    gate = ReplyGate()
    ada, bob = ScriptedModel(START, DONE), ScriptedModel(ScriptedReply("never", before=gate))
    async with open_agents(ada, bob) as engine:
        await engine.say("go")
        task = await await_state(engine, TaskState.RUNNING)
        with anyio.fail_after(HANG_LIMIT_S):
            await gate.reached.wait()
        stop = ScriptedReply(calls=[call("cancel_task", task_id=task.id)])
        ada.script(stop, DONE, stop, DONE, stop, DONE)
        await engine.say("stop it", principal=replace(ANA, id="eve"), place=Place("terminal", "eve"))
        assert last_result(ada).is_error
        assert "There is no background task" in last_result(ada).text
        await engine.say("stop it")
        assert without_times(last_result(ada)) == f"{task.id} is stopped."
        stopped = await await_state(engine, TaskState.FAILED)
        assert (await engine.turns.get(stopped.turn_id)).status is TurnStatus.CANCELLED
        await engine.say("stop it")
        assert "has ended already" in last_result(ada).text


@pytest.mark.proves("TW15")
async def test_a_task_goes_on_after_its_parent_has_ended_and_after_a_restart() -> None:
    store, log, gate = TemporaryStore(), MemoryLog(), ReplyGate()
    bob = ScriptedModel(ScriptedReply(calls=[call("write", q="once")]), ScriptedReply("never", before=gate))
    async with open_agents(ScriptedModel(START, DONE), bob, store=store, log=log) as engine:
        await engine.say("go")
        with anyio.fail_after(HANG_LIMIT_S):
            await gate.reached.wait()
        before = await await_state(engine, TaskState.RUNNING)
        await engine.durable.crash()
    ada = ScriptedModel(ask_status(before.id), DONE)
    async with open_agents(ada, ScriptedModel(ScriptedReply("thought")), store=store, log=log) as engine:
        await engine.turns.resume()
        await await_state(engine, TaskState.COMPLETED)
        assert not engine.tools.calls, "what was done is not repeated"
        await engine.say("and?")
        assert "thought" in last_result(ada).text


async def test_a_task_of_a_call_that_runs_again_is_the_same() -> None:
    store, log, gate = TemporaryStore(), MemoryLog(), ReplyGate()
    both = ScriptedReply(calls=[*START.calls, *hand_on("Wait").calls])
    bob = ScriptedModel(otherwise=ScriptedReply("never", before=gate))
    async with open_agents(ScriptedModel(both), bob, store=store, log=log) as engine:
        turn = await engine.turns.submit(message("go"))

        async def look() -> bool:
            return len(await engine.list_turns(BOB)) == 2

        await poll(look)
        await engine.durable.crash()
    ada = ScriptedModel(DONE)
    async with open_agents(ada, ScriptedModel(otherwise=ScriptedReply("thought")), store=store, log=log) as engine:
        await engine.turns.resume()
        with anyio.fail_after(HANG_LIMIT_S):
            await engine.durable.wait(turn.id)
        assert len(await list_tasks(engine)) == 1
        assert len(await engine.list_turns(BOB)) == 2


@pytest.mark.proves("T-background-tasks")
async def test_tasks_leave_the_list_an_hour_after_their_end() -> None:
    clock = ManualClock()
    async with open_agents(ScriptedModel(START, DONE), ScriptedModel(ScriptedReply("thought")), clock=clock) as engine:
        await engine.say("go")
        await await_state(engine, TaskState.COMPLETED)
        clock.advance(minutes=59)
        assert await list_tasks(engine)
        clock.advance(minutes=1)
        assert not await list_tasks(engine)


@pytest.mark.proves("T-background-tasks")
async def test_of_the_tasks_that_have_ended_the_newest_hundred_are_listed_and_those_that_run() -> None:
    gate = ReplyGate()
    steps = itertools.cycle([START, DONE])
    ada = ScriptedModel(otherwise=lambda _: next(steps))
    bob = ScriptedModel(ScriptedReply("never", before=gate), otherwise=ScriptedReply("thought"))
    clock = ManualClock()
    async with open_agents(ada, bob, clock=clock) as engine:
        for _ in range(MAX_FINISHED + 3):
            clock.advance(seconds=10)
            done = await engine.say("go", place=Place("terminal", f"{clock.now():%H%M%S}"))
            assert done.reply == "ok"
            if len(bob.requests) > 1:
                await await_state(engine, TaskState.COMPLETED)
        listed = await engine.delegations.list_tasks(ANA.key)
        states = [task.state for task in listed]
        assert states == [TaskState.COMPLETED] * MAX_FINISHED + [TaskState.RUNNING]


async def test_one_person_has_a_bound_of_tasks_that_run_at_once() -> None:
    starts = [hand_on(f"task {number}", is_async=True) for number in range(MAX_RUNNING + 1)]
    ada = ScriptedModel(*starts, DONE)
    bob = ScriptedModel(otherwise=ScriptedReply("never", before=ReplyGate()))
    async with open_agents(ada, bob) as engine:
        await engine.say("go")
        assert [each.is_error for each in find_results(ada)] == [False] * MAX_RUNNING + [True]
        assert "10 background tasks are running" in last_result(ada).text
        assert len(await list_tasks(engine)) == MAX_RUNNING


async def test_a_room_is_told_only_of_the_tasks_that_were_asked_for_there() -> None:
    bob = ScriptedModel(otherwise=ScriptedReply("the secret"))
    ada = ScriptedModel(START, DONE)
    async with open_agents(ada, bob) as engine:
        await engine.say("go", principal=MEMBER, place=ROOM)
        task = await await_state(engine, TaskState.COMPLETED)
        ada.script(ask_status(), ask_status(task.id), DONE)
        await engine.say("and?", principal=MEMBER, place=OTHER_ROOM)
        listed, shown = find_results(ada)
        assert without_times(listed) == "There are no background tasks here.\nElsewhere: 1."
        assert shown.is_error
        ada.script(ask_status(task.id), DONE)
        await engine.say("and?", principal=MEMBER, place=ROOM)
        assert "the secret" in last_result(ada).text


async def test_what_a_task_has_read_bounds_the_turn_that_looks_at_it() -> None:
    read = replace(LOOK, name="read", flow=DataFlow(reads=frozenset({Taint.WEB})))
    remember = replace(WRITE, name="remember", flow=DataFlow(effects=frozenset({Effect.MEMORY})))
    ada, bob = ScriptedModel(START, DONE), ScriptedModel(ScriptedReply(calls=[call("read", q="x")]), DONE)
    async with open_agents(ada, bob, ToolsetFixture([read, remember])) as engine:
        await engine.say("go", place=Place("terminal", "one"))
        task = await await_state(engine, TaskState.COMPLETED)
        ada.script(ask_status(task.id), ScriptedReply(calls=[call("remember", q="x")]), DONE)
        await engine.say("and?", place=Place("terminal", "two"))
        assert "Denied" in last_result(ada).text
        assert [each.tool for each in engine.tools.calls] == ["read"]


async def test_an_agent_that_gave_no_task_away_is_told_of_none() -> None:
    other = replace(AGENTS[1], tool_access=replace(ADA.tool_access, delegates_to=(AGENTS[2].name,)))
    ada, bob = ScriptedModel(START, DONE), ScriptedModel(ScriptedReply("thought"))
    async with open_agents(ada, bob, agents=(ADA, other, AGENTS[2])) as engine:
        await engine.say("go")
        await await_state(engine, TaskState.COMPLETED)
        bob.script(ask_status(), DONE)
        await engine.say("which tasks?", agent=BOB)
        assert without_times(last_result(bob)) == "There are no background tasks here."
