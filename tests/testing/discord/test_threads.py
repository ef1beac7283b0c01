"""Threads and forum posts: who may open them, who hears of them, what their archive does."""

from __future__ import annotations

import discord
import pytest

from denizen.testing.discord import ChannelKind, DiscordPermission, RefusedError
from denizen.testing.discord.fixtures import DiscordFixture
from tests.testing.discord.bots import Bot, running, text_channel

pytestmark = pytest.mark.anyio


async def test_a_thread_has_the_id_of_its_message_and_there_is_only_one(sim: DiscordFixture) -> None:
    question = sim.world.say(sim.ana, sim.general, "a long story")
    async with running(sim.discord, sim.ada, Bot) as bot:
        message = await text_channel(bot, sim.general).fetch_message(question.id)
        thread = await message.create_thread(name="story")
        assert thread.id == question.id
        with pytest.raises(discord.HTTPException) as caught:
            await message.create_thread(name="again")
        assert caught.value.code == 160004
        kept = sim.guild.threads[thread.id]
        sim.world.say(sim.ana, kept, "go on")
        await sim.discord.until(lambda: bot.texts[-1:] == ["go on"])
        assert isinstance(bot.heard[-1].channel, discord.Thread)
        assert [each.content async for each in thread.history(oldest_first=True)] == ["", "go on"]
        again = await text_channel(bot, sim.general).fetch_message(question.id)
        assert again.flags.has_thread and again.thread is not None and again.thread.name == "story"


async def test_a_bot_hears_of_threads_that_people_open(sim: DiscordFixture) -> None:
    made: list[str] = []

    class ThreadBot(Bot):
        async def on_thread_create(self, thread: discord.Thread) -> None:
            made.append(thread.name)

    async with running(sim.discord, sim.ada, ThreadBot) as bot:
        thread = sim.world.open_thread(sim.ana, sim.general, "plans", text="first")
        await sim.discord.until(lambda: made == ["plans"] and "first" in bot.texts)
        private = sim.world.open_thread(sim.ana, sim.general, "secret", private=True, text="unheard")
        sim.world.invite_to(sim.ana, private, sim.ada.user)
        sim.world.say(sim.ana, private, "heard")
        await sim.discord.until(lambda: "heard" in bot.texts)
        assert "unheard" not in bot.texts
        assert bot.guilds[0].get_thread(private.id) is not None
        assert thread.kind is ChannelKind.PUBLIC_THREAD


async def test_a_forum_post_is_a_thread_whose_first_message_has_its_id(sim: DiscordFixture) -> None:
    forum = sim.guild.add_channel("help", kind="forum", tags=["open"])
    async with running(sim.discord, sim.ada, Bot) as bot:
        found = bot.get_channel(forum.id)
        assert isinstance(found, discord.ForumChannel)
        post = await found.create_thread(name="How?", content="like this", applied_tags=[found.available_tags[0]])
        assert post.message.id == post.thread.id and post.message.content == "like this"
        asked = sim.world.open_thread(sim.ana, forum, "Why?", text="just so")
        await sim.discord.until(lambda: "just so" in bot.texts)
        assert asked.messages[0].id == asked.id
        with pytest.raises(RefusedError) as caught:
            sim.world.say(sim.ana, forum, "not in here")
        assert caught.value.number == 50008


async def test_an_archived_thread_wakes_when_somebody_writes_unless_it_is_locked(sim: DiscordFixture) -> None:
    thread = sim.world.open_thread(sim.ben, sim.general, "old", text="first")
    assert thread.thread is not None
    sim.world.archive(sim.ben, thread)
    with pytest.raises(RefusedError) as caught:
        sim.world.react(sim.ana, thread.messages[0], "👍")
    assert caught.value.number == 50083
    sim.world.say(sim.ben, thread, "still here")
    assert not thread.thread.archived
    sim.world.archive(sim.ana, thread, locked=True)
    with pytest.raises(RefusedError) as caught:
        sim.world.say(sim.ben, thread, "let me in")
    assert caught.value.number == 50083
    sim.world.say(sim.ana, thread, "the owner may")


async def test_writing_or_being_mentioned_makes_a_member_of_a_thread(sim: DiscordFixture) -> None:
    thread = sim.world.open_thread(sim.ana, sim.general, "talk")
    assert thread.thread is not None
    sim.world.say(sim.ana, thread, f"{sim.ben.mention} look")
    assert set(thread.thread.members) == {sim.ana.id, sim.ben.id}
    sim.world.say(sim.ben, thread, "yes")
    assert [each.state.position for each in thread.messages] == [0, 1]


async def test_archived_threads_are_listed_newest_first(sim: DiscordFixture) -> None:
    threads = [sim.world.open_thread(sim.ana, sim.general, str(number)) for number in range(3)]
    for thread in threads:
        sim.world.archive(sim.ana, thread)
    async with running(sim.discord, sim.ada, Bot) as bot:
        assert not bot.guilds[0].threads
        listed = [each.name async for each in text_channel(bot, sim.general).archived_threads(limit=None)]
        assert listed == ["2", "1", "0"]


async def test_a_thread_may_be_changed_by_its_owner_and_by_who_manages_threads(sim: DiscordFixture) -> None:
    thread = sim.world.open_thread(sim.ana, sim.general, "mine")
    async with running(sim.discord, sim.ada, Bot) as bot:
        found = bot.get_channel(thread.id)
        assert isinstance(found, discord.Thread)
        with pytest.raises(discord.Forbidden):
            await found.edit(name="yours")
        keeper = sim.guild.add_role("keeper", permissions=DiscordPermission.MANAGE_THREADS)
        sim.guild.set_roles(sim.ada.user, [keeper])
        await found.edit(name="yours", locked=True, archived=True)
        assert thread.name == "yours" and thread.thread is not None and thread.thread.locked
        await found.delete()
        assert thread.deleted and thread.id not in sim.guild.threads


async def test_names_of_text_channels_are_in_lower_case_without_spaces(sim: DiscordFixture) -> None:
    sim.guild.set_roles(sim.ada.user, [sim.guild.add_role("admin", permissions=DiscordPermission.ADMINISTRATOR)])
    async with running(sim.discord, sim.ada, Bot) as bot:
        guild = bot.get_guild(sim.guild.id)
        assert guild is not None
        made = await guild.create_text_channel("New  Place")
        assert made.name == "new-place"
        renamed = await made.edit(name="Old Place")
        assert renamed is not None and renamed.name == "old-place"
        assert (await guild.create_forum("Help Desk")).name == "help-desk"
        assert (await guild.create_voice_channel("Tea Room")).name == "Tea Room"
        assert (await guild.create_category("Quiet Rooms")).name == "Quiet Rooms"
        assert (await made.create_thread(name="A Thread", type=discord.ChannelType.public_thread)).name == "A Thread"
