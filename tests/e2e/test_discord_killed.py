"""`denizen run` is killed with `kill -9` in the middle of answering on Discord: after the restart there is one answer,
whole and in order, and nothing else (promise 1).
"""

from __future__ import annotations

import signal
from typing import Literal

import pytest

from denizen.testing.discord import SimMessage
from denizen.testing.discord.rest.request_log import FaultTime, RequestFault
from denizen.testing.model_server import HangingAnswer, ModelAnswer, ModelCall
from tests.e2e.deployment import wait_until_reached
from tests.e2e.discord import DiscordDeployment

pytestmark = [pytest.mark.e2e, pytest.mark.anyio, pytest.mark.proves("P1")]

POSTS = r"/channels/\d+/messages$"
PIECES = [letter * 1500 for letter in "ABC"]
LONG = "\n".join(PIECES)


async def hold_post(deployment: DiscordDeployment, number: int, when: FaultTime) -> RequestFault:
    """Waits until that post is being made, counted from 1: it stands before Discord, or its answer does behind."""
    fault = deployment.discord.faults.hold("POST", POSTS, times=1)
    for _ in range(number - 1):
        await wait_until_reached(fault)
        passed, fault = fault, deployment.discord.faults.hold("POST", POSTS, times=1)
        passed.release()
    await wait_until_reached(fault)
    if when == "before":
        return fault
    passed, fault = fault, deployment.discord.faults.hold("POST", POSTS, times=1, when="after")
    passed.release()
    await wait_until_reached(fault)
    return fault


def is_reply_to(question: SimMessage, answer: SimMessage) -> bool:
    return answer.reference is not None and answer.reference.message_id == question.id


async def test_killed_before_the_model_answered(deployment: DiscordDeployment) -> None:
    deployment.configure()
    deployment.script(HangingAnswer())
    async with deployment.run() as first:
        question = deployment.ask(deployment.ana, "hello")
        await deployment.until(lambda: deployment.requests)
        await first.kill()
    deployment.script("Hello.")
    async with deployment.run():
        await deployment.until(deployment.said)
        assert await deployment.settle() == ["Hello."]
    assert len(deployment.requests) == 3
    assert is_reply_to(question, deployment.posts()[0])


async def test_killed_right_after_somebody_spoke(deployment: DiscordDeployment) -> None:
    deployment.configure()
    deployment.script("Hello.")
    async with deployment.run() as first:
        deployment.ask(deployment.ana, "hello")
        await first.kill()
    async with deployment.run():
        await deployment.until(deployment.said)
        assert await deployment.settle() == ["Hello."]


async def test_killed_between_a_tool_and_the_answer(deployment: DiscordDeployment) -> None:
    deployment.configure()
    note = ModelCall("append_note", {"name": "shopping", "text": "- milk"})
    deployment.script(ModelAnswer(calls=[note]), HangingAnswer())
    async with deployment.run() as first:
        deployment.ask(deployment.ana, "put milk on the list")
        await deployment.until(lambda: len(deployment.requests) == 2)
        await first.kill()
    deployment.script("Noted.")
    async with deployment.run():
        await deployment.until(deployment.said)
        assert await deployment.settle() == ["Noted."]
    [noted] = deployment.home.folder.glob("agents/ada/notes/rooms/*/shopping.md")
    assert noted.read_text() == "- milk\n"
    assert len(deployment.requests) == 4


@pytest.mark.parametrize(
    ("number", "when", "lands"),
    [
        pytest.param(1, "after", "at once", id="while the first of three pieces is posted and arrived"),
        pytest.param(
            1, "before", "while it is down", id="while the first is on its way and arrives before the restart"
        ),
        pytest.param(1, "before", "at the end", id="while the first is on its way and arrives after the restart"),
        pytest.param(2, "before", "at the end", id="between the first and the second"),
        pytest.param(3, "after", "at once", id="right after the last, before that was known"),
    ],
)
async def test_killed_while_three_pieces_are_posted(
    number: int,
    when: FaultTime,
    lands: Literal["at once", "while it is down", "at the end"],
    deployment: DiscordDeployment,
) -> None:
    deployment.configure()
    deployment.script(LONG)
    async with deployment.run() as first:
        question = deployment.ask(deployment.ana, "tell me everything")
        held = await hold_post(deployment, number, when)
        await first.kill()
    arrived = number if when == "after" else number - 1
    assert deployment.said() == PIECES[:arrived]
    if lands == "while it is down":
        held.release()
        await deployment.until(lambda: deployment.said() == PIECES[:number])
    async with deployment.run():
        await deployment.until(lambda: len(deployment.said()) >= len(PIECES))
        held.release()
        assert await deployment.settle() == PIECES
    assert len(deployment.requests) == 2
    assert [is_reply_to(question, post) for post in deployment.posts()[:3]] == [True, False, False]


async def test_killed_when_all_pieces_can_be_seen(deployment: DiscordDeployment) -> None:
    deployment.configure()
    deployment.script(LONG)
    async with deployment.run() as first:
        deployment.ask(deployment.ana, "tell me everything")
        await deployment.until(lambda: deployment.said() == PIECES)
        await first.kill()
    async with deployment.run():
        assert await deployment.settle() == PIECES
    assert len(deployment.requests) == 2


@pytest.mark.proves("V12")
@pytest.mark.parametrize("known", [True, False], ids=["which was noted", "which was not noted yet"])
async def test_killed_with_a_status_message_there(known: bool, deployment: DiscordDeployment) -> None:
    deployment.configure(preview=True)
    deployment.script(HangingAnswer())
    async with deployment.run() as first:
        deployment.ask(deployment.ana, "think about it")
        if known:
            await deployment.until(deployment.said)
            await deployment.until(lambda: deployment.rows("SELECT 1 FROM deliveries WHERE platform_id != ''"))
        else:
            await hold_post(deployment, 1, "after")
        await deployment.until(lambda: deployment.requests)
        await first.kill()
    [status] = deployment.posts()
    deployment.script(LONG)
    async with deployment.run():
        await deployment.until(lambda: deployment.said() == PIECES)
        assert await deployment.settle() == PIECES
    assert status not in deployment.posts()


@pytest.mark.proves("V12")
async def test_killed_while_the_status_message_gives_way_to_the_answer(deployment: DiscordDeployment) -> None:
    deployment.configure(preview=True)
    async with deployment.run() as first:
        answer = deployment.hold(LONG)
        deployment.ask(deployment.ana, "think about it")
        await deployment.until(deployment.said)
        removal = deployment.discord.faults.hold("DELETE", r"/messages/\d+$", times=1)
        answer.release()
        await wait_until_reached(removal)
        assert deployment.said()[1:] == PIECES
        await first.kill()
    async with deployment.run():
        await deployment.until(lambda: deployment.said() == PIECES)
        assert await deployment.settle() == PIECES
    assert len(deployment.requests) == 2


async def test_stopped_with_a_turn_under_way_it_answers_once_after_the_next_start(
    deployment: DiscordDeployment,
) -> None:
    deployment.configure()
    deployment.script(HangingAnswer())
    async with deployment.run() as first:
        deployment.ask(deployment.ana, "hello")
        await deployment.until(lambda: deployment.requests)
        stopped = await first.stop()
        assert stopped.code == 0, stopped.err
    assert not deployment.discord.connections
    deployment.script("Hello.")
    async with deployment.run() as second:
        await deployment.until(deployment.said)
        assert await deployment.settle() == ["Hello."]
        second.signal(signal.SIGTERM)
        assert (await second.finish()).code == 0
