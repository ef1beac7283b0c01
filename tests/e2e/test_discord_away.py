"""What is said on Discord while `denizen run` is down or not connected is answered when it is back, once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from denizen.domain.clock import SystemClock
from denizen.testing.discord.gateway.sessions import GatewaySession
from denizen.testing.model_server import HangingAnswer
from tests.e2e.discord import Harbour, open_harbour
from tests.e2e.home import Home
from tests.e2e.provider import Provider

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]


class MovedClock(SystemClock):
    """The machine's clock, set back or forward."""

    def __init__(self, moved: timedelta) -> None:
        self.moved = moved

    def now(self) -> datetime:
        return datetime.now(UTC) + self.moved


async def live_once(harbour: Harbour) -> None:
    """A process was there before: rooms are read from then on."""
    async with harbour.run():
        pass


# --- down ------------------------------------------------------------------------------------------------------------


@pytest.mark.proves("P1", "C2")
async def test_what_was_asked_while_it_was_down_is_answered_once_wherever_it_was(harbour: Harbour) -> None:
    harbour.configure()
    direct = harbour.world.open_dm(harbour.ben, harbour.ada.user)
    thread = harbour.world.open_thread(harbour.ana, harbour.general, "plans")
    async with harbour.run():
        harbour.script("Hello.", "Hello.")
        harbour.world.say(harbour.ben, direct, "hello")
        harbour.ask(harbour.ana, "hello", thread)
        await harbour.until(lambda: harbour.said(direct) + harbour.said(thread) == ["Hello."] * 2)
    harbour.script(*["Sorry for the wait."] * 4)
    questions = [harbour.ask(harbour.ana, "one"), harbour.ask(harbour.ben, "two")]
    harbour.world.say(harbour.ben, harbour.general, "not for you")
    harbour.world.say(harbour.ben, direct, "three")
    harbour.world.say(harbour.ben, thread, "four")
    async with harbour.run():
        await harbour.until(lambda: len(harbour.said(direct) + harbour.said(thread)) == 4)
        assert await harbour.settle() == ["Sorry for the wait."] * 2
        assert await harbour.settle(thread) == ["Hello.", "Sorry for the wait."]
    assert harbour.said(direct) == ["Hello.", "Sorry for the wait."]
    assert [post.reference.message_id for post in harbour.posts()[:2] if post.reference] == [q.id for q in questions]
    assert len(harbour.requests) == 8


@pytest.mark.proves("P1")
async def test_a_mention_in_a_channel_or_thread_that_was_made_while_it_was_down_is_answered(harbour: Harbour) -> None:
    harbour.configure()
    async with harbour.run():
        harbour.script("Hello.")
        harbour.ask(harbour.ana, "hello")
        await harbour.until(harbour.said)
    harbour.script("Here I am.", "Here I am.")
    channel = harbour.guild.add_channel("new")
    thread = harbour.world.open_thread(harbour.ana, harbour.general, "plans")
    harbour.ask(harbour.ana, "are you here?", channel)
    harbour.ask(harbour.ben, "and here?", thread)
    async with harbour.run():
        await harbour.until(lambda: harbour.said(channel) + harbour.said(thread) == ["Here I am."] * 2)


@pytest.mark.proves("P1", "C2")
async def test_more_than_a_thousand_missed_messages_are_read_in_order_and_mirrored(harbour: Harbour) -> None:
    harbour.configure()
    harbour.world.say(harbour.ben, harbour.general, "before")
    await live_once(harbour)
    chatter = [f"chatter {number}" for number in range(1100)]
    for text in chatter:
        harbour.world.say(harbour.ben, harbour.general, text)
    questions = [harbour.ask(harbour.ana, f"question {number}") for number in range(3)]
    harbour.script("One.", "Two.", "Three.")
    async with harbour.run():
        await harbour.until(lambda: harbour.said() == ["One.", "Two.", "Three."])
        assert await harbour.settle() == ["One.", "Two.", "Three."]
        kept = harbour.rows("SELECT text FROM posts WHERE text LIKE 'chatter %' ORDER BY id")
    assert [text for (text,) in kept] == chatter
    asked = [post.reference.message_id for post in harbour.posts()[:3] if post.reference]
    assert asked == [question.id for question in questions]


@pytest.mark.proves("P1")
async def test_questions_older_than_the_limit_get_one_reply_together_and_newer_ones_their_own(
    home: Home, provider: Provider
) -> None:
    clock = MovedClock(timedelta(hours=-3))
    async with open_harbour(home, provider, clock=clock) as harbour:
        harbour.configure(conduct=["missed_limit_minutes: 30"])
        harbour.world.say(harbour.ben, harbour.general, "before")
        await live_once(harbour)
        old = [harbour.ask(harbour.ana, f"old {number}") for number in range(3)]
        harbour.world.say(harbour.ben, harbour.general, "not for you")
        clock.moved = timedelta()
        new = harbour.ask(harbour.ben, "new one")
        harbour.script("Sorry.", "Sorry.")
        async with harbour.run():
            await harbour.until(lambda: len(harbour.said()) == 2)
            assert await harbour.settle() == ["Sorry.", "Sorry."]
        asked = {post.reference.message_id for post in harbour.posts()[:2] if post.reference}
        assert asked == {old[-1].id, new.id}
        together = [r.body["messages"] for r in harbour.requests if "- Ana: old 0" in str(r.body["messages"][-1])]
        assert len(together) == 1
        assert all(f"old {number}" in str(together[0][-1]) for number in range(3))


# --- the gateway -----------------------------------------------------------------------------------------------------


def session(harbour: Harbour) -> GatewaySession:
    return harbour.discord.get_session("Ada")


@pytest.mark.proves("P1")
async def test_a_dropped_connection_is_resumed_and_nothing_is_lost_or_heard_twice(harbour: Harbour) -> None:
    harbour.configure()
    async with harbour.run():
        first = session(harbour)
        harbour.script("One.", "Two.")
        harbour.ask(harbour.ana, "one")
        await harbour.until(harbour.said)
        harbour.discord.faults.cut_gateway()
        await harbour.until(lambda: not harbour.discord.connections)
        harbour.ask(harbour.ana, "two")
        await harbour.until(lambda: harbour.said() == ["One.", "Two."])
        assert await harbour.settle() == ["One.", "Two."]
        assert session(harbour) is first
    assert len(harbour.requests) == 3


@pytest.mark.proves("P1", "C2")
async def test_after_an_invalid_session_what_was_said_meanwhile_is_caught_up_with(harbour: Harbour) -> None:
    harbour.configure()
    async with harbour.run() as denizen:
        harbour.script("One.", "Two.")
        harbour.ask(harbour.ana, "one")
        await harbour.until(harbour.said)
        harbour.discord.faults.invalidate_sessions()
        await harbour.until(lambda: not harbour.discord.sessions.all or not harbour.discord.connections)
        harbour.ask(harbour.ana, "two")
        await harbour.until(lambda: harbour.said() == ["One.", "Two."])
        assert await harbour.settle() == ["One.", "Two."]
        assert len(denizen.lines("account ready")) == 2
    assert len(harbour.requests) == 3


@pytest.mark.proves("P1")
async def test_events_that_come_twice_are_answered_once(harbour: Harbour) -> None:
    harbour.configure()
    async with harbour.run():
        harbour.script("One.")
        harbour.discord.faults.duplicate_events("MESSAGE_CREATE", 4)
        harbour.ask(harbour.ana, "one")
        await harbour.until(harbour.said)
        assert await harbour.settle() == ["One."]
    assert len(harbour.requests) == 2


# --- two processes ---------------------------------------------------------------------------------------------------


@pytest.mark.proves("P1")
async def test_two_processes_on_one_home_give_one_reply(harbour: Harbour) -> None:
    harbour.configure()
    async with harbour.run(), harbour.run():
        assert len(harbour.discord.connections) == 2
        harbour.script("One.")
        harbour.ask(harbour.ana, "one")
        await harbour.until(harbour.said)
        assert await harbour.settle() == ["One."]
    assert len(harbour.requests) == 2


@pytest.mark.proves("P1")
async def test_of_two_processes_on_one_home_one_takes_up_what_the_other_left_when_it_was_killed(
    harbour: Harbour,
) -> None:
    harbour.configure()
    async with harbour.run() as first:
        harbour.script(HangingAnswer(), "One.")
        harbour.ask(harbour.ana, "one")
        await harbour.until(lambda: harbour.requests)
        async with harbour.run():
            assert harbour.said() == []
            await first.kill()
            await harbour.until(harbour.said)
            assert await harbour.settle() == ["One."]
    assert len(harbour.requests) == 3


@pytest.mark.proves("P1")
async def test_two_processes_on_two_homes_with_one_token_give_one_reply(harbour: Harbour) -> None:
    other = harbour.make_home("other")
    pieces = [letter * 1500 for letter in "ABC"]
    for home in (harbour.home, other):
        harbour.configure(home=home)
    async with harbour.run(), harbour.run(other):
        harbour.script(*["\n".join(pieces)] * 2)
        harbour.ask(harbour.ana, "one")
        await harbour.until(lambda: len(harbour.requests) == 2)
        delivered = "SELECT 1 FROM deliveries WHERE kind = 'answer' AND state = 'sent'"
        await harbour.until(lambda: all(len(harbour.rows(delivered, home)) == 3 for home in (harbour.home, other)))
    assert harbour.said() == pieces
