"""discord.py sends, reads, edits and deletes messages in the simulation, and hears what people do."""

from __future__ import annotations

import io
from datetime import timedelta

import discord
import pytest
from discord.http import Route

from denizen.testing.discord import DiscordPermission, GatewayIntent, RefusedError, SimPollDraft, file
from denizen.testing.discord.fixtures import DiscordFixture
from tests.testing.discord.bots import Bot, running, text_channel

pytestmark = pytest.mark.anyio


async def test_a_bot_logs_in_and_hears_and_answers(sim: DiscordFixture) -> None:
    async with running(sim.discord, sim.ada, Bot) as bot:
        assert bot.user is not None and bot.user.id == sim.ada.id
        assert [each.name for each in bot.guilds] == ["Harbour"]
        assert {each.name for each in bot.guilds[0].members} == {"ana", "ben", "Ada"}
        question = sim.world.say(sim.ana, sim.general, f"{sim.ada.mention} hello")
        await sim.discord.until(lambda: bot.heard)
        assert bot.heard[0].mentions == [bot.guilds[0].me]
        await bot.heard[0].reply("hi")
        answer = sim.general.messages[-1]
        assert (answer.content, answer.author) == ("hi", sim.ada.user)
        assert answer.reference is not None and answer.reference.message_id == question.id
        assert answer.mentioned.users == [sim.ana]
        await sim.discord.until(lambda: bot.texts == [question.content, "hi"])
        assert bot.heard[1].reference is not None
        assert isinstance(bot.heard[1].reference.resolved, discord.Message)


async def test_history_after_a_message_gives_all_that_was_missed_once_and_in_order(sim: DiscordFixture) -> None:
    said = [sim.world.say(sim.ana, sim.general, str(number)) for number in range(1003)]
    async with running(sim.discord, sim.ada, Bot) as bot:
        channel = text_channel(bot, sim.general)
        missed = [each.content async for each in channel.history(after=discord.Object(said[2].id), limit=None)]
        assert missed == [str(number) for number in range(3, 1003)]
        newest = [each.content async for each in channel.history(limit=150)]
        assert newest == [str(number) for number in range(1002, 852, -1)]
        before = [each.content async for each in channel.history(before=discord.Object(said[120].id), limit=None)]
        assert before == [str(number) for number in range(119, -1, -1)]
        around = [each.content async for each in channel.history(around=discord.Object(said[50].id), limit=5)]
        assert sorted(map(int, around)) == [48, 49, 50, 51, 52]


async def test_the_oldest_messages_after_an_id_come_newest_first_in_one_page(sim: DiscordFixture) -> None:
    said = [sim.world.say(sim.ana, sim.general, str(number)) for number in range(10)]
    found = sim.general.history.after(said[3].id, 3)
    assert [each.content for each in found] == ["6", "5", "4"]


async def test_edits_deletions_and_reactions_are_heard(sim: DiscordFixture) -> None:
    async with running(sim.discord, sim.ada, Bot) as bot:
        said = sim.world.say(sim.ana, sim.general, "first")
        sim.world.edit(said, "second")
        sim.world.react(sim.ben, said, "👍")
        await sim.discord.until(lambda: bot.reacted)
        assert bot.edited[0].content == "second"
        assert said.state.edits[0].body.content == "first"
        shown = await text_channel(bot, sim.general).fetch_message(said.id)
        await shown.add_reaction("👍")
        assert [(str(each.emoji), each.count, each.me) for each in shown.reactions] == [("👍", 1, False)]
        again = await text_channel(bot, sim.general).fetch_message(said.id)
        assert [(each.count, each.me) for each in again.reactions] == [(2, True)]
        sim.world.delete(said)
        await sim.discord.until(lambda: bot.deleted == [said.id])
        assert said.state.deleted and not sim.general.messages


async def test_a_repeated_send_with_the_same_nonce_is_one_message(sim: DiscordFixture) -> None:
    async with running(sim.discord, sim.ada, Bot) as bot:
        channel = text_channel(bot, sim.general)
        for _ in range(2):
            await channel.send("once", nonce="n-1")
        body = {"content": "once", "nonce": "n-2", "enforce_nonce": True}
        route = Route("POST", "/channels/{channel_id}/messages", channel_id=channel.id)
        first = await bot.http.request(route, json=body)
        second = await bot.http.request(route, json=body | {"content": "another"})
        assert (first["id"], second["content"]) == (second["id"], "once")
        texts = sim.general.texts
        # discord.py asks to enforce every nonce that it is given.
        assert texts == ["once", "once"]
        await sim.discord.until(lambda: len(bot.heard) == 2)
        assert [each.nonce for each in bot.heard] == ["n-1", "n-2"]
        assert [each.nonce async for each in channel.history()] == [None, None]


async def test_a_nonce_counts_for_one_author_in_one_channel_for_some_minutes(sim: DiscordFixture) -> None:
    other = sim.guild.add_channel("other")
    rules = sim.world.rules
    async with running(sim.discord, sim.ada, Bot) as bot:
        first = await text_channel(bot, sim.general).send("a", nonce="n")
        assert (await text_channel(bot, other).send("a", nonce="n")).id != first.id
        rules.nonce_window = timedelta(0)
        assert (await text_channel(bot, sim.general).send("b", nonce="n")).id != first.id


async def test_files_go_up_and_come_down(sim: DiscordFixture) -> None:
    async with running(sim.discord, sim.ada, Bot) as bot:
        channel = text_channel(bot, sim.general)
        files = [
            discord.File(io.BytesIO(b"one"), "a.txt", description="the first"),
            discord.File(io.BytesIO(b"two"), "ü b.bin"),
        ]
        sent = await channel.send("here", files=files)
        kept = sim.general.messages[-1].body.attachments
        assert [(each.filename, each.content, each.description) for each in kept] == [
            ("a.txt", b"one", "the first"),
            ("ü b.bin", b"two", None),
        ]
        assert kept[0].content_type == "text/plain; charset=utf-8"
        assert [await each.read() for each in sent.attachments] == [b"one", b"two"]
        edited = await sent.edit(attachments=[sent.attachments[1], discord.File(io.BytesIO(b"three"), "c.txt")])
        assert [await each.read() for each in edited.attachments] == [b"two", b"three"]
        sim.world.say(sim.ana, sim.general, "mine", attachments=[file("d.txt", "four")])
        await sim.discord.until(lambda: len(bot.heard) == 2)
        assert await bot.heard[1].attachments[0].read() == b"four"


async def test_direct_messages_go_both_ways(sim: DiscordFixture) -> None:
    async with running(sim.discord, sim.ada, Bot) as bot:
        dm = sim.world.open_dm(sim.ana, sim.ada.user)
        sim.world.say(sim.ana, dm, "psst")
        await sim.discord.until(lambda: bot.heard)
        assert isinstance(bot.heard[0].channel, discord.DMChannel) and bot.heard[0].guild is None
        await bot.heard[0].channel.send("yes?")
        assert dm.texts == ["psst", "yes?"]
        person = await bot.fetch_user(sim.ben.id)
        sim.ben.accepts_dms = False
        with pytest.raises(discord.Forbidden) as caught:
            await person.send("hello")
        assert caught.value.code == 50007


async def test_a_bot_and_a_person_without_a_common_server_do_not_write_to_each_other(sim: DiscordFixture) -> None:
    dm = sim.world.open_dm(sim.ben, sim.ada.user)
    sim.world.say(sim.ben, dm, "psst")
    sim.guild.leave(sim.ben)
    async with running(sim.discord, sim.ada, Bot) as bot:
        with pytest.raises(discord.Forbidden) as caught:
            await (await bot.fetch_user(sim.ben.id)).send("come back")
        assert caught.value.code == 50007
    with pytest.raises(RefusedError, match="50007"):
        sim.world.say(sim.ben, dm, "still there?")
    between_people = sim.world.open_dm(sim.ana, sim.ben)
    assert sim.world.say(sim.ana, between_people, "hello").content == "hello"


async def test_typing_is_seen_on_both_sides(sim: DiscordFixture) -> None:
    seen: list[int] = []

    class TypingBot(Bot):
        async def on_raw_typing(self, event: discord.RawTypingEvent) -> None:
            seen.append(event.user_id)

    async with running(sim.discord, sim.ada, TypingBot) as bot:
        sim.world.type_in(sim.ana, sim.general)
        await sim.discord.until(lambda: seen == [sim.ana.id])
        async with text_channel(bot, sim.general).typing():
            assert [each.user for each in sim.discord.typing(sim.general)] == [sim.ana, sim.ada.user]


async def test_without_the_content_intent_only_what_concerns_the_bot_can_be_read(sim: DiscordFixture) -> None:
    intents = discord.Intents.all()
    intents.message_content = intents.members = intents.presences = False
    sim.ada.intents = GatewayIntent(0)
    async with running(sim.discord, sim.ada, lambda: Bot(intents=intents)) as bot:
        assert [each.name for each in bot.guilds[0].members] == ["Ada"]
        world, ana, general = sim.world, sim.ana, sim.general
        world.say(ana, general, "secret", attachments=[file("a.txt", "a")], embeds=[{"title": "t"}])
        world.say(ana, general, f"{sim.ada.mention} open", attachments=[file("a.txt", "a")])
        world.say(ana, world.open_dm(ana, sim.ada.user), "direct")
        await text_channel(bot, general).send("own")
        await sim.discord.until(lambda: len(bot.heard) == 4)
        assert bot.texts == ["", f"{sim.ada.mention} open", "direct", "own"]
        assert not bot.heard[0].attachments and not bot.heard[0].embeds
        assert len(bot.heard[1].attachments) == 1
        fetched = [each.content async for each in text_channel(bot, general).history(oldest_first=True)]
        assert fetched == ["", f"{sim.ada.mention} open", "own"]


async def test_mentions_count_only_as_allowed(sim: DiscordFixture) -> None:
    crew = sim.guild.add_role("crew", mentionable=True)
    closed = sim.guild.add_role("closed")
    text = f"{sim.ana.mention} {sim.ben.mention} {crew.mention} {closed.mention} @everyone `{sim.ada.mention}`"
    async with running(sim.discord, sim.ada, Bot) as bot:
        channel = text_channel(bot, sim.general)
        await channel.send(text)
        sent = sim.general.messages[-1]
        assert (sent.mentioned.users, sent.mentioned.roles, sent.mentioned.everyone) == (
            [sim.ana, sim.ben],
            [crew.id],
            False,
        )
        await channel.send(
            text, allowed_mentions=discord.AllowedMentions(users=[discord.Object(sim.ben.id)], roles=False)
        )
        assert sim.general.messages[-1].mentioned.users == [sim.ben]
        assert not sim.general.messages[-1].mentioned.roles
        await channel.send(text, allowed_mentions=discord.AllowedMentions.none())
        assert not sim.general.messages[-1].mentioned.users
    sim.world.say(sim.ana, sim.general, "@everyone")
    assert sim.general.messages[-1].mentioned.everyone


async def test_a_reply_to_a_message_that_is_gone_is_refused_or_sent_plainly(sim: DiscordFixture) -> None:
    said = sim.world.say(sim.ana, sim.general, "soon gone")
    sim.world.delete(said)
    async with running(sim.discord, sim.ada, Bot) as bot:
        channel = text_channel(bot, sim.general)
        reference = discord.MessageReference(message_id=said.id, channel_id=channel.id, fail_if_not_exists=True)
        with pytest.raises(discord.HTTPException) as caught:
            await channel.send("late", reference=reference)
        assert caught.value.code == 50035
        reference.fail_if_not_exists = False
        await channel.send("late", reference=reference)
        assert sim.general.texts == ["late"] and sim.general.messages[0].reference is None


async def test_a_forwarded_message_is_carried_whole(sim: DiscordFixture) -> None:
    said = sim.world.say(sim.ana, sim.general, "pass it on")
    sim.world.say(sim.ana, sim.general, forward=said)
    async with running(sim.discord, sim.ada, Bot) as bot:
        newest = await text_channel(bot, sim.general).fetch_message(sim.general.messages[-1].id)
        assert [each.content for each in newest.message_snapshots] == ["pass it on"]


async def test_polls_are_voted_on_and_ended(sim: DiscordFixture) -> None:
    poll = sim.world.say(sim.ana, sim.general, poll=SimPollDraft("Tea?", ["yes", "no"]))
    sim.world.vote(sim.ben, poll, 1)
    sim.world.vote(sim.ben, poll, 2)
    assert poll.body.poll is not None and {key: len(users) for key, users in poll.body.poll.votes.items()} == {
        1: 0,
        2: 1,
    }
    async with running(sim.discord, sim.ada, Bot) as bot:
        shown = await text_channel(bot, sim.general).fetch_message(poll.id)
        assert shown.poll is not None and [each.vote_count for each in shown.poll.answers] == [0, 1]


async def test_many_members_come_in_chunks(sim: DiscordFixture) -> None:
    for number in range(1200):
        sim.guild.join(sim.world.add_person(f"P{number}"))
    async with running(sim.discord, sim.ada, Bot) as bot:
        guild = bot.guilds[0]
        assert guild.member_count == len(guild.members) == 1203
        found = await guild.query_members(query="P11", limit=50)
        assert len(found) == 50
        some = await guild.query_members(user_ids=[sim.ana.id, 1])
        assert [each.id for each in some] == [sim.ana.id]


async def test_until_says_what_was_there_instead(sim: DiscordFixture) -> None:
    sim.world.say(sim.ana, sim.general, "the last words")
    with pytest.raises(TimeoutError, match="the last words") as caught:
        await sim.discord.until(lambda: False, timeout_s=0.01)
    assert isinstance(caught.value, AssertionError)


async def test_a_person_is_refused_as_a_bot_would_be(sim: DiscordFixture) -> None:
    hidden = sim.guild.add_channel("hidden", private_to=[sim.ada.user])
    with pytest.raises(RefusedError) as caught:
        sim.world.say(sim.ben, hidden, "let me in")
    assert (caught.value.status, caught.value.number, caught.value.family) == (403, 50001, "NotAllowed")
    with pytest.raises(RefusedError) as caught:
        sim.world.say(sim.ben, sim.general, "x" * 2001)
    assert (caught.value.number, caught.value.family) == (50035, "InvalidInput")
    mine = sim.world.say(sim.ana, sim.general, "mine")
    with pytest.raises(RefusedError):
        sim.world.delete(mine, by=sim.ben)
    sim.guild.set_roles(sim.ben, [sim.guild.add_role("mod", permissions=DiscordPermission.MANAGE_MESSAGES)])
    sim.world.delete(mine, by=sim.ben)
    assert not sim.general.messages
