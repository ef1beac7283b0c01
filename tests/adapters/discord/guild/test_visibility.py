"""The arithmetic of visibility against discord.py's own, on guilds at random."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import anyio
import discord
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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

GUILD, ME, OWNER = 1000, 1, 2
MANAGE_MESSAGES = discord.Permissions(manage_messages=True).value
ADMINISTRATOR = discord.Permissions(administrator=True).value
PEOPLE = range(2, 10)
ROLES = range(1001, 1006)
ROOMS = range(2001, 2008)
THREADS = range(3001, 3005)
TEXT, VOICE, CATEGORY, STAGE, FORUM = 0, 2, 4, 13, 15
PUBLIC, PRIVATE = 11, 12

SEEDS = st.integers(min_value=0, max_value=2**32)
SOME = (VIEW, HISTORY, CONNECT, MANAGE_THREADS, MANAGE_MESSAGES)
LATE = (datetime.now(UTC) + timedelta(hours=1)).isoformat()


class ConnectedSocket:
    """Stands for a gateway connection that is up."""

    open = True


def user(number: int) -> Any:
    return {"id": str(number), "username": f"user{number}", "discriminator": "0", "avatar": None, "bot": number == ME}


def bits(chance: Random) -> int:
    return sum(each for each in SOME if chance.random() < 0.3)


def some(chance: Random, numbers: Sequence[int], most: int) -> list[int]:
    return chance.sample(numbers, chance.randint(0, most))


def overwrites(chance: Random) -> list[dict[str, Any]]:
    return [
        {"id": str(each), "type": 1 if each in PEOPLE else 0, "allow": str(bits(chance)), "deny": str(bits(chance))}
        for each in some(chance, [GUILD, *ROLES, *PEOPLE], 4)
    ]


def random_guild(chance: Random) -> dict[str, Any]:
    """A GUILD_CREATE of a small guild in which anything may be set."""
    shared = [overwrites(chance) for _ in range(2)]
    powers = [ADMINISTRATOR if chance.random() < 0.1 else bits(chance) for _ in ROLES]
    everyone = chance.choice([VIEW | HISTORY | CONNECT, VIEW | HISTORY, VIEW, 0])
    members = [
        {
            "user": user(each),
            "roles": [str(role) for role in some(chance, ROLES, 3)],
            "joined_at": "2026-01-01T00:00:00+00:00",
            "communication_disabled_until": LATE if chance.random() < 0.2 else None,
            "pending": chance.random() < 0.2,
            "deaf": False,
            "mute": False,
            "flags": 0,
        }
        for each in [ME, PEOPLE[1], *some(chance, [PEOPLE[0], *PEOPLE[2:]], 6)]
    ]
    rooms = [
        {
            "id": str(each),
            "type": chance.choice([TEXT, TEXT, TEXT, VOICE, STAGE, FORUM, CATEGORY]),
            "name": f"room{each}",
            "position": each,
            "bitrate": 64_000,
            "user_limit": 0,
            "available_tags": [],
            "default_reaction_emoji": None,
            "permission_overwrites": chance.choice([*shared, overwrites(chance)]),
        }
        for each in ROOMS
    ]
    threads = [thread(chance, each) for each in THREADS]
    return guild_payload([(GUILD, everyone), *zip(ROLES, powers, strict=True)], members, rooms, threads)


def guild_payload(
    roles: list[tuple[int, int]], members: list[dict[str, Any]], rooms: list[dict[str, Any]], threads: list[Any]
) -> dict[str, Any]:
    return {
        "id": str(GUILD),
        "name": "Harbour",
        "owner_id": str(OWNER),
        "member_count": len(members),
        "members": members,
        "roles": [
            {"id": str(number), "name": f"role{number}", "permissions": str(power), "position": 1, "color": 0}
            | {"colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None}, "hoist": False}
            | {"managed": False, "mentionable": False, "flags": 0}
            for number, power in roles
        ],
        "channels": rooms,
        "threads": threads,
        "verification_level": 0,
        "default_message_notifications": 0,
        "explicit_content_filter": 0,
        "mfa_level": 0,
        "nsfw_level": 0,
        "premium_tier": 0,
        "preferred_locale": "en-US",
        "system_channel_flags": 0,
        "afk_timeout": 300,
        "features": [],
        "emojis": [],
        "stickers": [],
        "premium_progress_bar_enabled": False,
    }


def thread(chance: Random, number: int) -> dict[str, Any]:
    return {
        "id": str(number),
        "type": chance.choice([PUBLIC, PRIVATE]),
        "name": f"thread{number}",
        "parent_id": str(chance.choice(ROOMS)),
        "owner_id": str(OWNER),
        "message_count": 0,
        "member_count": 0,
        "thread_metadata": {
            "archived": False,
            "auto_archive_duration": 60,
            "archive_timestamp": "2026-01-01T00:00:00+00:00",
            "locked": False,
        },
        "inside": some(chance, PEOPLE, 6),
    }


def client_with(payload: Any) -> discord.Client:
    """A client whose mirror holds that guild, as if the gateway had told it."""
    client = discord.Client(intents=discord.Intents.all())
    line: Any = ConnectedSocket()
    client.ws = line
    state = client._connection
    state.user = discord.ClientUser(state=state, data=user(ME))
    guild = state._add_guild_from_data(payload)
    for each in payload["threads"]:
        known = guild.get_thread(int(each["id"]))
        assert known is not None
        for member in each.get("inside", ()):
            row: Any = {
                "id": each["id"],
                "user_id": str(member),
                "join_timestamp": "2026-01-01T00:00:00+00:00",
                "flags": 0,
            }
            known._add_member(discord.ThreadMember(known, row))
    return client


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
