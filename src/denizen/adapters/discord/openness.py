"""Whether a room is for everybody of its guild: only such a room may be shown to people of whom nothing is known."""

from __future__ import annotations

import discord

from denizen.adapters.discord.members import is_live
from denizen.adapters.discord.visibility import needed_for, room_behind, rules_of, surely_open
from denizen.domain.errors import Unavailable
from denizen.domain.room import Room


def is_open(client: discord.Client, room: Room) -> bool:
    """Whether everybody in the guild may read the room now, whoever they are: also those who join it next. Not what is
    only for adults, and not the text of a voice channel. Raises Unavailable while nothing is known of the guild.
    """
    guild = client.get_guild(int(room.guild)) if room.guild.isdecimal() else None
    if guild is None or not is_live(client, guild):
        raise Unavailable("The server cannot be reached at the moment.", code="discord_guild_away", fix="Try again.")
    channel = guild.get_channel_or_thread(int(room.id)) if room.id.isdecimal() else None
    if isinstance(channel, discord.Thread) and channel.is_private():
        return False
    behind = room_behind(channel)
    if behind is None or behind.is_nsfw():
        return False
    return surely_open(rules_of(behind), guild.default_role.permissions.value, needed_for(behind))
