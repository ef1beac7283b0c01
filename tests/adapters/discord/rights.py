"""Who stands where in the harbour, for actions that take rights: Ana owns it, Mo moderates, Ben is a member, Cy stands
above Mo, and Ada's own role has rights of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from denizen.testing.discord import DiscordPermission, SimGuild, SimRole, SimUser
from tests.adapters.discord.listening import Harbour

P = DiscordPermission
MODERATING = P.MODERATE_MEMBERS | P.KICK_MEMBERS | P.BAN_MEMBERS | P.MANAGE_MESSAGES | P.MANAGE_NICKNAMES
RUNNING = (
    P.MANAGE_CHANNELS
    | P.MANAGE_ROLES
    | P.MANAGE_GUILD
    | P.MANAGE_WEBHOOKS
    | P.MANAGE_GUILD_EXPRESSIONS
    | P.CREATE_GUILD_EXPRESSIONS
    | P.CREATE_EVENTS
    | P.MANAGE_EVENTS
    | P.MANAGE_THREADS
)


@dataclass(frozen=True, slots=True)
class Crew:
    """Roles from below: crew, mods, captains, Ada's."""

    mo: SimUser
    cy: SimUser
    crew: SimRole
    mods: SimRole
    captains: SimRole
    own: SimRole


def muster(harbour: Harbour, theirs: DiscordPermission, mine: DiscordPermission) -> Crew:
    """`theirs` is what mods may beyond everybody, `mine` what Ada may."""
    guild, world = harbour.guild, harbour.world
    mo, cy = world.add_person("Mo"), world.add_person("Cy")
    own = next(role for role in guild.roles.values() if role.bot_id == harbour.ada.id)
    own.permissions = mine
    captains, mods = add_role(guild, "captains", P(0)), add_role(guild, "mods", theirs)
    crew = add_role(guild, "crew", P(0))
    guild.join(mo, [mods])
    guild.join(cy, [captains])
    guild.set_roles(harbour.ben, [crew])
    return Crew(mo, cy, crew, mods, captains, own)


def add_role(guild: SimGuild, name: str, permissions: DiscordPermission) -> SimRole:
    """Below all others."""
    return guild.add_role(name, permissions=permissions)


def texts_to(harbour: Harbour, user: SimUser) -> list[str]:
    """What they were told in private."""
    talks = [each for each in harbour.world.channels if each.is_dm and user in each.recipients]
    return [text for talk in talks for text in talk.texts]


def writes(harbour: Harbour) -> list[str]:
    """What was changed on Discord, direct messages included; opening a talk changes nothing."""
    changes = [each for each in harbour.discord.requests if each.method != "GET" and each.applied]
    return [str(each) for each in changes if not re.search("@me/channels|commands", each.path)]


def reason_of(harbour: Harbour, method: str, part: str) -> str:
    """What the audit log was told by the latest request of that kind."""
    requests = reversed(harbour.discord.requests)
    return next(each.reason for each in requests if each.method == method and part in each.path)
