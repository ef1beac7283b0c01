"""Finding rooms: the one with an id, and all that the account can read now.

Called by `events`, `interactions` and `sending`. What a room is in our terms is told by `intake.to_room`.
"""

from __future__ import annotations

from typing import TypeAlias, cast

import anyio.lowlevel
import discord

from denizen.adapters.discord.faults import speaking
from denizen.adapters.discord.intake import to_room
from denizen.domain.errors import NotFound
from denizen.domain.room import Room

_AT_A_TIME = 100
"""Rooms looked at before others may run."""

Somewhere: TypeAlias = discord.abc.GuildChannel | discord.Thread | discord.abc.PrivateChannel
Talk: TypeAlias = discord.TextChannel | discord.VoiceChannel | discord.StageChannel | discord.Thread | discord.DMChannel
"""Holds messages itself."""


async def get_channel(client: discord.Client, channel_id: int) -> Somewhere:
    """From memory, else from Discord (an archived thread, a direct talk). Raises NotFound and the other errors."""
    known = client.get_channel(channel_id)
    if known is not None:
        return known
    with speaking("open that channel"):
        return await client.fetch_channel(channel_id)


async def get_talk(client: discord.Client, channel_id: int) -> Talk:
    """As `get_channel`, for one that holds messages."""
    channel = await get_channel(client, channel_id)
    if not isinstance(channel, Talk):
        raise NotFound("There are no messages in that channel.", code="discord_no_talk")
    return channel


async def list_readable(client: discord.Client) -> list[Room]:
    """Channels, forums and open threads of all guilds whose messages and history the account may read.

    Direct talks are not among them: Discord does not tell which there are.
    """
    rooms: list[Room] = []
    looked_at = 0
    for guild in tuple(client.guilds):
        for channel in list_channels(guild):
            if is_readable(channel):
                rooms.append(to_room(channel))
            looked_at += 1
            if looked_at % _AT_A_TIME == 0:
                await anyio.lowlevel.checkpoint()
    return rooms


def list_channels(guild: discord.Guild) -> list[discord.abc.GuildChannel | discord.Thread]:
    """Where messages can be, forums included; readable or not."""
    channels = [each for each in guild.channels if not isinstance(each, discord.CategoryChannel)]
    return [*channels, *guild.threads]


def is_readable(channel: discord.abc.GuildChannel | discord.Thread) -> bool:
    """By the permissions of this moment. A thread counts by its parent."""
    me = cast("discord.Member | None", channel.guild.me)  # None while the guild is unavailable
    if me is None or (isinstance(channel, discord.Thread) and channel.parent is None):
        return False
    held = channel.permissions_for(me)
    return held.view_channel and held.read_message_history
