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


def may(sim: DiscordFixture, user: SimUser, channel: SimChannel, needed: DiscordPermission) -> bool:
    return bool(permissions_in(sim.world.store, channel, user) & needed)


async def test_overwrites_go_from_everyone_over_roles_to_the_member(sim: DiscordFixture) -> None:
    crew = sim.guild.add_role("crew")
    sim.guild.set_roles(sim.ben, [crew])
    channel = sim.general

    def put(target: int, kind: int, allow: DiscordPermission, deny: DiscordPermission) -> None:
        channel.overwrites[target] = SimOverwrite(target, kind, allow, deny)

    assert may(sim, sim.ben, channel, P.SEND_MESSAGES)
    put(sim.guild.id, 0, P(0), P.SEND_MESSAGES)
    assert not may(sim, sim.ben, channel, P.SEND_MESSAGES)
    assert not may(sim, sim.ben, channel, P.ATTACH_FILES)
    put(crew.id, 0, P.SEND_MESSAGES, P(0))
    assert may(sim, sim.ben, channel, P.SEND_MESSAGES)
    put(sim.ben.id, 1, P(0), P.VIEW_CHANNEL)
    assert permissions_in(sim.world.store, channel, sim.ben) == P(0)
    assert may(sim, sim.ana, channel, P.ADMINISTRATOR)


async def test_administrators_and_the_owner_may_everything_and_strangers_nothing(sim: DiscordFixture) -> None:
    hidden = sim.guild.add_channel("hidden", private_to=[])
    stranger = sim.world.add_person("Cy")
    assert may(sim, sim.ana, hidden, P.MANAGE_CHANNELS)
    assert not may(sim, sim.ben, hidden, P.VIEW_CHANNEL)
    assert permissions_in(sim.world.store, sim.general, stranger) == P(0)
    sim.guild.set_roles(sim.ben, [sim.guild.add_role("admin", permissions=P.ADMINISTRATOR)])
    assert may(sim, sim.ben, hidden, P.MANAGE_CHANNELS)


async def test_a_channel_takes_the_overwrites_of_its_category_and_a_thread_those_of_its_channel(
    sim: DiscordFixture,
) -> None:
    category = sim.guild.add_channel("staff", kind="category", private_to=[sim.ben])
    inside = sim.guild.add_channel("inside", category=category)
    thread = sim.world.open_thread(sim.ben, inside, "talk")
    assert may(sim, sim.ben, thread, P.SEND_MESSAGES_IN_THREADS)
    assert not may(sim, sim.ada.user, thread, P.VIEW_CHANNEL)


async def test_a_member_in_time_out_only_reads(sim: DiscordFixture) -> None:
    until = sim.world.store.clock.now() + timedelta(minutes=5)
    sim.guild.members[sim.ben.id].timeout_until = until
    with pytest.raises(RefusedError) as caught:
        sim.world.say(sim.ben, sim.general, "but")
    assert caught.value.number == 50013


async def test_a_bot_without_rights_is_refused_with_the_right_number(sim: DiscordFixture) -> None:
    hidden = sim.guild.add_channel("hidden", private_to=[])
    mute = sim.guild.add_channel("mute", overwrites=[SimOverwrite(sim.guild.id, 0, P(0), P.SEND_MESSAGES)])
    secret = sim.world.say(sim.ana, hidden, "secret")
    async with running(sim.discord, sim.ada, Bot) as bot:
        for act, number in (
            (lambda: bot.fetch_channel(hidden.id), 50001),
            (lambda: bot.http.get_message(hidden.id, secret.id), 50001),
            (lambda: text_channel(bot, mute).send("x"), 50013),
            (lambda: bot.fetch_guild(1), 10004),
            (lambda: bot.guilds[0].create_text_channel("x"), 50013),
            (lambda: bot.guilds[0].create_role(name="x"), 50013),
            (lambda: bot.guilds[0].kick(discord.Object(sim.ben.id)), 50013),
        ):
            with pytest.raises(discord.HTTPException) as caught:
                await act()
            assert caught.value.code == number


async def test_history_needs_its_own_right(sim: DiscordFixture) -> None:
    sim.world.say(sim.ana, sim.general, "before")
    sim.general.overwrites[sim.guild.id] = SimOverwrite(sim.guild.id, 0, P(0), P.READ_MESSAGE_HISTORY)
    async with running(sim.discord, sim.ada, Bot) as bot:
        assert [each async for each in text_channel(bot, sim.general).history()] == []


async def test_nobody_acts_on_who_stands_above(sim: DiscordFixture) -> None:
    low = sim.guild.add_role("low")
    sim.guild.set_roles(sim.ben, [low])
    sim.guild.leave(sim.ada.user)
    sim.guild.join(sim.ada.user, [P.MANAGE_ROLES | P.KICK_MEMBERS | P.MANAGE_NICKNAMES])
    top = sim.guild.add_role("top")
    high = sim.guild.roles[next(each for each in sim.guild.members[sim.ada.id].roles)]
    low.position, high.position, top.position = 1, 2, 3
    async with running(sim.discord, sim.ada, Bot) as bot:
        guild = bot.guilds[0]
        ben = await guild.fetch_member(sim.ben.id)
        await ben.edit(nick="Benny")
        await ben.remove_roles(discord.Object(low.id))
        with pytest.raises(discord.Forbidden):
            await ben.add_roles(discord.Object(top.id))
        with pytest.raises(discord.Forbidden):
            await guild.kick(discord.Object(sim.ana.id))
        with pytest.raises(discord.Forbidden):
            await guild.create_role(name="x", permissions=discord.Permissions(ban_members=True))
        await guild.kick(discord.Object(sim.ben.id))
        assert sim.ben.id not in sim.guild.members


async def test_a_message_of_others_is_edited_by_nobody_and_deleted_by_moderators(sim: DiscordFixture) -> None:
    said = sim.world.say(sim.ana, sim.general, "mine")
    async with running(sim.discord, sim.ada, Bot) as bot:
        message = await text_channel(bot, sim.general).fetch_message(said.id)
        for act, number in (
            (lambda: message.edit(content="yours"), 50005),
            (message.delete, 50013),
            (message.pin, 50013),
        ):
            with pytest.raises(discord.Forbidden) as caught:
                await act()
            assert caught.value.code == number


async def test_of_a_hidden_channel_a_bot_learns_nothing_but_that_it_is_there(sim: DiscordFixture) -> None:
    category = sim.guild.add_channel("staff", kind="category", private_to=[])
    hidden = sim.guild.add_channel("plans", category=category, topic="the plan")
    thread = sim.world.open_thread(sim.ana, hidden, "inside")
    keeper = sim.world.add_application("Keeper")
    sim.guild.join(keeper.user, [P.ADMINISTRATOR])
    crew = sim.guild.add_role("crew")
    async with running(sim.discord, sim.ada, Bot) as bot, running(sim.discord, keeper, Bot) as keeper_bot:
        guild, all_of_it = bot.guilds[0], keeper_bot.guilds[0]

        def name() -> str:
            return text_channel(bot, hidden).name

        def is_hidden() -> bool:
            seen = text_channel(bot, hidden)
            closed = not seen.permissions_for(guild.me).view_channel
            return (name(), seen.topic, closed, guild.get_thread(thread.id)) == ("___hidden___", None, True, None)

        assert is_hidden()
        assert {each.name for each in await guild.fetch_channels()} == {"general"}
        await text_channel(keeper_bot, hidden).set_permissions(all_of_it.default_role, view_channel=True)
        await sim.discord.until(lambda: name() == "plans" and guild.get_thread(thread.id))
        assert {each.name for each in await guild.fetch_channels()} == {"general", "plans", "staff"}
        await text_channel(keeper_bot, hidden).set_permissions(all_of_it.default_role, view_channel=False)
        await sim.discord.until(lambda: name() == "___hidden___")
        rank = all_of_it.get_role(crew.id)
        assert rank is not None
        await text_channel(keeper_bot, hidden).set_permissions(rank, view_channel=True)
        sim.guild.set_roles(sim.ada.user, [crew])
        await sim.discord.until(lambda: name() == "plans")
        sim.world.say(sim.ana, hidden, "come in")
        await sim.discord.until(lambda: bot.texts == ["come in"])
        await rank.delete()
        await sim.discord.until(lambda: name() == "___hidden___")
