"""The members of a guild as far as the account knows them: whether that is all, and who somebody is now.

discord.py keeps a mirror of a guild. It holds every member, and hears of every change, only with the members intent and
while the gateway is connected; what it holds otherwise may be old. `audience` and `names` ask here before they believe.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import anyio
import anyio.lowlevel
import discord

from denizen.adapters.discord.faults import VENDOR_ERRORS
from denizen.domain.errors import Unavailable

_FETCH_TIMEOUT_S = 5.0
_MEMBERS_AT_ONCE = 1000


def is_live(client: discord.Client, guild: discord.Guild) -> bool:
    """Whether changes in the guild reach us now, so that the mirror is as things are."""
    if guild.unavailable or client.is_closed():
        return False
    if isinstance(client, discord.AutoShardedClient):
        shard = client.get_shard(guild.shard_id)
        return shard is not None and not shard.is_closed()
    return bool(client.ws) and client.ws.open


def knows_all_members(client: discord.Client, guild: discord.Guild) -> bool:
    """Whether the mirror holds every member, with the roles of this moment."""
    return client.intents.members and guild.chunked


async def find_member(client: discord.Client, guild: discord.Guild, user_id: int) -> discord.Member | None:
    """The member as of now: from the mirror when it is complete, else fetched. None for strangers, and when Discord
    does not answer.
    """
    try:
        return await get_member(client, guild, user_id)
    except Unavailable:
        return None


async def get_member(client: discord.Client, guild: discord.Guild, user_id: int) -> discord.Member | None:
    """As `find_member`, but None for strangers only: raises Unavailable when Discord does not answer."""
    if knows_all_members(client, guild):
        return guild.get_member(user_id)
    try:
        with anyio.fail_after(_FETCH_TIMEOUT_S):
            return await guild.fetch_member(user_id)
    except discord.NotFound:
        return None
    except (*VENDOR_ERRORS, TimeoutError) as error:
        raise Unavailable("Discord does not say who is there.", code="discord_member", fix="Try again.") from error


async def slowly(members: Sequence[discord.Member]) -> AsyncIterator[discord.Member]:
    """Those who were there at the start. Others get their turn in between: a guild may have a million members."""
    everybody = list(members)
    for start in range(0, len(everybody), _MEMBERS_AT_ONCE):
        await anyio.lowlevel.checkpoint()
        for member in everybody[start : start + _MEMBERS_AT_ONCE]:
            yield member
