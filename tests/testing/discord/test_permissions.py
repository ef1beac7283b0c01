"""Rights are computed as Discord computes them, and enforced on bots and people."""

from __future__ import annotations

from datetime import timedelta

import discord
import pytest

from denizen.testing.discord import DiscordPermission, RefusedError, SimChannel, SimUser
from denizen.testing.discord.fixtures import DiscordFixture
from denizen.testing.discord.state.access import permissions_in
from denizen.testing.discord.state.channels import SimOverwrite
from tests.testing.discord.bots import Bot, running, text_channel

pytestmark = pytest.mark.anyio
P = DiscordPermission


def may(harbour: DiscordFixture, user: SimUser, channel: SimChannel, needed: DiscordPermission) -> bool:
    return bool(permissions_in(harbour.world.realm, channel, user) & needed)


async def test_overwrites_go_from_everyone_over_roles_to_the_member(harbour: DiscordFixture) -> None:
    crew = harbour.guild.add_role("crew")
    harbour.guild.set_roles(harbour.ben, [crew])
    channel = harbour.general

    def put(target: int, kind: int, allow: DiscordPermission, deny: DiscordPermission) -> None:
        channel.overwrites[target] = SimOverwrite(target, kind, allow, deny)

    assert may(harbour, harbour.ben, channel, P.SEND_MESSAGES)
    put(harbour.guild.id, 0, P(0), P.SEND_MESSAGES)
    assert not may(harbour, harbour.ben, channel, P.SEND_MESSAGES)
    assert not may(harbour, harbour.ben, channel, P.ATTACH_FILES)
    put(crew.id, 0, P.SEND_MESSAGES, P(0))
    assert may(harbour, harbour.ben, channel, P.SEND_MESSAGES)
    put(harbour.ben.id, 1, P(0), P.VIEW_CHANNEL)
    assert permissions_in(harbour.world.realm, channel, harbour.ben) == P(0)
    assert may(harbour, harbour.ana, channel, P.ADMINISTRATOR)


async def test_administrators_and_the_owner_may_everything_and_strangers_nothing(harbour: DiscordFixture) -> None:
    hidden = harbour.guild.add_channel("hidden", private_to=[])
    stranger = harbour.world.add_person("Cy")
    assert may(harbour, harbour.ana, hidden, P.MANAGE_CHANNELS)
    assert not may(harbour, harbour.ben, hidden, P.VIEW_CHANNEL)
    assert permissions_in(harbour.world.realm, harbour.general, stranger) == P(0)
    harbour.guild.set_roles(harbour.ben, [harbour.guild.add_role("admin", permissions=P.ADMINISTRATOR)])
    assert may(harbour, harbour.ben, hidden, P.MANAGE_CHANNELS)


async def test_a_channel_takes_the_overwrites_of_its_category_and_a_thread_those_of_its_channel(
    harbour: DiscordFixture,
) -> None:
    category = harbour.guild.add_channel("staff", kind="category", private_to=[harbour.ben])
    inside = harbour.guild.add_channel("inside", category=category)
    thread = harbour.world.open_thread(harbour.ben, inside, "talk")
    assert may(harbour, harbour.ben, thread, P.SEND_MESSAGES_IN_THREADS)
    assert not may(harbour, harbour.ada.user, thread, P.VIEW_CHANNEL)


async def test_a_member_in_time_out_only_reads(harbour: DiscordFixture) -> None:
    until = harbour.world.realm.clock.now() + timedelta(minutes=5)
    harbour.guild.members[harbour.ben.id].timeout_until = until
    with pytest.raises(RefusedError) as caught:
        harbour.world.say(harbour.ben, harbour.general, "but")
    assert caught.value.number == 50013


async def test_a_bot_without_rights_is_refused_with_the_right_number(harbour: DiscordFixture) -> None:
    hidden = harbour.guild.add_channel("hidden", private_to=[])
    mute = harbour.guild.add_channel("mute", overwrites=[SimOverwrite(harbour.guild.id, 0, P(0), P.SEND_MESSAGES)])
    secret = harbour.world.say(harbour.ana, hidden, "secret")
    async with running(harbour.discord, harbour.ada, Bot) as bot:
        for act, number in (
            (lambda: bot.fetch_channel(hidden.id), 50001),
            (lambda: bot.http.get_message(hidden.id, secret.id), 50001),
            (lambda: text_channel(bot, mute).send("x"), 50013),
            (lambda: bot.fetch_guild(1), 10004),
            (lambda: bot.guilds[0].create_text_channel("x"), 50013),
            (lambda: bot.guilds[0].create_role(name="x"), 50013),
            (lambda: bot.guilds[0].kick(discord.Object(harbour.ben.id)), 50013),
        ):
            with pytest.raises(discord.HTTPException) as caught:
                await act()
            assert caught.value.code == number


async def test_history_needs_its_own_right(harbour: DiscordFixture) -> None:
    harbour.world.say(harbour.ana, harbour.general, "before")
    harbour.general.overwrites[harbour.guild.id] = SimOverwrite(harbour.guild.id, 0, P(0), P.READ_MESSAGE_HISTORY)
    async with running(harbour.discord, harbour.ada, Bot) as bot:
        assert [each async for each in text_channel(bot, harbour.general).history()] == []


async def test_nobody_acts_on_who_stands_above(harbour: DiscordFixture) -> None:
    low = harbour.guild.add_role("low")
    harbour.guild.set_roles(harbour.ben, [low])
    harbour.guild.leave(harbour.ada.user)
    harbour.guild.join(harbour.ada.user, [P.MANAGE_ROLES | P.KICK_MEMBERS | P.MANAGE_NICKNAMES])
    top = harbour.guild.add_role("top")
    high = harbour.guild.roles[next(each for each in harbour.guild.members[harbour.ada.id].roles)]
    low.position, high.position, top.position = 1, 2, 3
    async with running(harbour.discord, harbour.ada, Bot) as bot:
        guild = bot.guilds[0]
        ben = await guild.fetch_member(harbour.ben.id)
        await ben.edit(nick="Benny")
        await ben.remove_roles(discord.Object(low.id))
        with pytest.raises(discord.Forbidden):
            await ben.add_roles(discord.Object(top.id))
        with pytest.raises(discord.Forbidden):
            await guild.kick(discord.Object(harbour.ana.id))
        with pytest.raises(discord.Forbidden):
            await guild.create_role(name="x", permissions=discord.Permissions(ban_members=True))
        await guild.kick(discord.Object(harbour.ben.id))
        assert harbour.ben.id not in harbour.guild.members


async def test_a_message_of_others_is_edited_by_nobody_and_deleted_by_moderators(harbour: DiscordFixture) -> None:
    said = harbour.world.say(harbour.ana, harbour.general, "mine")
    async with running(harbour.discord, harbour.ada, Bot) as bot:
        message = await text_channel(bot, harbour.general).fetch_message(said.id)
        for act, number in (
            (lambda: message.edit(content="yours"), 50005),
            (message.delete, 50013),
            (message.pin, 50013),
        ):
            with pytest.raises(discord.Forbidden) as caught:
                await act()
            assert caught.value.code == number


async def test_of_a_hidden_channel_a_bot_learns_nothing_but_that_it_is_there(harbour: DiscordFixture) -> None:
    category = harbour.guild.add_channel("staff", kind="category", private_to=[])
    hidden = harbour.guild.add_channel("plans", category=category, topic="the plan")
    thread = harbour.world.open_thread(harbour.ana, hidden, "inside")
    keeper = harbour.world.add_application("Keeper")
    harbour.guild.join(keeper.user, [P.ADMINISTRATOR])
    crew = harbour.guild.add_role("crew")
    async with (
        running(harbour.discord, harbour.ada, Bot) as bot,
        running(harbour.discord, keeper, Bot) as warden,
    ):
        guild, all_of_it = bot.guilds[0], warden.guilds[0]

        def name() -> str:
            return text_channel(bot, hidden).name

        def is_hidden() -> bool:
            seen = text_channel(bot, hidden)
            closed = not seen.permissions_for(guild.me).view_channel
            return (name(), seen.topic, closed, guild.get_thread(thread.id)) == ("___hidden___", None, True, None)

        assert is_hidden()
        assert {each.name for each in await guild.fetch_channels()} == {"general"}
        await text_channel(warden, hidden).set_permissions(all_of_it.default_role, view_channel=True)
        await harbour.discord.until(lambda: name() == "plans" and guild.get_thread(thread.id))
        assert {each.name for each in await guild.fetch_channels()} == {"general", "plans", "staff"}
        await text_channel(warden, hidden).set_permissions(all_of_it.default_role, view_channel=False)
        await harbour.discord.until(lambda: name() == "___hidden___")
        rank = all_of_it.get_role(crew.id)
        assert rank is not None
        await text_channel(warden, hidden).set_permissions(rank, view_channel=True)
        harbour.guild.set_roles(harbour.ada.user, [crew])
        await harbour.discord.until(lambda: name() == "plans")
        harbour.world.say(harbour.ana, hidden, "come in")
        await harbour.discord.until(lambda: bot.texts == ["come in"])
        await rank.delete()
        await harbour.discord.until(lambda: name() == "___hidden___")
