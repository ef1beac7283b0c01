"""Role menus: buttons or a menu by which members give themselves roles, without a model.

Made by somebody who may give all of its roles. It goes on when its maker may not any more, as what moderators set up
does: whoever manages messages there can delete it. Each press is checked again, against the message, which only the
account can have written and which Discord keeps, and against what the account may do now. A role with power over others
is never for the taking, also when it got that power later.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import anyio
import discord

from denizen.adapters.discord.acting.hand import Hand
from denizen.adapters.discord.acting.lookup import find_role, load_channel
from denizen.adapters.discord.acting.menus import Option, list_buttons, offered, to_view
from denizen.adapters.discord.acting.writing import Written, post
from denizen.adapters.discord.faults import RESPONSE_TIMEOUT_S, speaking
from denizen.adapters.discord.permissions import menu_name
from denizen.domain.errors import NotAllowed, NotFound
from denizen.domain.json import JsonObject

_BUTTON = re.compile(r"(?P<kind>role|only):(?P<role>\d+)")
_MENU = "roles"
_POWERS = (
    "administrator",
    "ban_members",
    "kick_members",
    "manage_channels",
    "manage_emojis_and_stickers",
    "manage_events",
    "manage_guild",
    "manage_messages",
    "manage_nicknames",
    "manage_roles",
    "manage_threads",
    "manage_webhooks",
    "mention_everyone",
    "moderate_members",
    "move_members",
    "mute_members",
    "deafen_members",
    "view_audit_log",
    "view_guild_insights",
)


async def post_role_menu(
    hand: Hand, roles: Sequence[str], text: str, channel: str = "", style: str = "buttons", *, only_one: bool = False
) -> JsonObject:
    """`only_one`: of these roles a member has one at most."""
    where = await load_channel(hand, channel)
    hand.require("manage_roles")
    found = list(dict.fromkeys(find_role(hand, each) for each in roles))
    for role in found:
        hand.require_below(role)
        _require_powerless(role)
    kind = "only" if only_one else "role"
    values = [str(role.id) if style == "menu" else f"{kind}:{role.id}" for role in found]
    view = to_view([Option(role.name) for role in found], values, style, (_MENU, 0, 1 if only_one else len(found)))
    return await post(hand, where, Written(text, view=view))


def is_role_menu(custom_id: str) -> bool:
    return custom_id == _MENU or _BUTTON.fullmatch(custom_id) is not None


async def choose_roles(client: discord.Client, interaction: discord.Interaction, data: Mapping[str, Any]) -> str:
    """Gives and takes what the press says, and returns what its member is told. Raises NotAllowed, NotFound, and the
    errors of a channel.
    """
    message, member = interaction.message, interaction.user
    guild = interaction.guild
    is_mine = message is not None and client.user is not None and message.author.id == client.user.id
    if message is None or guild is None or not is_mine or not isinstance(member, discord.Member):
        raise NotFound("This menu is of no use any more.", code="discord_menu_gone")
    listed, wanted, is_toggle = _read(message, data)
    held = {role.id for role in member.roles}
    if is_toggle:
        wanted -= held
    taken = (held & listed) - wanted
    if not guild.me.guild_permissions.manage_roles:
        raise NotAllowed("I may not give roles any more.", code="discord_not_permitted", fix="Tell a moderator.")
    given = [_get_role(guild, each) for each in sorted(wanted - held)]
    with speaking("give that role"), anyio.fail_after(RESPONSE_TIMEOUT_S):
        for role in given:
            await member.add_roles(role, reason="Chosen in a role menu")
        for each in sorted(taken):
            if (old := guild.get_role(each)) is not None:
                await member.remove_roles(old, reason="Chosen in a role menu")
    names = {True: [role.name for role in given], False: [r.name for r in map(guild.get_role, sorted(taken)) if r]}
    told = [f"You have now: {', '.join(names[True])}."] if names[True] else []
    told += [f"You no longer have: {', '.join(names[False])}."] if names[False] else []
    return " ".join(told) or "Nothing changes."


def _read(message: discord.Message, data: Mapping[str, Any]) -> tuple[set[int], set[int], bool]:
    """Which roles the press is about, which of them are chosen, and whether choosing what one has takes it away."""
    custom_id = str(data["custom_id"])
    if custom_id == _MENU:
        listed = {int(each) for each in offered(message, custom_id)}
        return listed, {int(each) for each in data.get("values", ())} & listed, False
    buttons = [found for each in list_buttons(message) if (found := _BUTTON.fullmatch(each.custom_id or ""))]
    pressed = next((each for each in buttons if each.group() == custom_id), None)
    if pressed is None:
        raise NotFound("This menu is of no use any more.", code="discord_menu_gone")
    chosen = int(pressed["role"])
    listed = {int(each["role"]) for each in buttons} if pressed["kind"] == "only" else {chosen}
    return listed, {chosen}, True


def _get_role(guild: discord.Guild, role_id: int) -> discord.Role:
    role = guild.get_role(role_id)
    if role is None or role.is_default() or role.managed or role >= guild.me.top_role:
        raise NotAllowed("I cannot give that role any more.", code="discord_rank", fix="Tell a moderator.")
    _require_powerless(role)
    return role


def _require_powerless(role: discord.Role) -> None:
    power = next((each for each in _POWERS if getattr(role.permissions, each)), None)
    if power is not None:
        raise NotAllowed(
            f"The role '{role.name}' has power over others ('{menu_name(power)}'), so it is not for the taking.",
            code="discord_powerful_role",
        )
