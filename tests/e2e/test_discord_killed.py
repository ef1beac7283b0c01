"""`denizen run` is killed with `kill -9` in the middle of answering on Discord: after the restart there is one answer,
whole and in order, and nothing else (promise 1).
"""

from __future__ import annotations

import signal
from typing import Literal

import anyio
import pytest

from denizen.testing.discord import SimMessage
from denizen.testing.discord.rest.request_log import FaultTime, RequestFault
from denizen.testing.model_server import HangingAnswer, ModelAnswer, ModelCall
from tests.e2e.discord import Harbour
from tests.timing import HANG_LIMIT_S

pytestmark = [pytest.mark.e2e, pytest.mark.anyio, pytest.mark.proves("P1")]

POSTS = r"/channels/\d+/messages$"
PIECES = [letter * 1500 for letter in "ABC"]
LONG = "\n".join(PIECES)


async def reached(fault: RequestFault) -> None:
    with anyio.fail_after(HANG_LIMIT_S):
        await fault.wait_reached()


async def hold_post(harbour: Harbour, number: int, when: FaultTime) -> RequestFault:
    """Waits until that post is being made, counted from 1: it stands before Discord, or its answer does behind."""
    fault = harbour.discord.faults.hold("POST", POSTS, times=1)
    for _ in range(number - 1):
        await reached(fault)
        passed, fault = fault, harbour.discord.faults.hold("POST", POSTS, times=1)
        passed.release()
    await reached(fault)
    if when == "before":
        return fault
    passed, fault = fault, harbour.discord.faults.hold("POST", POSTS, times=1, when="after")
    passed.release()
    await reached(fault)
    return fault


def is_reply_to(question: SimMessage, answer: SimMessage) -> bool:
    return answer.reference is not None and answer.reference.message_id == question.id


async def test_killed_before_the_model_answered(harbour: Harbour) -> None:
    harbour.configure()
    harbour.script(HangingAnswer())
    async with harbour.run() as first:
        question = harbour.ask(harbour.ana, "hello")
        await harbour.until(lambda: harbour.requests)
        await first.kill()
    harbour.script("Hello.")
    async with harbour.run():
        await harbour.until(harbour.said)
        assert await harbour.settle() == ["Hello."]
    assert len(harbour.requests) == 3
    assert is_reply_to(question, harbour.posts()[0])


async def test_killed_right_after_somebody_spoke(harbour: Harbour) -> None:
    harbour.configure()
    harbour.script("Hello.")
    async with harbour.run() as first:
        harbour.ask(harbour.ana, "hello")
        await first.kill()
    async with harbour.run():
        await harbour.until(harbour.said)
        assert await harbour.settle() == ["Hello."]


async def test_killed_between_a_tool_and_the_answer(harbour: Harbour) -> None:
    harbour.configure()
    note = ModelCall("append_note", {"name": "shopping", "text": "- milk"})
    harbour.script(ModelAnswer(calls=[note]), HangingAnswer())
    async with harbour.run() as first:
        harbour.ask(harbour.ana, "put milk on the list")
        await harbour.until(lambda: len(harbour.requests) == 2)
        await first.kill()
    harbour.script("Noted.")
    async with harbour.run():
        await harbour.until(harbour.said)
        assert await harbour.settle() == ["Noted."]
    [noted] = harbour.home.folder.glob("agents/ada/notes/rooms/*/shopping.md")
    assert noted.read_text() == "- milk\n"
    assert len(harbour.requests) == 4


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
    number: int, when: FaultTime, lands: Literal["at once", "while it is down", "at the end"], harbour: Harbour
) -> None:
    harbour.configure()
    harbour.script(LONG)
    async with harbour.run() as first:
        question = harbour.ask(harbour.ana, "tell me everything")
        held = await hold_post(harbour, number, when)
        await first.kill()
    arrived = number if when == "after" else number - 1
    assert harbour.said() == PIECES[:arrived]
    if lands == "while it is down":
        held.release()
        await harbour.until(lambda: harbour.said() == PIECES[:number])
    async with harbour.run():
        await harbour.until(lambda: len(harbour.said()) >= len(PIECES))
        held.release()
        assert await harbour.settle() == PIECES
    assert len(harbour.requests) == 2
    assert [is_reply_to(question, post) for post in harbour.posts()[:3]] == [True, False, False]


async def test_killed_when_all_pieces_can_be_seen(harbour: Harbour) -> None:
    harbour.configure()
    harbour.script(LONG)
    async with harbour.run() as first:
        harbour.ask(harbour.ana, "tell me everything")
        await harbour.until(lambda: harbour.said() == PIECES)
        await first.kill()
    async with harbour.run():
        assert await harbour.settle() == PIECES
    assert len(harbour.requests) == 2


@pytest.mark.proves("V12")
@pytest.mark.parametrize("known", [True, False], ids=["which was noted", "which was not noted yet"])
async def test_killed_with_a_status_message_there(known: bool, harbour: Harbour) -> None:
    harbour.configure(preview=True)
    harbour.script(HangingAnswer())
    async with harbour.run() as first:
        harbour.ask(harbour.ana, "think about it")
        await harbour.until(lambda: harbour.requests)
        if known:
            await harbour.until(harbour.said)
            await harbour.until(lambda: harbour.rows("SELECT 1 FROM deliveries WHERE platform_id != ''"))
        else:
            await hold_post(harbour, 1, "after")
        await first.kill()
    [status] = harbour.posts()
    harbour.script(LONG)
    async with harbour.run():
        await harbour.until(lambda: len(harbour.said()) >= len(PIECES))
        assert await harbour.settle() == PIECES
    assert harbour.posts()[0] is status


@pytest.mark.proves("V12")
async def test_killed_while_the_status_message_becomes_the_answer(harbour: Harbour) -> None:
    harbour.configure(preview=True)
    async with harbour.run() as first:
        answer = harbour.hold(LONG)
        harbour.ask(harbour.ana, "think about it")
        await harbour.until(harbour.said)
        edit = harbour.discord.faults.hold("PATCH", when="after", times=1)
        answer.release()
        await reached(edit)
        await harbour.until(lambda: harbour.said()[:1] == PIECES[:1])
        await first.kill()
    async with harbour.run():
        await harbour.until(lambda: len(harbour.said()) >= len(PIECES))
        assert await harbour.settle() == PIECES
    assert len(harbour.requests) == 2


async def test_stopped_with_a_turn_under_way_it_answers_once_after_the_next_start(harbour: Harbour) -> None:
    harbour.configure()
    harbour.script(HangingAnswer())
    async with harbour.run() as first:
        harbour.ask(harbour.ana, "hello")
        await harbour.until(lambda: harbour.requests)
        stopped = await first.stop()
        assert stopped.code == 0, stopped.err
    assert not harbour.discord.connections
    harbour.script("Hello.")
    async with harbour.run() as second:
        await harbour.until(harbour.said)
        assert await harbour.settle() == ["Hello."]
        second.signal(signal.SIGTERM)
        assert (await second.finish()).code == 0
