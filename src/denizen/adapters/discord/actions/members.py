"""Actions on members that are not against them: lookup, nicknames, roles, direct messages."""

from __future__ import annotations

from typing import Any

import discord

from denizen.adapters.discord.actions.context import ActionContext, require_held
from denizen.adapters.discord.actions.lookup import find_member, find_role
from denizen.adapters.discord.guild.members import knows_all_members
from denizen.domain.errors import InvalidInput, NotAllowed, Unavailable
from denizen.domain.ids import derive
from denizen.domain.json import Json, JsonObject
from denizen.domain.words import truncate

PAGE = 50
# Discord rejects longer nonces.
_NONCE_CHARS = 25


async def member_info(context: ActionContext, member: str = "") -> JsonObject:
    """Describes a member; the asker for an empty text. Shows a time-out only to those who may end it."""
    found = await find_member(context, member) if member.strip() else context.asker
    roles = [role.name for role in reversed(found.roles) if not role.is_default()]
    until = found.timed_out_until if found.is_timed_out() else None
    may_know = context.asker.guild_permissions.moderate_members or context.asker.guild_permissions.administrator
    return describe_name(found) | {
        "display_name": found.display_name,
        "is_bot": found.bot,
        "is_owner": found.id == context.guild.owner_id,
        "created_at": found.created_at.isoformat(timespec="minutes"),
        "joined_at": found.joined_at.isoformat(timespec="minutes") if found.joined_at else "",
        "roles": list[Json](roles),
        "timed_out_until": until.isoformat(timespec="minutes") if until and may_know else "",
    }


async def list_members(context: ActionContext, role: str = "", name: str = "", page: int = 1) -> JsonObject:
    """Lists a page of members by display name. `name` matches part of any of their names, `total` counts all."""
    if knows_all_members(context.client, context.guild):
        among = list(context.guild.members)
    elif name.strip() and not role:
        among = await context.guild.query_members(name.strip(), limit=100, cache=False)
    else:
        raise Unavailable(
            "I do not know all members of this server.",
            code="discord_members_unknown",
            fix="Search by the beginning of a name, or switch on the Server Members intent in the developer portal.",
        )
    wanted = find_role(context, role) if role.strip() else None
    folded = name.strip().lstrip("@").strip('"').casefold()
    fitting = [
        each
        for each in among
        if (wanted is None or wanted in each.roles)
        and (folded in each.name.casefold() or folded in each.display_name.casefold())
    ]
    fitting.sort(key=lambda each: (each.display_name.casefold(), each.id))
    shown = fitting[(page - 1) * PAGE : page * PAGE]
    rows: list[Json] = [describe_name(each) | {"display_name": each.display_name, "is_bot": each.bot} for each in shown]
    return {"members": rows, "total": len(fitting), "pages": -(-len(fitting) // PAGE)}


async def set_nickname(context: ActionContext, member: str, nickname: str = "", reason: str = "") -> JsonObject:
    """Sets a member's nickname; an empty one removes it. Members who may change their own nickname may ask for it."""
    target = await find_member(context, member)
    if target.id == context.asker.id:  # the account must rank above them, but they need not manage nicknames
        context.require_asker("change_nickname")
        mine = context.me.guild_permissions
        is_below = target.id != context.guild.owner_id and target.top_role < context.me.top_role
        if not is_below or not (mine.manage_nicknames or mine.administrator):
            raise NotAllowed(
                "I may not change your name: it takes the permission 'Manage Nicknames' and a role above yours.",
                code="discord_not_permitted",
                fix="Change it yourself in your profile for this server.",
            )
    else:
        context.require("manage_nicknames")
        context.require_above(target)
    await target.edit(nick=nickname.strip() or None, reason=context.reason(reason))
    return describe_name(target)


async def add_role(context: ActionContext, member: str, role: str, reason: str = "") -> JsonObject:
    """Gives a member a role. The role must not hold more permissions than the asker and the account do."""
    target, given = await _find_pair(context, member, role)
    require_held(context, given.permissions)
    await target.add_roles(given, reason=context.reason(reason))
    return describe_name(target) | {"role": str(given.id)}


async def remove_role(context: ActionContext, member: str, role: str, reason: str = "") -> JsonObject:
    target, taken = await _find_pair(context, member, role)
    await target.remove_roles(taken, reason=context.reason(reason))
    return describe_name(target) | {"role": str(taken.id)}


async def send_direct_message(context: ActionContext, member: str, text: str) -> JsonObject:
    """Sends a direct message to the asker; to others only with the right to moderate.

    Nobody can see whether a member has blocked the asker, so the account must not become a way around a block. The
    message says who asked for it.
    """
    target = await find_member(context, member)
    if target.id == context.asker.id:
        await send_dm(context, target, text)
    else:
        context.require_asker("moderate_members")
        if target.bot:
            raise InvalidInput("Bots get no direct messages.", code="discord_is_bot")
        await send_dm(context, target, f"{context.asker.display_name} of {context.guild.name} wrote:\n{text}")
    return describe_name(target)


async def send_dm(
    context: ActionContext, member: discord.Member, text: str, view: discord.ui.View | None = None
) -> None:
    """Sends a direct message. A repeated one soon after yields the first message, so a retried action writes once.
    Raises discord.Forbidden when the member takes none.
    """
    options: dict[str, Any] = {"allowed_mentions": discord.AllowedMentions.none()}
    if context.warrant.key:
        options["nonce"] = derive("n", context.warrant.key, str(member.id))[:_NONCE_CHARS]
    if view is not None:
        options["view"] = view
    await member.send(truncate(text, 2000), **options)


def describe_name(member: discord.Member) -> dict[str, Json]:
    """Returns the id and the account name, which Discord limits to plain characters, unlike a display name."""
    return {"id": str(member.id), "name": member.name}


async def _find_pair(context: ActionContext, member: str, role: str) -> tuple[discord.Member, discord.Role]:
    """Finds the member and the role, and checks the right to assign it. As on Discord itself, an asker may give
    themselves roles, but only below their own.
    """
    context.require("manage_roles")
    target, given = await find_member(context, member), find_role(context, role)
    context.require_below(given)
    if target.id != context.asker.id:
        context.require_above(target)
    return target, given
