"""What a bot that keeps a guild in order does: bans, emojis, events, invitations; rights and effects are Discord's."""

from __future__ import annotations

from datetime import timedelta

import discord
import pytest

from denizen.testing.discord import DiscordPermission
from denizen.testing.discord.fixtures import DiscordFixture
from tests.testing.discord.bots import Bot, running, text_channel

pytestmark = pytest.mark.anyio
P = DiscordPermission
PNG = b"\x89PNG\r\n\x1a\n"


def grant(sim: DiscordFixture, permissions: DiscordPermission) -> None:
    own = next(role for role in sim.guild.roles.values() if role.bot_id == sim.ada.id)
    own.permissions = permissions


async def test_a_ban_deletes_what_was_written_lately_and_tells_why(sim: DiscordFixture) -> None:
    grant(sim, P.BAN_MEMBERS)
    sim.world.say(sim.ben, sim.general, "buy this")
    kept = sim.world.say(sim.ana, sim.general, "no")
    async with running(sim.discord, sim.ada, Bot) as bot:
        await bot.guilds[0].ban(discord.Object(sim.ben.id), delete_message_seconds=3600, reason="spam: & more")
        assert [entry.reason async for entry in bot.guilds[0].bans()] == ["spam: & more"]
        await sim.discord.until(lambda: bot.guilds[0].get_member(sim.ben.id) is None)
    assert sim.general.messages == [kept]
    assert any(each.reason == "spam: & more" for each in sim.discord.requests)


async def test_bans_are_listed_by_id_in_pages(sim: DiscordFixture) -> None:
    grant(sim, P.BAN_MEMBERS)
    people = [sim.world.add_person(f"P{number}") for number in range(5)]
    async with running(sim.discord, sim.ada, Bot) as bot:
        guild = bot.guilds[0]
        for each in people:
            await guild.ban(discord.Object(each.id))
        ids = [each.id for each in people]
        assert [entry.user.id async for entry in guild.bans(limit=2)] == ids[:2]
        assert [entry.user.id async for entry in guild.bans(limit=2, after=discord.Object(ids[1]))] == ids[2:4]
        assert [entry.user.id async for entry in guild.bans(limit=2, before=discord.Object(ids[4]))] == ids[2:4]


async def test_administrators_are_not_timed_out(sim: DiscordFixture) -> None:
    grant(sim, P.MODERATE_MEMBERS)
    sim.guild.set_roles(sim.ben, [sim.guild.add_role("admin", permissions=P.ADMINISTRATOR)])
    async with running(sim.discord, sim.ada, Bot) as bot:
        ben = await bot.guilds[0].fetch_member(sim.ben.id)
        with pytest.raises(discord.Forbidden):
            await ben.timeout(timedelta(minutes=1))


async def test_emojis_are_made_and_deleted_by_different_rights(sim: DiscordFixture) -> None:
    grant(sim, P.CREATE_GUILD_EXPRESSIONS)
    async with running(sim.discord, sim.ada, Bot) as bot:
        guild = bot.guilds[0]
        made = await guild.create_custom_emoji(name="anchor", image=PNG)
        await sim.discord.until(lambda: [each.name for each in guild.emojis] == ["anchor"])
        with pytest.raises(discord.Forbidden):
            await made.delete()
        with pytest.raises(discord.HTTPException) as caught:
            await guild.create_custom_emoji(name="no name", image=PNG)
        assert caught.value.code == 50035
        grant(sim, P.MANAGE_GUILD_EXPRESSIONS)
        await made.delete()
        with pytest.raises(discord.Forbidden):
            await guild.create_custom_emoji(name="anchor", image=PNG)
        await sim.discord.until(lambda: not guild.emojis)


async def test_events_are_told_and_take_rights_a_time_to_come_and_a_place(sim: DiscordFixture) -> None:
    grant(sim, P.CREATE_EVENTS)
    level, begins = discord.PrivacyLevel.guild_only, discord.utils.utcnow() + timedelta(days=1)
    quay = sim.guild.add_channel("quay", kind="voice")
    async with running(sim.discord, sim.ada, Bot) as bot:
        guild = bot.guilds[0]
        channel = guild.get_channel(quay.id)
        assert isinstance(channel, discord.VoiceChannel)
        made = await guild.create_scheduled_event(name="Swim", channel=channel, start_time=begins, privacy_level=level)
        await sim.discord.until(lambda: [each.id for each in guild.scheduled_events] == [made.id])
        with pytest.raises(discord.HTTPException) as caught:
            await guild.create_scheduled_event(
                name="Swim", channel=channel, start_time=begins - timedelta(days=2), privacy_level=level
            )
        assert caught.value.code == 50035
        grant(sim, P(0))
        with pytest.raises(discord.Forbidden):
            await guild.create_scheduled_event(name="Swim", channel=channel, start_time=begins, privacy_level=level)
        with pytest.raises(discord.Forbidden):
            await made.cancel()
        grant(sim, P.MANAGE_EVENTS | P.CREATE_EVENTS)
        await (await made.start()).end()
        assert not sim.guild.events
        with pytest.raises(discord.NotFound) as gone:
            await guild.fetch_scheduled_event(made.id)
        assert gone.value.code == 10070


async def test_an_invitation_of_the_same_kind_is_given_again_unless_a_new_one_is_wanted(sim: DiscordFixture) -> None:
    async with running(sim.discord, sim.ada, Bot) as bot:
        channel = text_channel(bot, sim.general)
        first = await channel.create_invite(max_age=60, unique=False)
        assert (await channel.create_invite(max_age=60, unique=False)).code == first.code
        assert (await channel.create_invite(max_age=61, unique=False)).code != first.code
        assert (await channel.create_invite(max_age=60, unique=True)).code != first.code
