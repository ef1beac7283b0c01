"""Which rooms are deleted, though nobody told: it happened while the account was away.

That the gateway does not list a room proves nothing: a thread may be archived, a channel hidden from the account, a
whole guild away. So only what Discord says itself when it is asked for the room counts (10003, unknown channel); of a
hidden one it says 50001. Called by `account`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import anyio
import discord

from denizen.adapters.discord.faults import RESPONSE_TIMEOUT_S, UNKNOWN_CHANNEL, VENDOR_ERRORS, fault_of
from denizen.adapters.discord.members import is_live
from denizen.domain.room import Room, RoomKind


async def find_deleted(client: discord.Client, rooms: Sequence[Room]) -> frozenset[str]:
    """As `ports.channel.Channel.find_deleted`. Private threads are not asked for by themselves: they are for their
    members. A request for each room that is not listed; archived threads come a hundred at a time.
    """
    of_guilds: defaultdict[str, list[Room]] = defaultdict(list)
    for room in rooms:
        of_guilds[room.guild].append(room)
    found: set[str] = set()
    for guild_id, theirs in of_guilds.items():
        guild = client.get_guild(int(guild_id)) if guild_id.isdecimal() else None
        if guild is not None and is_live(client, guild):
            found |= await _find_in_guild(client, guild, theirs)
    return frozenset(found)


async def _find_in_guild(client: discord.Client, guild: discord.Guild, rooms: Sequence[Room]) -> set[str]:
    absent = [room for room in rooms if room.id.isdecimal() and guild.get_channel_or_thread(int(room.id)) is None]
    deleted = {room.id for room in absent if not room.is_thread and await _is_deleted(client, room.id)}
    of_channels: defaultdict[str, list[str]] = defaultdict(list)
    for room in absent:
        if room.kind is RoomKind.THREAD and room.parent.isdecimal() and room.parent not in deleted:
            of_channels[room.parent].append(room.id)
    for parent, threads in of_channels.items():
        channel = guild.get_channel(int(parent))
        if isinstance(channel, discord.TextChannel | discord.ForumChannel):
            archived = await _list_archived(channel)
            deleted |= {each for each in threads if each not in archived and await _is_deleted(client, each)}
    return deleted


async def _list_archived(channel: discord.TextChannel | discord.ForumChannel) -> set[str]:
    try:
        return {str(thread.id) async for thread in channel.archived_threads(limit=None)}
    except discord.Forbidden:
        return set()
    except VENDOR_ERRORS as error:
        raise fault_of(error, "list archived threads") from None


async def _is_deleted(client: discord.Client, room_id: str) -> bool:
    try:
        with anyio.fail_after(RESPONSE_TIMEOUT_S):
            await client.http.get_channel(int(room_id))
    except (discord.NotFound, discord.Forbidden) as error:
        return error.code == UNKNOWN_CHANNEL
    except VENDOR_ERRORS as error:
        raise fault_of(error, "ask for a channel") from None
    return False
