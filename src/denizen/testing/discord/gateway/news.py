"""One event for bots: its name, the intents that let it through, who may know of it, and its body for each of them.

Pure: the modules beside this one look at the realm and say what there is to send; `gateway.sessions` sends it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from denizen.testing.discord.payloads.people import Payload, member_payload
from denizen.testing.discord.state.access import sees
from denizen.testing.discord.state.channels import Channel
from denizen.testing.discord.state.guilds import Guild
from denizen.testing.discord.state.intents import Intent
from denizen.testing.discord.state.people import Application
from denizen.testing.discord.state.realm import Realm

ALWAYS = Intent(0)


@dataclass(frozen=True, slots=True)
class Ear:
    """One who listens: an application with the intents of its session."""

    application: Application
    intents: Intent


@dataclass(frozen=True, slots=True)
class News:
    """One event. It goes to sessions with one of `intents` (none needed when 0) whose ear `reaches` accepts; those of
    a guild only to the shard of that guild, the rest to shard 0.
    """

    name: str
    intents: Intent
    guild_id: int | None
    reaches: Callable[[Ear], bool]
    body: Callable[[Ear], Payload]


def in_channel(realm: Realm, channel: Channel) -> Callable[[Ear], bool]:
    return lambda ear: sees(realm, ear.application.user, channel)


def in_guild(guild: Guild) -> Callable[[Ear], bool]:
    return lambda ear: ear.application.id in guild.members


def either(channel: Channel, in_guild: Intent, direct: Intent) -> Intent:
    return direct if channel.is_dm else in_guild


def place(channel: Channel) -> Payload:
    """`channel_id`, and `guild_id` in a guild."""
    place: Payload = {"channel_id": str(channel.id)}
    return place if channel.guild_id is None else place | {"guild_id": str(channel.guild_id)}


def member_part(realm: Realm, channel: Channel, user_id: int) -> Payload:
    guild = realm.guild_of(channel)
    member = guild.members.get(user_id) if guild else None
    return {"member": member_payload(member)} if member else {}
