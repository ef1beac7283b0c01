"""Whether a channel is for everybody of its guild, through a real client of a simulated Discord."""

from __future__ import annotations

from dataclasses import replace

import pytest

from denizen.adapters.discord.guild.audience import is_open
from denizen.domain.errors import Unavailable
from denizen.domain.room import Room
from denizen.testing.discord import DiscordPermission, SimChannel
from denizen.testing.discord.state.channels import SimOverwrite
from tests.adapters.discord.client_fixture import ClientFixture, open_client

pytestmark = pytest.mark.anyio


def make_room(at: ClientFixture, channel: SimChannel) -> Room:
    return Room("discord", str(channel.id), channel.name or "", guild=str(at.guild.id))


def list_open(at: ClientFixture, *channels: SimChannel) -> list[str]:
    """Names of those that are open."""
    return [channel.name or "" for channel in channels if is_open(at.client, make_room(at, channel))]


async def test_only_what_nobody_is_kept_from_is_open() -> None:
    async with open_client() as at:
        crew, muted = at.guild.add_role("crew"), at.guild.add_role("muted")
        view, history = DiscordPermission.VIEW_CHANNEL, DiscordPermission.READ_MESSAGE_HISTORY
        rooms = [
            at.general,
            at.guild.add_channel("bridge", private_to=[crew]),
            at.guild.add_channel("denied-to-some", overwrites=[SimOverwrite(muted.id, 0, DiscordPermission(0), view)]),
            at.guild.add_channel("denied-to-ben", overwrites=[SimOverwrite(at.ben.id, 1, DiscordPermission(0), view)]),
            at.guild.add_channel(
                "no-history", overwrites=[SimOverwrite(at.guild.id, 0, DiscordPermission(0), history)]
            ),
            at.guild.add_channel("adults", nsfw=True),
            at.guild.add_channel("voice", kind="voice"),
            at.guild.add_channel("forum", kind="forum"),
            at.guild.add_channel("allowed-twice", overwrites=[SimOverwrite(crew.id, 0, view, DiscordPermission(0))]),
        ]
        await at.settle()
        assert list_open(at, *rooms) == ["general", "forum", "allowed-twice"]


async def test_a_channel_is_open_or_closed_as_it_is_at_that_moment() -> None:
    async with open_client() as at:
        square, channels = at.guild.add_channel("square"), at.server.acts.channels
        await at.settle()
        assert list_open(at, square) == ["square"]
        channels.set_overwrite(
            at.ana, square, SimOverwrite(at.guild.id, 0, DiscordPermission(0), DiscordPermission.VIEW_CHANNEL)
        )
        await at.settle()
        assert list_open(at, square) == []
        channels.delete_overwrite(at.ana, square, at.guild.id)
        await at.settle()
        assert list_open(at, square) == ["square"]
        channels.delete(at.ana, square)
        await at.settle()
        assert list_open(at, square) == []


async def test_a_guild_in_which_only_roles_may_view_has_no_open_channel() -> None:
    async with open_client() as at:
        seeing = at.guild.add_role(
            "seeing", permissions=DiscordPermission.VIEW_CHANNEL | DiscordPermission.READ_MESSAGE_HISTORY
        )
        at.guild.set_roles(at.ada.user, [seeing])
        at.guild.everyone.permissions &= ~DiscordPermission.VIEW_CHANNEL
        at.guild.set_available(available=False)
        at.guild.set_available(available=True)
        await at.settle()
        assert list_open(at, at.general) == []


async def test_private_threads_are_never_open_and_public_ones_are_as_their_channel() -> None:
    async with open_client() as at:
        lunch = at.world.open_thread(at.ana, at.general, "lunch")
        plans = at.world.open_thread(at.ana, at.general, "plans", private=True)
        at.server.acts.threads.add_member(at.ana, plans, at.ada.user)
        await at.settle()
        assert list_open(at, lunch, plans) == ["lunch"]


async def test_what_is_not_known_now_is_not_said() -> None:
    async with open_client() as at:
        await at.settle()
        general = make_room(at, at.general)
        for room in (replace(general, guild=""), replace(general, guild="12345")):
            with pytest.raises(Unavailable):
                is_open(at.client, room)
        at.guild.set_available(available=False)
        await at.server.until(lambda: at.client.guilds[0].unavailable)
        with pytest.raises(Unavailable):
            is_open(at.client, general)
