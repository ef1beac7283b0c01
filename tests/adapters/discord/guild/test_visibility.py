"""The arithmetic of visibility against discord.py's own, on guilds at random."""

from __future__ import annotations

import itertools
from random import Random
from typing import Any

import anyio
import discord
import pytest
from hypothesis import given, settings

from denizen.adapters.discord.guild.audience import list_visible_rooms
from denizen.adapters.discord.guild.visibility import (
    CONNECT,
    HISTORY,
    MANAGE_THREADS,
    READ,
    VIEW,
    GuildRoom,
    ProfileBuilder,
    compute_permissions,
    covers_all_readers,
    get_needed_permissions,
    read_overwrites,
)
from denizen.domain.conversation import Place
from denizen.domain.principal import Principal, PrincipalKind
from tests.adapters.discord.guild.random_guild import (
    GUILD,
    ME,
    ROLES,
    SEEDS,
    TEXT,
    client_with,
    guild_payload,
    random_guild,
    user,
)


def reads(channel: discord.abc.GuildChannel, member: discord.Member) -> bool:
    held = channel.permissions_for(member)
    may_join = held.connect or not isinstance(channel, discord.VoiceChannel | discord.StageChannel)
    return held.view_channel and held.read_message_history and may_join


def find_expected(guild: discord.Guild, place: discord.abc.GuildChannel, asker: discord.Member) -> set[int]:
    """The same question, asked of discord.py for every member and room."""
    readers = [each for each in guild.members if each.id != ME and place.permissions_for(each).view_channel] + [asker]
    rooms = [each for each in guild.channels if not isinstance(each, discord.CategoryChannel)]
    seen = {room.id for room in rooms if all(reads(room, each) for each in readers)}
    for each in guild.threads:
        inside = {member.id for member in each.members}
        parent = each.parent
        if parent is None or parent.id not in seen:
            continue
        if not each.is_private() or (
            parent.permissions_for(guild.me).manage_threads
            and all(reader.id in inside or parent.permissions_for(reader).manage_threads for reader in readers)
        ):
            seen.add(each.id)
    return seen | {place.id}


@given(SEEDS)
@settings(max_examples=200)
def test_exactly_those_rooms_are_found_that_every_reader_may_read(seed: int):
    client = client_with(random_guild(Random(seed)))
    guild = client.guilds[0]
    asker = Random(seed).choice([each for each in guild.members if each.id != ME])
    principal = Principal(PrincipalKind.PLATFORM_USER, f"discord:{asker.id}", "asker")

    async def ask() -> None:
        for place in [each for each in guild.channels if isinstance(each, GuildRoom)]:
            found = await list_visible_rooms(client, Place("discord", str(place.id)), principal)
            assert {int(each) for each in found} == find_expected(guild, place, asker)

    anyio.run(ask)


@given(SEEDS)
@settings(max_examples=200)
def test_the_permissions_are_those_of_discord_py(seed: int):
    guild = client_with(random_guild(Random(seed))).guilds[0]
    rooms = [each for each in guild.channels if isinstance(each, GuildRoom)]
    register = ProfileBuilder(guild, [read_overwrites(each) for each in rooms])
    for room, member in itertools.product(rooms, guild.members):
        theirs = room.permissions_for(member)
        ours = compute_permissions(read_overwrites(room), register.profile_for(member))
        assert bool(ours & VIEW) == theirs.view_channel
        assert bool(ours & HISTORY) == theirs.read_message_history
        assert bool(ours & MANAGE_THREADS) == theirs.manage_threads
        if isinstance(room, discord.VoiceChannel):
            assert bool(ours & CONNECT) == theirs.connect


@given(SEEDS)
@settings(max_examples=200)
def test_what_is_sure_without_knowing_the_members_holds_for_all_of_them(seed: int):
    guild = client_with(random_guild(Random(seed))).guilds[0]
    everyone = guild.default_role.permissions.value
    rooms = [each for each in guild.channels if isinstance(each, GuildRoom)]
    for place, room in itertools.product(rooms, rooms):
        if covers_all_readers(read_overwrites(room), read_overwrites(place), everyone, get_needed_permissions(room)):
            for member in guild.members:
                assert reads(room, member) or not place.permissions_for(member).view_channel


def test_what_is_open_to_all_is_sure():
    """The rule above is not kept by refusing everything."""
    room = {"id": "2001", "type": TEXT, "name": "room", "position": 1, "permission_overwrites": []}
    private = {"id": str(GUILD), "type": 0, "allow": "0", "deny": str(VIEW)}
    letting_in = {"id": str(ROLES[0]), "type": 0, "allow": str(VIEW), "deny": "0"}
    closed = [room | {"id": each, "permission_overwrites": [private, letting_in]} for each in ("2002", "2003")]
    everyone = VIEW | HISTORY
    guild = client_with(guild_payload([(GUILD, everyone)], [], [room, *closed], [])).guilds[0]
    rules = [read_overwrites(each) for each in guild.channels if isinstance(each, GuildRoom)]
    answers = [[covers_all_readers(one, other, everyone, READ) for other in rules] for one in rules]
    assert answers == [[True, True, True], [False, True, True], [False, True, True]]


@pytest.mark.anyio
async def test_others_get_their_turn_while_a_large_guild_is_looked_at():
    client = client_with(large_guild(members=5_000, rooms=40))
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        group.start_soon(others)
        asker = Principal(PrincipalKind.PLATFORM_USER, "discord:10", "asker")
        assert "2001" in await list_visible_rooms(client, Place("discord", "2001"), asker)
        group.cancel_scope.cancel()
    assert turns >= 5 + 40


def large_guild(*, members: int, rooms: int) -> dict[str, Any]:
    """Roles at random but always the same, and different rules in every room."""
    roles = [(GUILD, VIEW | HISTORY | CONNECT), *((1001 + number, 0) for number in range(20))]
    people = [
        {
            "user": user(each),
            "roles": [str(1001 + (each * factor) % 20) for factor in (1, 7, 13)],
            "joined_at": "2026-01-01T00:00:00+00:00",
            "deaf": False,
            "mute": False,
            "flags": 0,
        }
        for each in [ME, *range(10, 10 + members)]
    ]
    channels = [
        {
            "id": str(2001 + number),
            "type": TEXT,
            "name": f"room{number}",
            "position": number,
            "permission_overwrites": [
                {"id": str(1001 + (number * factor) % 20), "type": 0, "allow": str(VIEW), "deny": str(HISTORY)}
                for factor in (1, 3)
            ]
            + [{"id": str(10 + number), "type": 1, "allow": str(READ), "deny": "0"}],
        }
        for number in range(rooms)
    ]
    return guild_payload(roles, people, channels, [])
