"""Rooms that an account reads and may not post in: who hears of it, where, and how often."""

import pytest

from denizen.domain.attention import AccountPolicy, ReplyStyle, ThreadMode, TriggerPolicy
from denizen.domain.conversation import Place
from denizen.domain.errors import NotAllowed
from denizen.domain.room import Room, RoomKind
from denizen.engine.configuration.tool_policy import GatePolicy, ObserverPolicy
from denizen.ports.channel import ButtonPress
from tests.engine.platform_fixture import PlatformFixture, World, open_platform
from tests.memory_platform import START
from tests.rate_rows import count_rate_keys

pytestmark = pytest.mark.anyio

SIGN = ReplyStyle().reactions.failed
NO_REACTIONS = NotAllowed("no reactions")


def make_world() -> tuple[World, Room]:
    """A world in which nobody but people may post in #notices."""
    world = World()
    notices = world.platform.add_room("notices")
    world.platform.silent.add(notices.id)
    return world, notices


def alerting(room: Room) -> GatePolicy:
    return GatePolicy(observer=ObserverPolicy(alert_place=Place("discord", room.id)))


def signs_on(fixture: PlatformFixture, post_id: str) -> list[str]:
    return [emoji for _, emoji in fixture.world.platform.reactions.get(post_id, [])]


async def test_a_question_where_the_account_may_not_post_gets_a_sign_and_costs_nothing() -> None:
    world, notices = make_world()
    async with open_platform(world) as fixture:
        asked = world.platform.say(notices, "ana", "@ada hello?")
        assert await fixture.said() == []
        assert signs_on(fixture, asked.id) == [SIGN]
        assert not fixture.model.requests
        assert "post" not in fixture.ada.asked


async def test_where_the_account_may_not_react_either_the_asker_gets_one_direct_message() -> None:
    world, notices = make_world()
    async with open_platform(world) as fixture:
        fixture.ada.fail("react", NO_REACTIONS, times=3)
        for _ in range(2):
            world.platform.say(notices, "ana", "@ada hello?")
            await fixture.settled()
        world.platform.say(notices, "bob", "@ada hello?")
        words = "I may not write in #notices of Harbour, so I cannot answer you there."
        assert await fixture.said() == [words, words]
        direct = [world.platform.open_direct(person, "bot-ada").place for person in ("ana", "bob")]
        assert [sent.place for sent in fixture.ada.sent] == direct


@pytest.mark.proves("X-rate-limit")
async def test_owners_are_told_of_a_blocked_room_once_a_day_in_the_alert_channel() -> None:
    world, notices = make_world()
    owners = world.platform.add_room("owners")
    async with open_platform(world, gate=alerting(owners)) as fixture:
        for _ in range(3):
            world.platform.say(notices, "ana", "@ada hello?")
        await fixture.settled()
        world.clock.advance(86_400.0)
        world.platform.say(notices, "ana", "@ada hello?")
        told = [sent for sent in await fixture.sent() if sent.place.channel == owners.id]
        assert count_rate_keys(fixture.store) == 1
    assert len(told) == 2
    assert told[0].content.text.startswith("I am asked in #notices of Harbour, but may not write there.")


async def test_threads_with_words_of_a_member_as_names_neither_mislead_nor_flood_the_owners() -> None:
    world, notices = make_world()
    owners = world.platform.add_room("owners")
    async with open_platform(world, gate=alerting(owners)) as fixture:
        for number in range(3):
            name = f"[Approve it here](https://evil.example/{number})"
            thread = world.platform.add_room(name, RoomKind.THREAD, parent=notices)
            world.platform.silent.add(thread.id)
            world.platform.say(thread, "ana", "@ada hello?")
        told = [sent.content.text for sent in await fixture.sent() if sent.place.channel == owners.id]
    assert len(told) == 1
    assert told[0].startswith("I am asked in #notices of Harbour,") and "evil" not in told[0]


async def test_a_room_whose_name_reads_like_words_to_owners_is_told_by_its_id() -> None:
    world = World()
    room = world.platform.add_room("owners: press https://evil.example")
    world.platform.silent.add(room.id)
    owners = world.platform.add_room("owners")
    async with open_platform(world, gate=alerting(owners)) as fixture:
        world.platform.say(room, "ana", "@ada hello?")
        [told] = [sent.content.text for sent in await fixture.sent() if sent.place.channel == owners.id]
    assert told.startswith(f"I am asked in the channel {room.id} of Harbour,")


async def test_nobody_but_the_owners_hears_of_messages_that_were_not_addressed_to_the_agent() -> None:
    world, notices = make_world()
    owners = world.platform.add_room("owners")
    world.platform.add_person("rex", "Rex", is_bot=True)
    listening = AccountPolicy(triggers=TriggerPolicy(always_channels=frozenset({notices.id})))
    async with open_platform(world, gate=alerting(owners), account_policy=listening) as fixture:
        unasked = world.platform.say(notices, "ana", "nice weather")
        by_bot = world.platform.say(notices, "rex", "@ada hello?")
        assert [sent.place.channel for sent in await fixture.sent()] == [owners.id]
        assert signs_on(fixture, unasked.id) == signs_on(fixture, by_bot.id) == []


async def test_who_presses_a_button_where_the_account_may_not_post_any_more_is_told() -> None:
    world, notices = make_world()
    async with open_platform(world) as fixture:
        press = ButtonPress("9", "1", "Yes", notices, "bob", "Bob", frozenset(), START)
        with pytest.raises(NotAllowed, match="may not write here"):
            await fixture.listener.on_press(press)
        assert await fixture.said() == []
        assert not fixture.model.requests


async def test_an_account_that_may_post_in_threads_alone_answers_in_a_thread() -> None:
    world, notices = make_world()
    in_threads = AccountPolicy(style=ReplyStyle(preview=False), triggers=TriggerPolicy(threads=ThreadMode.OPEN))
    async with open_platform(world, account_policy=in_threads) as fixture:
        asked = world.platform.say(notices, "ana", "@ada hello?")
        assert await fixture.said() == ["Hello."]
        assert world.platform.get_room(asked.id).kind is RoomKind.THREAD


async def test_questions_that_were_missed_long_ago_in_a_blocked_room_reach_the_owners_only() -> None:
    world, notices = make_world()
    owners = world.platform.add_room("owners")
    async with open_platform(world) as fixture:
        await fixture.settled()
    missed = world.platform.say(notices, "ana", "@ada hello?")
    world.clock.advance(2 * 3600.0)
    async with open_platform(world, gate=alerting(owners)) as fixture:
        assert [sent.place.channel for sent in await fixture.sent()] == [owners.id]
        assert signs_on(fixture, missed.id) == []
        assert not fixture.model.requests
