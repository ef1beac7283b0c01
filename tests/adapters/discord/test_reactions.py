"""Reactions on messages, as an account hears them from a simulated Discord."""

from __future__ import annotations

import pytest

from denizen.domain.room import RoomKind
from tests.adapters.discord.listening import Harbour, running

pytestmark = pytest.mark.anyio


async def test_a_reaction_on_a_message_from_before_the_login_is_heard_with_who_put_it(harbour: Harbour) -> None:
    crew = harbour.guild.add_role("crew")
    harbour.guild.set_roles(harbour.ben, [crew])
    early = harbour.say("early")
    async with running(harbour) as (_, heard):
        harbour.world.react(harbour.ben, early, "📚")
        harbour.world.unreact(harbour.ben, early, "📚")
        await heard.until(lambda: len(heard.reactions) == 2)
    put, taken = heard.reactions
    assert heard.log[1:] == ["reaction 📚", "unreaction 📚"]
    assert (put.emoji, put.message_id, put.is_on, put.is_bot) == ("📚", str(early.id), True, False)
    assert (put.user_id, put.user_name, put.roles) == (str(harbour.ben.id), "Ben", {str(crew.id)})
    assert (put.room.id, put.room.kind, put.room.guild) == (
        str(harbour.general.id),
        RoomKind.CHANNEL,
        str(harbour.guild.id),
    )
    assert (taken.user_id, taken.is_on, taken.roles) == (str(harbour.ben.id), False, frozenset())


async def test_a_reaction_in_an_archived_thread_is_heard_with_its_channel(harbour: Harbour) -> None:
    thread = harbour.world.open_thread(harbour.ana, harbour.say("begin"), "Old talk")
    said = harbour.say("the answer", thread)
    async with running(harbour) as (_, heard):
        harbour.world.react(harbour.ana, said, "📚")
        await heard.until(lambda: heard.reactions)
    assert heard.reactions[0].room.place.thread == str(thread.id)
    assert heard.reactions[0].room.parent == str(harbour.general.id)


async def test_what_the_account_puts_on_messages_itself_is_not_heard(harbour: Harbour) -> None:
    message = harbour.say("hello")
    async with running(harbour) as (account, heard):
        await account.react(harbour.place(), str(message.id), "✅")
        harbour.world.react(harbour.ana, message, "✅")
        await heard.until(lambda: heard.reactions)
    assert [each.user_id for each in heard.reactions] == [str(harbour.ana.id)]


async def test_one_of_the_servers_own_emoji_is_named_as_in_a_message(harbour: Harbour) -> None:
    learn = harbour.guild.add_emoji("learn")
    message = harbour.say("hello")
    async with running(harbour) as (_, heard):
        harbour.world.react(harbour.ana, message, f"<:learn:{learn.id}>")
        await heard.until(lambda: heard.reactions)
    assert heard.reactions[0].emoji == f"<:learn:{learn.id}>"
