"""Actions on roles themselves. `members` gives them to people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import discord

from denizen.adapters.discord.actions.context import ActionContext, list_names, read_permissions, require_held
from denizen.adapters.discord.actions.lookup import find_created, find_role
from denizen.adapters.discord.guild.members import knows_all_members
from denizen.domain.errors import InvalidInput
from denizen.domain.json import Json, JsonObject

# The gateway usually reports a new role at once. The action succeeds without it, too.
_TOLD_WITHIN_S = 3.0


async def list_roles(context: ActionContext) -> JsonObject:
    """Lists the roles, highest first, with the permissions that they give beyond those of everybody. `members` is -1
    when not all members are known.
    """
    everyone = context.guild.default_role.permissions.value
    counted = knows_all_members(context.client, context.guild)
    rows: list[Json] = [
        {
            "id": str(role.id),
            "name": role.name,
            "members": len(role.members) if counted else -1,
            "permissions": list[Json](
                ["Administrator"]
                if role.permissions.administrator
                else list_names(discord.Permissions(role.permissions.value & ~everyone))
            ),
            "is_managed": role.managed,
        }
        for role in reversed(context.guild.roles)
    ]
    return {"roles": rows}


async def create_role(
    context: ActionContext,
    name: str,
    *,
    permissions: Sequence[str] = (),
    color: str = "",
    hoist: bool = False,
    mentionable: bool = False,
    since: str = "",
) -> JsonObject:
    """Creates a role at the bottom of the list, with no permission that the asker or the account lacks. `since` (an ISO
    time) makes a retry safe: a younger role of the same name counts as the one that an earlier try created.
    """
    context.require("manage_roles")
    granted = read_permissions(permissions)
    require_held(context, granted)
    made = find_created(await context.guild.fetch_roles(), name, since) if since else None
    if made is None:
        made = await context.guild.create_role(
            name=name,
            permissions=granted,
            colour=_colour(color) if color else discord.Colour.default(),
            hoist=hoist,
            mentionable=mentionable,
            reason=context.reason(),
        )
        await _wait_until_known(context, made)
    return {"id": str(made.id), "name": made.name}


async def edit_role(  # noqa: PLR0913 - as Discord's own form
    context: ActionContext,
    role: str,
    *,
    name: str = "",
    allow: Sequence[str] = (),
    forbid: Sequence[str] = (),
    color: str = "",
    hoist: bool | None = None,
    mentionable: bool | None = None,
) -> JsonObject:
    """Changes the given fields of a role. Permissions are added and removed one by one."""
    context.require("manage_roles")
    found = find_role(context, role)
    context.require_below(found)
    added, taken = read_permissions(allow), read_permissions(forbid)
    if added.value & taken.value:
        raise InvalidInput("A permission is either allowed or forbidden.", code="discord_nothing_to_do")
    wanted = discord.Permissions((found.permissions.value | added.value) & ~taken.value)
    require_held(context, discord.Permissions(wanted.value ^ found.permissions.value))
    changes: dict[str, Any] = {"name": name.strip()} if name.strip() else {}
    if added.value or taken.value:
        changes["permissions"] = wanted
    if color:
        changes["colour"] = _colour(color)
    if hoist is not None:
        changes["hoist"] = hoist
    if mentionable is not None:
        changes["mentionable"] = mentionable
    if not changes:
        raise InvalidInput("The role would stay as it is.", code="discord_nothing_to_do", fix="Say what is to change.")
    await found.edit(**changes, reason=context.reason())
    return {"id": str(found.id), "name": changes.get("name", found.name)}


async def delete_role(context: ActionContext, role: str, reason: str = "") -> JsonObject:
    context.require("manage_roles")
    found = find_role(context, role)
    context.require_below(found)
    await found.delete(reason=context.reason(reason))
    return {"id": str(found.id), "name": found.name}


def _colour(text: str) -> discord.Colour:
    try:
        return discord.Colour.from_str(text if not text[:1].isalnum() else f"#{text}")
    except ValueError:
        raise InvalidInput(f"'{text[:30]}' is no colour.", code="discord_bad_colour", fix="Write #1E90FF.") from None


async def _wait_until_known(context: ActionContext, role: discord.Role) -> None:
    """Waits until the gateway has told discord.py of a new role, since the next action may be about it."""

    def is_it(told: discord.Role) -> bool:
        return told.id == role.id

    if context.guild.get_role(role.id) is None:
        with anyio.move_on_after(_TOLD_WITHIN_S):
            await context.client.wait_for("guild_role_create", check=is_it)
