"""Questions that agents leave for the owner: sent as a direct message, answered whenever, heard of where they asked."""

from __future__ import annotations

import json

import pytest
from anyio import to_thread

from denizen.testing.model_server import HangingAnswer, ModelAnswer, ModelCall
from tests.e2e.discord import DiscordDeployment
from tests.timing import HANG_LIMIT_S

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

ON = "tools: {questions: {enabled: true}}\n"
ASKS = ModelAnswer(calls=[ModelCall("ask_user", {"question": "Which colour, @everyone?"})])


@pytest.mark.proves("T-tool-ask-user")
async def test_a_question_goes_to_the_inbox_and_the_owner_and_the_agent_does_not_wait_for_the_answer(
    deployment: DiscordDeployment,
) -> None:
    deployment.configure(conduct=[f'owners: ["{deployment.ana.id}"]'], rest=ON)
    deployment.script(ASKS, "I have asked.", "Blue it is.")
    direct = deployment.world.open_dm(deployment.ana, deployment.ada.user)
    async with deployment.run():
        asked = deployment.ask(deployment.ben, "paint the shed")
        await deployment.until(lambda: "I have asked." in deployment.said())
        await deployment.until(lambda: deployment.posts(direct))
        [card] = deployment.posts(direct)
        assert "> Which colour, @\N{ZERO WIDTH SPACE}everyone?" in card.content
        assert "in a talk with Ben" in card.content
        listed = await to_thread.run_sync(lambda: deployment.home.do("questions", "list"))
        assert "Which colour" in listed.out
        opened = await deployment.press(deployment.ana, card, "Answer")
        assert opened.response.modal is not None
        await deployment.world.submit_modal(deployment.ana, opened, {"why": "blue"}, wait_s=HANG_LIMIT_S)
        await deployment.until(lambda: "Blue it is." in deployment.said())
        await deployment.until(lambda: "Answered by" in card.content)
        assert not card.body.components
        answer = next(each for each in deployment.posts() if each.content == "Blue it is.")
        assert answer.reference is not None
        assert answer.reference.message_id == asked.id
        told = str(deployment.requests[-1])
        assert "The owner answers a question of yours" in told
        assert "blue" in told
        assert len(deployment.posts(direct)) == 1


async def test_of_two_answers_to_a_question_the_first_counts_and_the_second_is_told(
    deployment: DiscordDeployment,
) -> None:
    deployment.configure(conduct=[f'owners: ["{deployment.ana.id}"]'], rest=ON)
    deployment.script(ASKS, "I have asked.", "Blue it is.")
    direct = deployment.world.open_dm(deployment.ana, deployment.ada.user)
    async with deployment.run():
        deployment.ask(deployment.ben, "paint the shed")
        await deployment.until(lambda: deployment.posts(direct))
        [card] = deployment.posts(direct)
        opened = await deployment.press(deployment.ana, card, "Answer")
        late = await deployment.press(deployment.ana, card, "Answer")
        await deployment.world.submit_modal(deployment.ana, opened, {"why": "blue"}, wait_s=HANG_LIMIT_S)
        await deployment.until(lambda: "Blue it is." in deployment.said())
        again = await deployment.world.submit_modal(deployment.ana, late, {"why": "red"}, wait_s=HANG_LIMIT_S)
        await deployment.until(lambda: again.response.messages)
        assert "answered already" in again.response.messages[0].content
        assert deployment.rows("SELECT answer FROM questions") == [("blue",)]


async def test_an_answer_that_was_given_while_nothing_ran_is_passed_on_once_by_the_next_processes(
    deployment: DiscordDeployment,
) -> None:
    deployment.configure(conduct=[f'owners: ["{deployment.ana.id}"]'], rest=ON)
    deployment.script(ASKS, "I have asked.")
    async with deployment.run() as first:
        deployment.ask(deployment.ben, "paint the shed")
        await deployment.until(lambda: "I have asked." in deployment.said())
        await first.kill()
    home = deployment.home
    [line] = (await to_thread.run_sync(lambda: home.do("questions", "list", "--json"))).out.splitlines()
    key = json.loads(line)["id"]
    done = await to_thread.run_sync(lambda: home.do("questions", "answer", key[:12], "blue"))
    assert done.code == 0, done.err
    deployment.script(HangingAnswer())
    asked = len(deployment.requests)
    async with deployment.run() as second:
        await deployment.until(lambda: len(deployment.requests) > asked)
        await second.kill()
    deployment.script("Blue it is.")
    async with deployment.run():
        await deployment.until(lambda: "Blue it is." in deployment.said())
        assert (await deployment.settle()).count("Blue it is.") == 1
    assert deployment.rows("SELECT status FROM questions") == [("delivered",)]
    assert deployment.rows("SELECT count(*) FROM turns") == [(3,)], "the question, the answer, and what settles it"
