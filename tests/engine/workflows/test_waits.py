"""Waits side by side: the first that ends leads on, the others go on or are taken back."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import anyio
import pytest

from denizen.domain.approval import Approval, ApprovalChoice, ApprovalStatus
from denizen.domain.question import QuestionStatus, describe_question
from denizen.domain.turn import TurnStatus
from denizen.engine.intake.turn_queue import TurnQueues
from denizen.engine.workflows.people import WaitingNodes
from tests.engine.engine_fixture import ToolsetFixture
from tests.engine.platform_fixture import PlatformFixture, World, open_platform
from tests.engine.workflows.workflow_fixture import OPERATOR, finish, make, paths, run, start
from tests.skill_fixture import scope
from tests.timing import HANG_LIMIT_S, controlled_clock, poll

pytestmark = pytest.mark.anyio


def ask(question: str, **ways: Any) -> dict[str, Any]:
    return {"type": "approval", "question": question, **ways}


async def list_open(server: PlatformFixture) -> dict[str, Approval]:
    async with server.store.work(write=False) as work:
        found = await work.approvals.list_approvals(status=ApprovalStatus.PENDING)
    return {each.request.reason: each for each in found}


async def wait_for(server: PlatformFixture, *questions: str) -> dict[str, Approval]:
    """The open approvals, once they are these."""

    async def look() -> dict[str, Approval]:
        found = await list_open(server)
        return found if set(found) == set(questions) else {}

    return await poll(look)


async def test_each_way_goes_on_when_its_own_wait_has_ended_also_after_a_restart() -> None:
    flow = make(
        {
            "start": {"type": "manual", "then": ["one", "two"]},
            "one": ask("One?", then="say"),
            "two": ask("Two?", then="act"),
            "act": {"type": "call_tool", "tool": "write", "args": {"q": "a"}, "then": "three"},
            "three": ask("Three?", then="say"),
            "say": {"type": "reply", "text": "{{one.approved}} {{three.approved}}"},
        }
    )
    world, tools = World(), ToolsetFixture()
    async with open_platform(world, tools=tools, workflows=flow) as server:
        turn = await start(server)
        found = await wait_for(server, "One?", "Two?")
        await server.turns.approvals.decide(found["Two?"].id, OPERATOR, ApprovalChoice.ONCE)
        await wait_for(server, "One?", "Three?")
    async with open_platform(world, tools=tools, workflows=flow) as server:
        await server.turns.resume()
        found = await wait_for(server, "One?", "Three?")
        for each in found.values():
            await server.turns.approvals.decide(each.id, OPERATOR, ApprovalChoice.ONCE)
        ended = await finish(server, turn.id)
        assert (ended.status, ended.reply) == (TurnStatus.DONE, "true true")
        assert len(tools.calls) == 1


async def test_the_first_way_to_a_join_leads_on_and_what_the_others_asked_is_no_longer_needed() -> None:
    flow = make(
        {
            "start": {"type": "manual", "then": ["one", "two"]},
            "one": ask("One?", **{"then": "first", "else": "no"}),
            "no": {"type": "reply", "text": "no"},
            "two": ask("Two?", then="first"),
            "first": {"type": "join", "wait_for": "any", "then": "say"},
            "say": {"type": "reply", "text": "on"},
        }
    )
    async with open_platform(workflows=flow) as server:
        turn = await start(server)
        found = await wait_for(server, "One?", "Two?")
        await server.turns.approvals.decide(found["Two?"].id, OPERATOR, ApprovalChoice.ONCE)
        ended = await finish(server, turn.id)
        assert (ended.status, ended.reply, paths(ended)) == (TurnStatus.DONE, "on", ["start", "two", "first", "say"])
        async with server.store.work(write=False) as work:
            closed = await work.approvals.find(found["One?"].id)
        assert closed is not None and closed.status is ApprovalStatus.EXPIRED
        assert "no longer needed" in closed.decision.note


async def test_a_time_that_comes_first_leads_on_without_the_approval() -> None:
    flow = make(
        {
            "start": {"type": "manual", "then": ["ask", "pause"]},
            "ask": ask("Go on?", then="first"),
            "pause": {"type": "wait", "seconds": "10m", "then": "first"},
            "first": {"type": "join", "wait_for": "any", "then": "say"},
            "say": {"type": "reply", "text": "on"},
        }
    )
    async with open_platform(workflows=flow) as server:
        ended = await run(server)
        assert (ended.reply, paths(ended)) == ("on", ["start", "pause", "first", "say"])
        assert await list_open(server) == {}


async def test_what_a_run_that_has_ended_still_asks_is_no_longer_needed() -> None:
    flow = make(
        {
            "start": {"type": "manual", "then": ["one", "two", "owner"]},
            "one": ask("One?"),
            "owner": {"type": "ask_owner", "question": "Who?", "timeout": "30d"},
            "two": ask("Two?", then="end"),
            "end": {"type": "stop", "text": "Enough."},
        }
    )
    async with open_platform(workflows=flow) as server:
        turn = await start(server)
        inbox = server.turns.questions
        [question] = await poll(partial(inbox.list_questions, status=QuestionStatus.OPEN))
        found = await wait_for(server, "One?", "Two?")
        await server.turns.approvals.decide(found["Two?"].id, OPERATOR, ApprovalChoice.ONCE)
        ended = await finish(server, turn.id)
        assert (ended.status, ended.reply) == (TurnStatus.DONE, "Enough.")
        assert await list_open(server) == {}
        [closed] = await inbox.list_questions()
        assert (closed.id, closed.status) == (question.id, QuestionStatus.LOST)
        assert describe_question(closed)[-1] == "  no longer needed"


async def test_a_run_whose_first_wait_has_ended_is_next_in_its_queue_and_its_time_stands_still_till_then() -> None:
    is_over, proceed, order = anyio.Event(), anyio.Event(), list[str]()
    queues, call = TurnQueues(), scope()
    async with open_platform(connect=False) as server:
        services, clock = server.shared_services.services, server.world.clock
        soon, late = (clock.now() + timedelta(seconds=seconds) for seconds in (1, 60))

        async def sleep(seconds: float) -> None:
            if seconds > 1:
                await anyio.sleep_forever()
            await is_over.wait()
            clock.advance(seconds)

        waiting = WaitingNodes(services, sleep)
        waits = {
            "soon": partial(waiting.wait, "wait", call, {}, soon),
            "late": partial(waiting.wait, "wait", call, {}, late),
        }

        async def race() -> None:
            async with queues.turn("talk") as slot:
                with services.approvals.pauses.open(call.turn_id, slot) as pause:
                    with anyio.fail_after(HANG_LIMIT_S) as limit, pause.limited(limit):
                        won = await waiting.race(call, waits)
                    assert won == {"path": "soon", "row": {}} and slot.is_held
                    order.append("run")

        async def take_turn(name: str) -> None:
            async with queues.turn("talk"):
                order.append(name)
                await proceed.wait()

        with controlled_clock() as loop_clock:
            async with anyio.create_task_group() as group:
                for take in (race, partial(take_turn, "first"), partial(take_turn, "second")):
                    group.start_soon(take)
                    await anyio.wait_all_tasks_blocked()
                is_over.set()
                await anyio.wait_all_tasks_blocked()
                loop_clock.advance(2 * HANG_LIMIT_S)
                await anyio.wait_all_tasks_blocked()
                proceed.set()
    assert order == ["first", "run", "second"]
