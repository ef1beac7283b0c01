"""The application behind a token: its user, its privileged intents, and the permissions that it needs in a guild.

`load_application` asks over REST, before the gateway connects. `sending` uses the permission names to tell people
what is missing when Discord refuses something.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Iterable
from contextlib import asynccontextmanager
from typing import cast

import anyio
import discord

from denizen.adapters.discord.client.errors import RESPONSE_TIMEOUT_S, explain_refused_token, translate_errors
from denizen.adapters.discord.client.settings import PORTAL_URL, DiscordAccountSettings
from denizen.domain.errors import NeedsAttention, Unavailable
from denizen.domain.record import record

NEEDED_PERMISSIONS = {
    "view_channel": "View Channel",
    "send_messages": "Send Messages",
    "send_messages_in_threads": "Send Messages in Threads",
    "read_message_history": "Read Message History",
    "embed_links": "Embed Links",
    "attach_files": "Attach Files",
    "add_reactions": "Add Reactions",
    "create_public_threads": "Create Public Threads",
}
"""The permissions that an account needs: discord.py's name to the name in Discord's menus."""

_MENU_NAMES = {
    "manage_guild": "Manage Server",
    "manage_expressions": "Manage Expressions",
    "moderate_members": "Timeout Members",
    "use_application_commands": "Use Application Commands",
    "create_instant_invite": "Create Invite",
    "send_polls": "Create Polls",
    "mention_everyone": "Mention @everyone, @here, and All Roles",
}
"""Names in the menus that differ from discord.py's."""

# Without `applications.commands` the guild would not show the slash commands.
SCOPES = ("bot", "applications.commands")


def invite_url(application_id: str) -> str:
    """Returns the link by which a guild's owner invites the account, with exactly the permissions that it needs."""
    needed = discord.Permissions(**dict.fromkeys(NEEDED_PERMISSIONS, True))
    return discord.utils.oauth_url(application_id, permissions=needed, scopes=SCOPES)


def menu_name(permission: str) -> str:
    """Returns the name of a permission as Discord's menus show it."""
    return NEEDED_PERMISSIONS.get(permission) or _MENU_NAMES.get(permission) or permission.replace("_", " ").title()


def list_missing_permissions(client: discord.Client, channel_id: int, needed: Collection[str]) -> tuple[str, ...]:
    """Returns the menu names of the needed permissions that the account lacks; all of them for an unknown channel."""
    channel = client.get_channel(channel_id)
    if channel is None or isinstance(channel, discord.abc.PrivateChannel):
        return tuple(NEEDED_PERMISSIONS[name] for name in needed)
    if isinstance(channel, discord.Thread) and channel.parent is None:
        return tuple(NEEDED_PERMISSIONS[name] for name in needed)
    me = cast("discord.Member | None", channel.guild.me)  # None while the guild is unavailable
    missing = find_missing_permissions(channel.permissions_for(me), needed) if me is not None else ()
    return missing or tuple(NEEDED_PERMISSIONS[name] for name in needed)


def find_missing_permissions(held: discord.Permissions, needed: Iterable[str] = NEEDED_PERMISSIONS) -> tuple[str, ...]:
    """Returns the needed permissions that are not held, by their menu names."""
    return tuple(NEEDED_PERMISSIONS[name] for name in needed if not getattr(held, name))


discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False  # accounts without a voice need neither

MESSAGE_CONTENT = "Message Content Intent"
SERVER_MEMBERS = "Server Members Intent"


@record
class DiscordApplication:
    """An application as Discord describes it. `content` and `members` are the intents that the portal has enabled.

    `diverts_commands` is true when the portal sends commands to a URL, so that they never reach the account.
    """

    id: str
    user_id: str
    user_name: str
    content: bool
    members: bool
    diverts_commands: bool = False


@asynccontextmanager
async def log_in(settings: DiscordAccountSettings) -> AsyncGenerator[discord.Client]:
    """Yields a client that is logged in over REST and never connects to the gateway.

    Raises NeedsAttention for a refused token, and Unavailable when Discord cannot be reached.
    """
    client = discord.Client(intents=discord.Intents(guilds=True), max_messages=None)
    async with client:
        with translate_errors("log in"), anyio.fail_after(RESPONSE_TIMEOUT_S):
            try:
                await client.login(settings.token)
            except discord.LoginFailure:
                raise explain_refused_token(settings.token_setting) from None
        yield client


async def load_application(settings: DiscordAccountSettings) -> DiscordApplication:
    """Logs in and returns the application. Raises the errors of `log_in`."""
    async with log_in(settings) as client:
        return read_application(client)


def read_application(client: discord.Client) -> DiscordApplication:
    """Returns the application of a client that is logged in."""
    about, user = client.application, client.user
    if about is None or user is None:
        raise Unavailable("The account is not logged in.", code="discord_not_connected")
    flags = about.flags
    return DiscordApplication(
        id=str(about.id),
        user_id=str(user.id),
        user_name=user.name,
        content=flags.gateway_message_content or flags.gateway_message_content_limited,
        members=flags.gateway_guild_members or flags.gateway_guild_members_limited,
        diverts_commands=about.interactions_endpoint_url is not None,
    )


def choose_intents(application: DiscordApplication, settings: DiscordAccountSettings) -> discord.Intents:
    """Returns the intents to ask for. Never more than the portal grants, or Discord closes the connection."""
    intents = discord.Intents.none()
    intents.guilds = True
    intents.guild_messages = True
    intents.guild_reactions = True
    intents.dm_messages = True
    intents.message_content = application.content
    intents.members = application.members and settings.members_intent
    intents.voice_states = settings.has_voice
    return intents


def explain_refused_intents(intents: discord.Intents, application: DiscordApplication) -> NeedsAttention:
    """Returns the error for close code 4014: an intent was asked for that the portal does not grant."""
    wanted = [MESSAGE_CONTENT] if intents.message_content else []
    wanted += [SERVER_MEMBERS] if intents.members else []
    names = " and ".join(wanted) or MESSAGE_CONTENT
    return NeedsAttention(
        "Discord refused the account's intents.",
        code="discord_intents_refused",
        why=f"The application does not have: {names}.",
        fix=f"Switch on {names} at {intents_page_url(application)}. If the account is not in the server yet, invite "
        f"it: {invite_url(application.id)}",
    )


def explain_missing_content(application: DiscordApplication) -> str:
    """Returns what to do so that the account can read messages."""
    return (
        "Mentions are answered all the same; followed threads, replies, keywords and the archive need it. "
        f"Switch on {MESSAGE_CONTENT} at {intents_page_url(application)}; it holds from the account's next "
        "login on."
    )


def explain_missing_members(application: DiscordApplication) -> str:
    """Returns what to do so that the account hears of members."""
    return (
        f"Listeners on discord.member.* wait in vain. Switch on {SERVER_MEMBERS} at {intents_page_url(application)}; "
        "it holds from the account's next login on."
    )


def intents_page_url(application: DiscordApplication) -> str:
    """Returns the page of the portal on which intents are enabled."""
    return f"{PORTAL_URL}/{application.id}/bot > Privileged Gateway Intents"
