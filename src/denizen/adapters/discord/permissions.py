"""Which permissions an account needs, what they are called in Discord's menus, and the link that grants them.

Read by `check`, and by `sending` when Discord refused something and people have to be told what is missing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import cast

import discord

NEEDED = {
    "view_channel": "View Channel",
    "send_messages": "Send Messages",
    "send_messages_in_threads": "Send Messages in Threads",
    "read_message_history": "Read Message History",
    "embed_links": "Embed Links",
    "attach_files": "Attach Files",
    "add_reactions": "Add Reactions",
    "create_public_threads": "Create Public Threads",
}
"""discord.py's name to the name in the menus."""

_MENU_NAMES = {
    "manage_guild": "Manage Server",
    "manage_expressions": "Manage Expressions",
    "moderate_members": "Timeout Members",
    "use_application_commands": "Use Application Commands",
    "create_instant_invite": "Create Invite",
    "send_polls": "Create Polls",
    "mention_everyone": "Mention @everyone, @here, and All Roles",
}
"""Where the menu differs from discord.py's name."""

SCOPES = ("bot", "applications.commands")


def invite_url(application_id: str) -> str:
    """Where the owner of a guild lets the account in, with exactly the permissions that it needs."""
    needed = discord.Permissions(**dict.fromkeys(NEEDED, True))
    return discord.utils.oauth_url(application_id, permissions=needed, scopes=SCOPES)


def menu_name(permission: str) -> str:
    """What discord.py's name of a permission is called in Discord's menus."""
    return NEEDED.get(permission) or _MENU_NAMES.get(permission) or permission.replace("_", " ").title()


def list_missing(client: discord.Client, channel_id: int, needed: Collection[str]) -> tuple[str, ...]:
    """Those of the needed permissions that the account lacks there, as the menus call them; all when nobody knows."""
    channel = client.get_channel(channel_id)
    if channel is None or isinstance(channel, discord.abc.PrivateChannel):
        return tuple(NEEDED[name] for name in needed)
    if isinstance(channel, discord.Thread) and channel.parent is None:
        return tuple(NEEDED[name] for name in needed)
    me = cast("discord.Member | None", channel.guild.me)  # None while the guild is unavailable
    missing = missing_of(channel.permissions_for(me), needed) if me is not None else ()
    return missing or tuple(NEEDED[name] for name in needed)


def missing_of(held: discord.Permissions, needed: Iterable[str] = NEEDED) -> tuple[str, ...]:
    """The needed ones that are not held, as the menus call them."""
    return tuple(NEEDED[name] for name in needed if not getattr(held, name))
