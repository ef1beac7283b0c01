"""Reactions on messages, as an account hears them from a simulated Discord."""

from __future__ import annotations

import pytest

from denizen.domain.room import RoomKind
from tests.adapters.discord.account_fixture import AccountFixture, running

pytestmark = pytest.mark.anyio


async def test_a_reaction_on_a_message_from_before_the_login_is_heard_with_who_put_it(sim: AccountFixture) -> None:
    crew = sim.guild.add_role("crew")
    sim.guild.set_roles(sim.ben, [crew])
    early = sim.say("early")
    async with running(sim) as (_, heard):
        sim.world.react(sim.ben, early, "📚")
        sim.world.unreact(sim.ben, early, "📚")
        await heard.until(lambda: len(heard.reactions) == 2)
    put, taken = heard.reactions
    assert heard.log[1:] == ["reaction 📚", "unreaction 📚"]
    assert (put.emoji, put.message_id, put.is_on, put.is_bot) == ("📚", str(early.id), True, False)
    assert (put.user_id, put.user_name, put.roles) == (str(sim.ben.id), "Ben", {str(crew.id)})
    assert (put.room.id, put.room.kind, put.room.guild) == (str(sim.general.id), RoomKind.CHANNEL, str(sim.guild.id))
    assert (taken.user_id, taken.is_on, taken.roles) == (str(sim.ben.id), False, frozenset())


async def test_a_reaction_in_an_archived_thread_is_heard_with_its_channel(sim: AccountFixture) -> None:
    thread = sim.world.open_thread(sim.ana, sim.say("begin"), "Old talk")
    said = sim.say("the answer", thread)
    async with running(sim) as (_, heard):
        sim.world.react(sim.ana, said, "📚")
        await heard.until(lambda: heard.reactions)
    assert heard.reactions[0].room.place.thread == str(thread.id)
    assert heard.reactions[0].room.parent == str(sim.general.id)


async def test_what_the_account_puts_on_messages_itself_is_not_heard(sim: AccountFixture) -> None:
    message = sim.say("hello")
    async with running(sim) as (account, heard):
        await account.react(sim.place(), str(message.id), "✅")
        sim.world.react(sim.ana, message, "✅")
        await heard.until(lambda: heard.reactions)
    assert [each.user_id for each in heard.reactions] == [str(sim.ana.id)]


async def test_one_of_the_servers_own_emoji_is_named_as_in_a_message(sim: AccountFixture) -> None:
    learn = sim.guild.add_emoji("learn")
    message = sim.say("hello")
    async with running(sim) as (_, heard):
        sim.world.react(sim.ana, message, f"<:learn:{learn.id}>")
        await heard.until(lambda: heard.reactions)
    assert heard.reactions[0].emoji == f"<:learn:{learn.id}>"
