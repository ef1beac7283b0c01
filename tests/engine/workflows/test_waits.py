"""Waits side by side: the first that ends leads on, the others go on or are taken back."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from denizen.domain.approval import Approval, ApprovalChoice, ApprovalStatus
from denizen.domain.question import QuestionStatus, describe_question
from denizen.domain.turn import TurnStatus
from tests.engine.engine_fixture import ToolsetFixture
from tests.engine.platform_fixture import PlatformFixture, World, open_platform
from tests.engine.workflows.workflow_fixture import OPERATOR, finish, make, paths, run, start
from tests.timing import poll

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
