"""Rooms, posts and arrivals out of what discord.py knows, and reading a room's past page by page."""

from __future__ import annotations

from typing import Any

import discord
import pytest

from denizen.adapters.discord.messages.conversion import (
    list_arrivals,
    list_posts,
    list_role_ids,
    to_incoming_message,
    to_post,
    to_room,
)
from denizen.adapters.documents.pdf import read_pdf
from denizen.domain.errors import InvalidInput, NotFound
from denizen.domain.room import Attachment, RoomKind
from denizen.testing.discord import DiscordPermission, file
from tests.adapters.discord.client_fixture import open_client

pytestmark = pytest.mark.anyio


async def test_every_kind_of_channel_is_a_room():
    async with open_client() as at:
        voice = at.guild.add_channel("cabin", kind="voice")
        news = at.guild.add_channel("news", kind="announcement")
        forum = at.guild.add_channel("questions", kind="forum")
        post = at.world.open_thread(at.ana, forum, "How deep?", text="How deep is it?")
        private = at.world.open_thread(at.ana, at.general, "plans", private=True)
        at.world.invite_to(at.ana, private, at.ada.user)
        await at.settle()

        def get_room(channel_id: int):
            return to_room(at.client.get_channel(channel_id))

        general = get_room(at.general.id)
        assert (general.name, general.kind, general.guild_name) == ("general", RoomKind.CHANNEL, "Harbour")
        assert general.guild == str(at.guild.id)
        assert general.latest_post == str(at.general.history.last_id)
        assert get_room(voice.id).kind is get_room(news.id).kind is RoomKind.CHANNEL
        assert get_room(forum.id).kind is RoomKind.FORUM
        assert get_room(forum.id).latest_post == ""
        thread = get_room(post.id)
        assert (thread.kind, thread.parent, thread.parent_name) == (RoomKind.THREAD, str(forum.id), "questions")
        assert get_room(private.id).kind is RoomKind.PRIVATE_THREAD


async def test_a_direct_talk_is_a_room_named_after_the_other():
    async with open_client() as at:
        channel = at.world.open_dm(at.ben, at.ada.user)
        heard = await at.say(at.ben, "psst", channel)
        fetched = await at.client.fetch_channel(channel.id)
        assert to_room(fetched).name == "Ben"
        assert to_room(heard.channel).kind is RoomKind.DIRECT
        assert to_post(heard).guild == ""


async def test_a_category_is_no_room():
    async with open_client() as at:
        category = at.guild.add_channel("decks", kind="category")
        await at.settle()
        with pytest.raises(InvalidInput):
            to_room(at.client.get_channel(category.id))


async def test_a_post_has_author_room_files_and_what_it_answers():
    async with open_client() as at:
        first = at.world.say(at.ben, at.general, "one")
        thread = at.world.open_thread(at.ben, first, "thread")
        question = at.world.say(at.ben, thread, "two")
        heard = await at.say(
            at.ana,
            "three",
            thread,
            reply_to=question,
            attachments=[file("tide.csv", "6;3\n", "text/csv; charset=utf-8")],
        )
        post = to_post(heard)
        assert (post.author.id, post.author.name, post.author.is_bot) == (str(at.ana.id), "Ana", False)
        assert (post.room, post.parent, post.guild) == (str(thread.id), str(at.general.id), str(at.guild.id))
        assert (post.text, post.reply_to, post.changes.edited_at) == ("three", str(question.id), None)
        assert post.created_at.utcoffset() is not None
        assert post.attachments == (Attachment("tide.csv", "text/csv", 4, heard.attachments[0].url),)


async def test_a_forwarded_message_answers_nothing():
    async with open_client() as at:
        first = at.world.say(at.ben, at.general, "one")
        arrival = to_incoming_message(await at.say(at.ana, forward=first), at.me, read_pdf)
        assert arrival.post.reply_to == ""
        assert not arrival.mentions.replies_to_me


@pytest.mark.proves("C16")
async def test_only_an_at_in_the_text_is_a_mention():
    async with open_client() as at:
        mine = at.world.say(at.ada.user, at.general, "Hello")
        reply = to_incoming_message(await at.say(at.ana, "why?", reply_to=mine), at.me, read_pdf)
        assert (reply.mentions.me, reply.mentions.replies_to_me) == (False, True)
        for text in (f"<@{at.ada.id}>", f"<@!{at.ada.id}> hi"):
            assert to_incoming_message(await at.say(at.ana, text), at.me, read_pdf).mentions.me
        in_code = to_incoming_message(await at.say(at.ana, f"`<@{at.ada.id}>`"), at.me, read_pdf)
        other = to_incoming_message(await at.say(at.ana, at.ben.mention), at.me, read_pdf)
        assert not in_code.mentions.me
        assert not other.mentions.me


async def test_the_role_that_discord_made_for_the_account_is_its_mention():
    async with open_client() as at:
        role = next(each for each in at.guild.roles.values() if each.bot_id == at.ada.id)
        arrival = to_incoming_message(await at.say(at.ana, role.mention), at.me, read_pdf)
        assert arrival.mentions.me
        assert arrival.question == ""


async def test_roles_are_ids_without_the_one_of_everybody():
    async with open_client() as at:
        pilots = at.guild.add_role("Pilots", mentionable=True)
        at.guild.set_roles(at.ben, [pilots])
        arrival = to_incoming_message(await at.say(at.ben, f"{pilots.mention} @everyone"), at.me, read_pdf)
        assert arrival.roles == {str(pilots.id)}
        assert arrival.mentions.roles == {str(pilots.id)}
        assert list_role_ids(at.me) == frozenset()


async def test_what_the_account_said_itself_is_known_as_such():
    async with open_client() as at:
        mine = to_incoming_message(await at.say(at.ada.user, "Hello"), at.me, read_pdf)
        edited = to_incoming_message(await at.say(at.ana, "Hello"), at.me, read_pdf, is_edit=True)
        assert (mine.is_mine, mine.post.author.is_bot, mine.is_edit) == (True, True, False)
        assert (edited.is_mine, edited.is_edit) == (False, True)


async def test_webhooks_count_as_bots():
    async with open_client() as at:
        at.guild.set_roles(at.ada.user, [at.guild.add_role("Rigger", permissions=DiscordPermission.MANAGE_WEBHOOKS)])
        channel = at.client.get_channel(at.general.id)
        assert isinstance(channel, discord.TextChannel)
        hook = await channel.create_webhook(name="Bell")
        sent = await hook.send("Ding", wait=True)
        await at.server.until(lambda: any(each.id == sent.id for each in at.client.heard))
        post = to_post(next(each for each in at.client.heard if each.id == sent.id))
        assert (post.author.is_bot, post.text) == (True, "Ding")


async def test_the_past_is_read_in_both_directions_oldest_first():
    async with open_client() as at:
        sent = [at.world.say(at.ben, at.general, f"m{number}") for number in range(250)]
        room = str(at.general.id)

        async def texts(**page: Any) -> list[str]:
            return [post.text for post in await list_posts(at.client, room, **page)]

        assert await texts(limit=2) == ["m248", "m249"]
        assert await texts(before=str(sent[10].id), limit=3) == ["m7", "m8", "m9"]
        assert await texts(after=str(sent[10].id), limit=3) == ["m11", "m12", "m13"]
        assert await texts(after=str(sent[247].id), limit=100) == ["m248", "m249"]
        assert await texts(limit=220) == [f"m{number}" for number in range(30, 250)]
        at.server.requests.clear()
        assert len(await texts(before=str(sent[200].id), limit=100)) == 100
        assert len(at.server.requests_to("GET", "/channels/{channel_id}/messages")) == 1


async def test_a_page_is_short_only_at_the_end():
    async with open_client() as at:
        first = at.world.say(at.ben, at.general, "first")
        for number in range(30):
            at.world.pin(at.ana, at.world.say(at.ana, at.general, f"m{number}"))
        posts = await list_posts(at.client, str(at.general.id), after=str(first.id), limit=30)
        assert [post.text for post in posts] == [f"m{number}" for number in range(30)]
        newest = await list_posts(at.client, str(at.general.id), limit=5)
        assert [post.text for post in newest] == [f"m{number}" for number in range(25, 30)]


async def test_what_was_missed_arrives_in_order_from_people_and_bots():
    async with open_client() as at:
        start = at.world.say(at.ben, at.general, "start")
        at.world.say(at.ana, at.general, at.ada.mention)
        at.world.say(at.ada.user, at.general, "mine")
        at.world.say(at.ben, at.general, "last")
        room = to_room(at.client.get_channel(at.general.id))
        arrivals = await list_arrivals(at.client, room, str(start.id), 100, read_pdf)
        assert [each.post.text for each in arrivals] == ["@Ada", "mine", "last"]
        assert [each.mentions.me for each in arrivals] == [True, False, False]
        assert [each.is_mine for each in arrivals] == [False, True, False]
        everything = await list_arrivals(at.client, room, "", 2, read_pdf)
        assert [each.post.text for each in everything] == ["start", "@Ada"]


async def test_an_archived_thread_can_be_read():
    async with open_client() as at:
        thread = at.world.open_thread(at.ana, at.general, "old", text="inside")
        at.world.archive(at.ana, thread)
        await at.settle()
        (post,) = await list_posts(at.client, str(thread.id))
        assert (post.text, post.parent) == ("inside", str(at.general.id))


async def test_a_room_that_is_gone_or_holds_no_messages_is_not_found():
    async with open_client() as at:
        forum = at.guild.add_channel("questions", kind="forum")
        await at.settle()
        for room in ("111111111111111111", str(forum.id), "general"):
            with pytest.raises(NotFound):
                await list_posts(at.client, room)
