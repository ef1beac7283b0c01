"""`denizen run` is killed with `kill -9` in the middle of answering on GitHub: after the restart there is one answer,
whole and in order, and nothing else (promise 1).
"""

from __future__ import annotations

import anyio
import pytest

from denizen.testing.discord.rest.request_log import RequestFault
from denizen.testing.model_server import HangingAnswer, ModelAnswer, ModelCall
from tests.e2e.github import Yard
from tests.timing import HANG_LIMIT_S

pytestmark = [pytest.mark.e2e, pytest.mark.anyio, pytest.mark.proves("P1")]

COMMENTS = r"/issues/\d+/comments$"
PIECES = [letter * 900 for letter in "ABC"]
LONG = "\n".join(PIECES)
SHORT = ["message_limit: 1000"]


async def reached(fault: RequestFault) -> None:
    with anyio.fail_after(HANG_LIMIT_S):
        await fault.wait_reached()


async def test_killed_before_the_model_answered(yard: Yard) -> None:
    yard.configure()
    issue = yard.world.open_issue(yard.ana, yard.boats, "It leaks")
    yard.script(HangingAnswer())
    async with yard.run() as first:
        yard.world.comment(yard.ana, issue, "@denizen why?")
        await yard.until(lambda: yard.requests)
        await first.kill()
    yard.script("A hole.")
    async with yard.run():
        await yard.until(lambda: yard.said(issue))
        assert await yard.settle(issue) == ["A hole."]


async def test_killed_right_after_the_webhook_was_taken(yard: Yard) -> None:
    yard.configure()
    issue = yard.world.open_issue(yard.ana, yard.boats, "It leaks")
    yard.script("A hole.")
    async with yard.run() as first:
        yard.world.comment(yard.ana, issue, "@denizen why?")
        await yard.until(lambda: yard.github.deliveries and yard.github.deliveries[0].status)
        await first.kill()
    async with yard.run():
        await yard.until(lambda: yard.said(issue))
        assert await yard.settle(issue) == ["A hole."]


async def test_killed_before_the_webhook_was_taken(yard: Yard) -> None:
    yard.configure()
    async with yard.run() as first:
        await first.kill()
    issue = yard.world.open_issue(yard.ana, yard.boats, "It leaks")
    yard.world.comment(yard.ana, issue, "@denizen why?")
    await yard.until(lambda: len(yard.github.deliveries) == 2)
    yard.script("A hole.")
    async with yard.run():
        await yard.until(lambda: yard.said(issue))
        assert await yard.settle(issue) == ["A hole."]


async def test_killed_between_a_tool_and_the_answer(yard: Yard) -> None:
    yard.configure()
    issue = yard.world.open_issue(yard.ana, yard.boats, "It leaks")
    yard.script(ModelAnswer(calls=[ModelCall("calculator", {"expression": "6 * 7"})]), HangingAnswer())
    async with yard.run() as first:
        yard.world.comment(yard.ana, issue, "@denizen how many planks?")
        await yard.until(lambda: len(yard.requests) == 2)
        await first.kill()
    yard.script("42.")
    async with yard.run():
        await yard.until(lambda: yard.said(issue))
        assert await yard.settle(issue) == ["42."]


@pytest.mark.parametrize("number", [1, 2, 3])
async def test_killed_right_after_a_piece_was_posted_before_that_was_noted(number: int, yard: Yard) -> None:
    yard.configure(conduct=SHORT)
    issue = yard.world.open_issue(yard.ana, yard.boats, "It leaks")
    yard.script(LONG)
    async with yard.run() as first:
        held = yard.github.hold("POST", COMMENTS, times=1, when="after")
        yard.world.comment(yard.ana, issue, "@denizen tell me everything")
        for _ in range(number - 1):
            await reached(held)
            passed, held = held, yard.github.hold("POST", COMMENTS, times=1, when="after")
            passed.release()
        await reached(held)
        await first.kill()
    assert yard.said(issue) == PIECES[:number]
    async with yard.run():
        await yard.until(lambda: len(yard.said(issue)) >= len(PIECES))
        assert await yard.settle(issue) == PIECES


async def test_killed_while_a_piece_was_on_its_way_and_never_arrived(yard: Yard) -> None:
    yard.configure(conduct=SHORT)
    issue = yard.world.open_issue(yard.ana, yard.boats, "It leaks")
    yard.script(LONG)
    async with yard.run() as first:
        lost = yard.github.fail("POST", COMMENTS, status=502, times=1000)
        yard.world.comment(yard.ana, issue, "@denizen tell me everything")
        await reached(lost)
        await first.kill()
        lost.release()
    async with yard.run():
        await yard.until(lambda: len(yard.said(issue)) >= len(PIECES))
        assert await yard.settle(issue) == PIECES


async def test_an_answer_whose_arrival_was_not_confirmed_is_not_posted_again(yard: Yard) -> None:
    yard.configure()
    issue = yard.world.open_issue(yard.ana, yard.boats, "It leaks")
    yard.script("A hole.")
    async with yard.run():
        yard.github.fail("POST", COMMENTS, status=502, times=1, when="after")
        yard.world.comment(yard.ana, issue, "@denizen why?")
        await yard.until(lambda: yard.said(issue))
        await yard.until(lambda: yard.rows("SELECT 1 FROM deliveries WHERE state = 'sent' AND kind = 'answer'"))
        assert await yard.settle(issue) == ["A hole."]
