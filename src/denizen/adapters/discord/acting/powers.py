"""Permissions by name, and the checks that nobody hands out what they do not have. Used by the other modules here."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import discord

from denizen.adapters.discord.acting.hand import GuildPlace, Hand
from denizen.adapters.discord.permissions import menu_name
from denizen.domain.errors import InvalidInput, NotAllowed

_BY_NAME = {
    words: name
    for name in discord.Permissions.VALID_FLAGS
    for words in (name.replace("_", " "), menu_name(name).casefold())
}


def read_permissions(names: Sequence[str]) -> discord.Permissions:
    """By discord.py's names or those of Discord's menus. Raises InvalidInput for a name that is neither."""
    found = discord.Permissions.none()
    for each in names:
        folded = " ".join(each.replace("_", " ").split()).casefold()
        name = _BY_NAME.get(folded)
        if name is None:
            near = difflib.get_close_matches(folded, _BY_NAME, n=3)
            raise InvalidInput(
                f"Discord has no permission '{each[:60]}'.",
                code="discord_no_permission",
                fix=f"Like it are: {', '.join(near)}." if near else "Use the name from Discord's menus.",
            )
        setattr(found, name, True)
    return found


def list_names(permissions: discord.Permissions) -> list[str]:
    """As Discord's menus call them."""
    return sorted({menu_name(name) for name, granted in permissions if granted})


def require_held(hand: Hand, wanted: discord.Permissions, where: GuildPlace | None = None) -> None:
    """Raises NotAllowed unless both have all of these there, or in the whole guild: nobody gives, takes or clears what
    they do not have themselves. Bits that this version of discord.py has no name for count as well.
    """
    for member, who in ((hand.asker, "You"), (hand.me, "I")):
        held = where.permissions_for(member) if where is not None else member.guild_permissions
        lacking = 0 if held.administrator else wanted.value & ~held.value
        if lacking:
            names = ", ".join(list_names(discord.Permissions(lacking))) or "one that is new"
            raise NotAllowed(
                f"{who} cannot give or take permissions that {'you' if who == 'You' else 'I'} do not have: {names}.",
                code="discord_not_yours_to_give",
                fix="Leave these out, or ask somebody who has them.",
            )


def require_administrators(hand: Hand, what: str) -> None:
    """Raises NotAllowed unless both are administrators of the guild."""
    if not (hand.asker.guild_permissions.administrator and hand.me.guild_permissions.administrator):
        raise NotAllowed(f"Only administrators may {what}, and I must be one, too.", code="discord_not_permitted")
