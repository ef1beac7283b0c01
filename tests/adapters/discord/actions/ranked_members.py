"""Who stands where in the sim, for actions that take rights: Ana owns it, Mo moderates, Ben is a member, Cy stands
above Mo, and Ada's own role has rights of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from denizen.testing.discord import DiscordPermission, SimGuild, SimRole, SimUser
from tests.adapters.discord.account_fixture import AccountFixture

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
class RankedMembers:
    """Roles from below: crew, mods, captains, Ada's."""

    mo: SimUser
    cy: SimUser
    crew: SimRole
    mods: SimRole
    captains: SimRole
    own: SimRole


def add_ranked_members(sim: AccountFixture, theirs: DiscordPermission, mine: DiscordPermission) -> RankedMembers:
    """`theirs` is what mods may beyond everybody, `mine` what Ada may."""
    guild, world = sim.guild, sim.world
    mo, cy = world.add_person("Mo"), world.add_person("Cy")
    own = next(role for role in guild.roles.values() if role.bot_id == sim.ada.id)
    own.permissions = mine
    captains, mods = add_role(guild, "captains", P(0)), add_role(guild, "mods", theirs)
    crew = add_role(guild, "crew", P(0))
    guild.join(mo, [mods])
    guild.join(cy, [captains])
    guild.set_roles(sim.ben, [crew])
    return RankedMembers(mo=mo, cy=cy, crew=crew, mods=mods, captains=captains, own=own)


def add_role(guild: SimGuild, name: str, permissions: DiscordPermission) -> SimRole:
    """Below all others."""
    return guild.add_role(name, permissions=permissions)


def list_direct_texts(sim: AccountFixture, user: SimUser) -> list[str]:
    """What they were told in private."""
    talks = [each for each in sim.world.channels if each.is_dm and user in each.recipients]
    return [text for talk in talks for text in talk.texts]


def writes(sim: AccountFixture) -> list[str]:
    """What was changed on Discord, direct messages included; opening a talk changes nothing."""
    changes = [each for each in sim.discord.requests if each.method != "GET" and each.applied]
    return [str(each) for each in changes if not re.search("@me/channels|commands", each.path)]


def get_audit_reason(sim: AccountFixture, method: str, part: str) -> str:
    """What the audit log was told by the latest request of that kind."""
    requests = reversed(sim.discord.requests)
    return next(each.reason for each in requests if each.method == method and part in each.path)
