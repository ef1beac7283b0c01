"""What is said on Discord while `denizen run` is down or not connected is answered when it is back, once."""

from __future__ import annotations

from datetime import timedelta

import pytest

from denizen.testing.discord.gateway.sessions import GatewaySession
from denizen.testing.model_server import HangingAnswer
from tests.clock import OffsetClock
from tests.e2e.discord import DiscordDeployment, open_deployment
from tests.e2e.home import Home
from tests.e2e.provider import Provider

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]


async def run_once(deployment: DiscordDeployment) -> None:
    """A process was there before: rooms are read from then on."""
    async with deployment.run():
        pass


# --- down ------------------------------------------------------------------------------------------------------------


@pytest.mark.proves("P1", "C2")
async def test_what_was_asked_while_it_was_down_is_answered_once_wherever_it_was(deployment: DiscordDeployment) -> None:
    deployment.configure()
    direct = deployment.world.open_dm(deployment.ben, deployment.ada.user)
    thread = deployment.world.open_thread(deployment.ana, deployment.general, "plans")
    async with deployment.run():
        deployment.script("Hello.", "Hello.")
        deployment.world.say(deployment.ben, direct, "hello")
        deployment.ask(deployment.ana, "hello", thread)
        await deployment.until(lambda: deployment.said(direct) + deployment.said(thread) == ["Hello."] * 2)
    deployment.script(*["Sorry for the wait."] * 4)
    questions = [deployment.ask(deployment.ana, "one"), deployment.ask(deployment.ben, "two")]
    deployment.world.say(deployment.ben, deployment.general, "not for you")
    deployment.world.say(deployment.ben, direct, "three")
    deployment.world.say(deployment.ben, thread, "four")
    async with deployment.run():
        await deployment.until(lambda: len(deployment.said(direct) + deployment.said(thread)) == 4)
        assert await deployment.settle() == ["Sorry for the wait."] * 2
        assert await deployment.settle(thread) == ["Hello.", "Sorry for the wait."]
    assert deployment.said(direct) == ["Hello.", "Sorry for the wait."]
    assert [post.reference.message_id for post in deployment.posts()[:2] if post.reference] == [q.id for q in questions]
    assert len(deployment.requests) == 8


@pytest.mark.proves("P1")
async def test_a_mention_in_a_channel_or_thread_that_was_made_while_it_was_down_is_answered(
    deployment: DiscordDeployment,
) -> None:
    deployment.configure()
    async with deployment.run():
        deployment.script("Hello.")
        deployment.ask(deployment.ana, "hello")
        await deployment.until(deployment.said)
    deployment.script("Here I am.", "Here I am.")
    channel = deployment.guild.add_channel("new")
    thread = deployment.world.open_thread(deployment.ana, deployment.general, "plans")
    deployment.ask(deployment.ana, "are you here?", channel)
    deployment.ask(deployment.ben, "and here?", thread)
    async with deployment.run():
        await deployment.until(lambda: deployment.said(channel) + deployment.said(thread) == ["Here I am."] * 2)


@pytest.mark.proves("P1", "C2", "C6")
async def test_more_than_a_thousand_missed_messages_are_read_in_order_and_mirrored(
    deployment: DiscordDeployment,
) -> None:
    deployment.configure()
    deployment.world.say(deployment.ben, deployment.general, "before")
    await run_once(deployment)
    chatter = [f"chatter {number}" for number in range(1100)]
    for text in chatter:
        deployment.world.say(deployment.ben, deployment.general, text)
    questions = [deployment.ask(deployment.ana, f"question {number}") for number in range(3)]
    deployment.script("One.", "Two.", "Three.")
    async with deployment.run():
        await deployment.until(lambda: deployment.said() == ["One.", "Two.", "Three."])
        assert await deployment.settle() == ["One.", "Two.", "Three."]
        kept = deployment.rows("SELECT text FROM posts WHERE text LIKE 'chatter %' ORDER BY id")
    assert [text for (text,) in kept] == chatter
    asked = deployment.discord.requests_to("GET", f"/channels/{deployment.general.id}/messages")
    assert {each.query["limit"] for each in asked if "after" in each.query} == {"100"}
    answered = [post.reference.message_id for post in deployment.posts()[:3] if post.reference]
    assert answered == [question.id for question in questions]


@pytest.mark.proves("P1")
async def test_questions_older_than_the_limit_get_one_reply_together_and_newer_ones_their_own(
    home: Home, provider: Provider
) -> None:
    clock = OffsetClock(timedelta(hours=-3))
    async with open_deployment(home, provider, clock=clock) as deployment:
        deployment.configure(conduct=["missed_limit_minutes: 30"])
        deployment.world.say(deployment.ben, deployment.general, "before")
        await run_once(deployment)
        old = [deployment.ask(deployment.ana, f"old {number}") for number in range(3)]
        deployment.world.say(deployment.ben, deployment.general, "not for you")
        clock.offset = timedelta()
        new = deployment.ask(deployment.ben, "new one")
        deployment.script("Sorry.", "Sorry.")
        async with deployment.run():
            await deployment.until(lambda: len(deployment.said()) == 2)
            assert await deployment.settle() == ["Sorry.", "Sorry."]
        asked = {post.reference.message_id for post in deployment.posts()[:2] if post.reference}
        assert asked == {old[-1].id, new.id}
        together = [r.body["messages"] for r in deployment.requests if "- Ana: old 0" in str(r.body["messages"][-1])]
        assert len(together) == 1
        assert all(f"old {number}" in str(together[0][-1]) for number in range(3))


# --- the gateway -----------------------------------------------------------------------------------------------------


def session(deployment: DiscordDeployment) -> GatewaySession:
    return deployment.discord.get_session("Ada")


@pytest.mark.proves("P1")
async def test_a_dropped_connection_is_resumed_and_nothing_is_lost_or_heard_twice(
    deployment: DiscordDeployment,
) -> None:
    deployment.configure()
    async with deployment.run():
        first = session(deployment)
        deployment.script("One.", "Two.")
        deployment.ask(deployment.ana, "one")
        await deployment.until(deployment.said)
        deployment.discord.faults.cut_gateway()
        await deployment.until(lambda: not deployment.discord.connections)
        deployment.ask(deployment.ana, "two")
        await deployment.until(lambda: deployment.said() == ["One.", "Two."])
        assert await deployment.settle() == ["One.", "Two."]
        assert session(deployment) is first
    assert len(deployment.requests) == 3


@pytest.mark.proves("P1", "C2")
async def test_after_an_invalid_session_what_was_said_meanwhile_is_caught_up_with(
    deployment: DiscordDeployment,
) -> None:
    deployment.configure()
    async with deployment.run() as denizen:
        deployment.script("One.", "Two.")
        deployment.ask(deployment.ana, "one")
        await deployment.until(deployment.said)
        deployment.discord.faults.invalidate_sessions()
        await deployment.until(lambda: not deployment.discord.sessions.all or not deployment.discord.connections)
        deployment.ask(deployment.ana, "two")
        await deployment.until(lambda: deployment.said() == ["One.", "Two."])
        assert await deployment.settle() == ["One.", "Two."]
        assert len(denizen.lines("account ready")) == 2
    assert len(deployment.requests) == 3


@pytest.mark.proves("P1")
async def test_events_that_come_twice_are_answered_once(deployment: DiscordDeployment) -> None:
    deployment.configure()
    async with deployment.run():
        deployment.script("One.")
        deployment.discord.faults.duplicate_events("MESSAGE_CREATE", 4)
        deployment.ask(deployment.ana, "one")
        await deployment.until(deployment.said)
        assert await deployment.settle() == ["One."]
    assert len(deployment.requests) == 2


# --- two processes ---------------------------------------------------------------------------------------------------


@pytest.mark.proves("P1")
async def test_two_processes_on_one_home_give_one_reply(deployment: DiscordDeployment) -> None:
    deployment.configure()
    async with deployment.run(), deployment.run():
        assert len(deployment.discord.connections) == 2
        deployment.script("One.")
        deployment.ask(deployment.ana, "one")
        await deployment.until(deployment.said)
        assert await deployment.settle() == ["One."]
    assert len(deployment.requests) == 2


@pytest.mark.proves("P1")
async def test_of_two_processes_on_one_home_one_takes_up_what_the_other_left_when_it_was_killed(
    deployment: DiscordDeployment,
) -> None:
    deployment.configure()
    async with deployment.run() as first:
        deployment.script(HangingAnswer(), "One.")
        deployment.ask(deployment.ana, "one")
        await deployment.until(lambda: deployment.requests)
        async with deployment.run():
            assert deployment.said() == []
            await first.kill()
            await deployment.until(deployment.said)
            assert await deployment.settle() == ["One."]
    assert len(deployment.requests) == 3


@pytest.mark.proves("P1")
async def test_two_processes_on_two_homes_with_one_token_give_one_reply(deployment: DiscordDeployment) -> None:
    other = deployment.make_home("other")
    pieces = [letter * 1500 for letter in "ABC"]
    for home in (deployment.home, other):
        deployment.configure(home=home)
    async with deployment.run(), deployment.run(other):
        deployment.script(*["\n".join(pieces)] * 2)
        deployment.ask(deployment.ana, "one")
        await deployment.until(lambda: len(deployment.requests) == 2)
        delivered = "SELECT 1 FROM deliveries WHERE kind = 'answer' AND state = 'sent'"
        await deployment.until(
            lambda: all(len(deployment.rows(delivered, home)) == 3 for home in (deployment.home, other))
        )
    assert deployment.said() == pieces
