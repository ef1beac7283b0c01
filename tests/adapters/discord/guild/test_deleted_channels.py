"""Which rooms were deleted while nobody told, through a real client of a simulated Discord."""

from __future__ import annotations

from collections.abc import Sequence

import discord
import pytest

from denizen.adapters.discord.guild.audience import find_deleted
from denizen.domain.errors import Unavailable
from denizen.domain.room import Room, RoomKind
from denizen.testing.discord import SimChannel
from tests.adapters.discord.client_fixture import ClientFixture, open_client

pytestmark = pytest.mark.anyio


def make_room(at: ClientFixture, channel: SimChannel, kind: RoomKind = RoomKind.CHANNEL) -> Room:
    parent = str(channel.parent.id) if channel.parent is not None and channel.is_thread else ""
    return Room("discord", str(channel.id), channel.name or "", kind, str(at.guild.id), parent=parent)


async def list_deleted(at: ClientFixture, rooms: Sequence[Room]) -> list[str]:
    deleted = await find_deleted(at.client, rooms)
    return [room.name for room in rooms if room.id in deleted]


async def test_only_what_discord_says_is_unknown_is_deleted_not_what_is_hidden_or_archived() -> None:
    async with open_client(intents=discord.Intents.default()) as at:
        world, guild = at.world, at.guild
        hidden, old, forum = (
            guild.add_channel("hidden", private_to=[at.ana]),
            guild.add_channel("old"),
            guild.add_channel("forum", kind="forum"),
        )
        threads = [world.open_thread(at.ana, at.general, name) for name in ("open", "archived", "dropped")]
        threads += [world.open_thread(at.ana, forum, name, text="hello") for name in ("solved", "spam")]
        inside = world.open_thread(at.ana, at.general, "inside", private=True)
        within = world.open_thread(at.ana, old, "within")
        rooms = [
            *(make_room(at, each) for each in (at.general, hidden, old)),
            make_room(at, forum, RoomKind.FORUM),
            *(make_room(at, each, RoomKind.THREAD) for each in threads),
            make_room(at, within, RoomKind.THREAD),
            make_room(at, inside, RoomKind.PRIVATE_THREAD),
        ]
        await at.settle()
        assert await list_deleted(at, rooms) == []
        for thread in (threads[1], threads[3]):
            world.archive(at.ana, thread)
        for each in (threads[2], threads[4], inside, old):
            world.delete_channel(each)
        await at.settle()
        assert await list_deleted(at, rooms) == ["old", "dropped", "spam"]  # what was within goes with its channel


async def test_nothing_is_deleted_while_its_guild_is_away_or_discord_does_not_answer() -> None:
    async with open_client(intents=discord.Intents.default()) as at:
        old = at.guild.add_channel("old")
        room = make_room(at, old)
        await at.settle()
        at.world.delete_channel(old)
        await at.settle()
        assert await list_deleted(at, [room]) == ["old"]
        at.server.faults.drop("GET", r"/channels/\d+$", times=2)  # aiohttp tries once more
        with pytest.raises(Unavailable):
            await list_deleted(at, [room])
        at.server.faults.fail("GET", r"/channels/\d+$", status=404)  # somebody in between says that
        assert await list_deleted(at, [room]) == []
        at.guild.set_available(available=False)
        await at.server.until(lambda: at.client.guilds[0].unavailable)
        assert await list_deleted(at, [room]) == []
        assert (
            await list_deleted(
                at, [Room("discord", "1", "elsewhere", guild="2"), Room("github", "x", "x", guild="x/y")]
            )
            == []
        )
