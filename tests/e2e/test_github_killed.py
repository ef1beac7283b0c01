"""`denizen run` is killed with `kill -9` in the middle of answering on GitHub: after the restart there is one answer,
whole and in order, and nothing else (promise 1).
"""

from __future__ import annotations

import pytest

from denizen.testing.model_server import HangingAnswer, ModelAnswer, ModelCall
from tests.e2e.deployment import wait_until_reached
from tests.e2e.github import GitHubDeployment

pytestmark = [pytest.mark.e2e, pytest.mark.anyio, pytest.mark.proves("P1")]

COMMENTS = r"/issues/\d+/comments$"
PIECES = [letter * 900 for letter in "ABC"]
LONG = "\n".join(PIECES)
SHORT = ["message_limit: 1000"]


async def test_killed_before_the_model_answered(github_deployment: GitHubDeployment) -> None:
    github_deployment.configure()
    issue = github_deployment.world.open_issue(github_deployment.ana, github_deployment.boats, "It leaks")
    github_deployment.script(HangingAnswer())
    async with github_deployment.run() as first:
        github_deployment.world.comment(github_deployment.ana, issue, "@denizen why?")
        await github_deployment.until(lambda: github_deployment.requests)
        await first.kill()
    github_deployment.script("A hole.")
    async with github_deployment.run():
        await github_deployment.until(lambda: github_deployment.said(issue))
        assert await github_deployment.settle(issue) == ["A hole."]


async def test_killed_right_after_the_webhook_was_taken(github_deployment: GitHubDeployment) -> None:
    github_deployment.configure()
    issue = github_deployment.world.open_issue(github_deployment.ana, github_deployment.boats, "It leaks")
    github_deployment.script("A hole.")
    async with github_deployment.run() as first:
        github_deployment.world.comment(github_deployment.ana, issue, "@denizen why?")
        await github_deployment.until(
            lambda: github_deployment.github.deliveries and github_deployment.github.deliveries[0].status
        )
        await first.kill()
    async with github_deployment.run():
        await github_deployment.until(lambda: github_deployment.said(issue))
        assert await github_deployment.settle(issue) == ["A hole."]


async def test_killed_before_the_webhook_was_taken(github_deployment: GitHubDeployment) -> None:
    github_deployment.configure()
    async with github_deployment.run() as first:
        await first.kill()
    issue = github_deployment.world.open_issue(github_deployment.ana, github_deployment.boats, "It leaks")
    github_deployment.world.comment(github_deployment.ana, issue, "@denizen why?")
    await github_deployment.until(lambda: len(github_deployment.github.deliveries) == 2)
    github_deployment.script("A hole.")
    async with github_deployment.run():
        await github_deployment.until(lambda: github_deployment.said(issue))
        assert await github_deployment.settle(issue) == ["A hole."]


async def test_killed_between_a_tool_and_the_answer(github_deployment: GitHubDeployment) -> None:
    github_deployment.configure()
    issue = github_deployment.world.open_issue(github_deployment.ana, github_deployment.boats, "It leaks")
    github_deployment.script(ModelAnswer(calls=[ModelCall("calculator", {"expression": "6 * 7"})]), HangingAnswer())
    async with github_deployment.run() as first:
        github_deployment.world.comment(github_deployment.ana, issue, "@denizen how many planks?")
        await github_deployment.until(lambda: len(github_deployment.requests) == 2)
        await first.kill()
    github_deployment.script("42.")
    async with github_deployment.run():
        await github_deployment.until(lambda: github_deployment.said(issue))
        assert await github_deployment.settle(issue) == ["42."]


@pytest.mark.parametrize("number", [1, 2, 3])
async def test_killed_right_after_a_piece_was_posted_before_that_was_noted(
    number: int, github_deployment: GitHubDeployment
) -> None:
    github_deployment.configure(conduct=SHORT)
    issue = github_deployment.world.open_issue(github_deployment.ana, github_deployment.boats, "It leaks")
    github_deployment.script(LONG)
    async with github_deployment.run() as first:
        held = github_deployment.github.hold("POST", COMMENTS, times=1, when="after")
        github_deployment.world.comment(github_deployment.ana, issue, "@denizen tell me everything")
        for _ in range(number - 1):
            await wait_until_reached(held)
            passed, held = held, github_deployment.github.hold("POST", COMMENTS, times=1, when="after")
            passed.release()
        await wait_until_reached(held)
        await first.kill()
    assert github_deployment.said(issue) == PIECES[:number]
    async with github_deployment.run():
        await github_deployment.until(lambda: len(github_deployment.said(issue)) >= len(PIECES))
        assert await github_deployment.settle(issue) == PIECES


async def test_killed_while_a_piece_was_on_its_way_and_never_arrived(github_deployment: GitHubDeployment) -> None:
    github_deployment.configure(conduct=SHORT)
    issue = github_deployment.world.open_issue(github_deployment.ana, github_deployment.boats, "It leaks")
    github_deployment.script(LONG)
    async with github_deployment.run() as first:
        lost = github_deployment.github.fail("POST", COMMENTS, status=502, times=1000)
        github_deployment.world.comment(github_deployment.ana, issue, "@denizen tell me everything")
        await wait_until_reached(lost)
        await first.kill()
        lost.release()
    async with github_deployment.run():
        await github_deployment.until(lambda: len(github_deployment.said(issue)) >= len(PIECES))
        assert await github_deployment.settle(issue) == PIECES


async def test_an_answer_whose_arrival_was_not_confirmed_is_not_posted_again(
    github_deployment: GitHubDeployment,
) -> None:
    github_deployment.configure()
    issue = github_deployment.world.open_issue(github_deployment.ana, github_deployment.boats, "It leaks")
    github_deployment.script("A hole.")
    async with github_deployment.run():
        github_deployment.github.fail("POST", COMMENTS, status=502, times=1, when="after")
        github_deployment.world.comment(github_deployment.ana, issue, "@denizen why?")
        await github_deployment.until(lambda: github_deployment.said(issue))
        await github_deployment.until(
            lambda: github_deployment.rows("SELECT 1 FROM deliveries WHERE state = 'sent' AND kind = 'answer'")
        )
        assert await github_deployment.settle(issue) == ["A hole."]
