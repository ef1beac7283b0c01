"""Small guilds in which anything may be set at random, as the gateway tells of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import discord
from hypothesis import strategies as st

from denizen.adapters.discord.guild.visibility import CONNECT, HISTORY, MANAGE_THREADS, VIEW

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
