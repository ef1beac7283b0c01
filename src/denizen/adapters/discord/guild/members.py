"""The members of a guild: whether the account knows all of them, who somebody is now, and whom an @Name may mean.

discord.py's cache holds every member, and hears of every change, only with the members intent and while the gateway
is connected; otherwise it may be stale. `audience` and `find_names` ask here before they rely on it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import AsyncIterator, Iterable, Sequence

import anyio
import anyio.lowlevel
import discord

from denizen.adapters.discord.client.errors import VENDOR_ERRORS
from denizen.adapters.discord.guild.visibility import GuildRoom, find_guild_room
from denizen.domain.conversation import Place
from denizen.domain.errors import Unavailable
from denizen.ports.channel import MentionNames

# Somebody waits for the answer, and without the member it is still given.
_FETCH_TIMEOUT_S = 5.0
# The number of members that are processed before other tasks may run.
_MEMBERS_AT_ONCE = 1000


def is_live(client: discord.Client, guild: discord.Guild) -> bool:
    """Whether changes in the guild reach the account now, so that the cache is current."""
    if guild.unavailable or client.is_closed():
        return False
    if isinstance(client, discord.AutoShardedClient):
        shard = client.get_shard(guild.shard_id)
        return shard is not None and not shard.is_closed()
    return bool(client.ws) and client.ws.open


def require_live(client: discord.Client, guild: discord.Guild | None) -> discord.Guild:
    """Returns the guild. Raises Unavailable unless `is_live`."""
    if guild is None or not is_live(client, guild):
        raise Unavailable("The server cannot be reached at the moment.", code="discord_guild_away", fix="Try again.")
    return guild


def knows_all_members(client: discord.Client, guild: discord.Guild) -> bool:
    """Whether the cache holds every member, with current roles."""
    return client.intents.members and guild.chunked


async def find_member(client: discord.Client, guild: discord.Guild, user_id: int) -> discord.Member | None:
    """Returns the current member, from a complete cache or fetched. None for strangers, and when Discord is silent."""
    try:
        return await get_member(client, guild, user_id)
    except Unavailable:
        return None


async def get_member(client: discord.Client, guild: discord.Guild, user_id: int) -> discord.Member | None:
    """Like `find_member`, but raises Unavailable when Discord does not answer."""
    if knows_all_members(client, guild):
        return guild.get_member(user_id)
    try:
        with anyio.fail_after(_FETCH_TIMEOUT_S):
            return await guild.fetch_member(user_id)
    except discord.NotFound:
        return None
    except (*VENDOR_ERRORS, TimeoutError) as error:
        raise Unavailable("Discord does not say who is there.", code="discord_member", fix="Try again.") from error


async def iterate_in_batches(members: Sequence[discord.Member]) -> AsyncIterator[discord.Member]:
    """Yields the members that were there at the start, and lets other tasks run between: a guild may have a million."""
    everybody = list(members)
    for start in range(0, len(everybody), _MEMBERS_AT_ONCE):
        await anyio.lowlevel.checkpoint()
        for member in everybody[start : start + _MEMBERS_AT_ONCE]:
            yield member


# A text with more @ signs than this is not worth the search.
_MAX_CALLS = 50
_MAX_NAME_CHARS = 64
_MAX_QUERIES = 3
_QUERY_TIMEOUT_S = 3.0
_QUERY_LIMIT = 20


async def find_names(client: discord.Client, place: Place, text: str) -> MentionNames:
    """Returns whom an @Name in the text may mean: members by display, global and user name, and mentionable roles.

    An ambiguous name is left out, unless only one member shows it. Without the members intent at most three names
    are looked up, in three seconds in all. Empty outside of guilds, and while the gateway is not connected.
    """
    calls = list(_list_called_names(text))
    room = find_guild_room(client.get_channel(int(place.channel))) if calls and place.channel.isdecimal() else None
    if room is None or not is_live(client, room.guild):
        return MentionNames()
    wanted = {call[:end] for call in calls for end in range(1, len(call) + 1)}
    book = _NameIndex(wanted)
    async for member in _candidates(client, room, calls):
        if book.wants(member) and member != room.guild.me and room.permissions_for(member).view_channel:
            book.add(member)
    roles = [role for role in room.guild.roles if role.mentionable and not role.is_default()]
    return MentionNames(users=book.names(), roles=_role_names(roles, wanted))


async def _candidates(client: discord.Client, room: GuildRoom, calls: Iterable[str]) -> AsyncIterator[discord.Member]:
    if knows_all_members(client, room.guild):
        async for member in iterate_in_batches(room.guild.members):
            yield member
        return
    # Discord matches the beginning of a name. Nobody can tell where the name ends in the text, so the query is short.
    queries = list(dict.fromkeys(word for call in calls if (word := call.split(" ", 1)[0].rstrip('.,:;!?)"'))))
    found: list[discord.Member] = []
    with anyio.move_on_after(_QUERY_TIMEOUT_S):
        for query in queries[:_MAX_QUERIES]:
            try:  # not cached, since nothing would tell of later changes
                found += await room.guild.query_members(query, limit=_QUERY_LIMIT, cache=False)
            except VENDOR_ERRORS:
                break  # the name stays plain text
    for member in found:
        yield member


def _list_called_names(text: str) -> Iterable[str]:
    """Yields the text behind each @ in normal form, as far as a name may reach; it may stand in quotes."""
    for behind in text.split("@")[1 : _MAX_CALLS + 1]:
        if call := normalize_name(behind[:_MAX_NAME_CHARS].removeprefix('"').split("\n", 1)[0]):
            yield call


def normalize_name(name: str) -> str:
    """Returns the form in which names are compared, as `domain/pings` does."""
    if name.isascii():
        return " ".join(name.lower().split())
    return " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()).split())


class _NameIndex:
    """The bearers of the wanted names. A displayed name takes precedence over one that only a profile shows."""

    def __init__(self, wanted: set[str]) -> None:
        self._wanted = wanted
        self._bearers: dict[str, tuple[int, str, set[str]]] = {}
        """By folded name: the rank of the name, how it is written, and whose it is at that rank."""

    def wants(self, member: discord.Member) -> bool:
        return any(normalize_name(name) in self._wanted for name in _list_member_names(member))

    def add(self, member: discord.Member) -> None:
        for rank, name in enumerate(_list_member_names(member)):
            folded = normalize_name(name)
            if folded not in self._wanted:
                continue
            best = self._bearers.get(folded)
            if best is None or rank < best[0]:
                self._bearers[folded] = (rank, name, {str(member.id)})
            elif rank == best[0]:
                best[2].add(str(member.id))

    def names(self) -> dict[str, str]:
        return {name: next(iter(ids)) for _, name, ids in self._bearers.values() if len(ids) == 1}


def _list_member_names(member: discord.Member) -> tuple[str, ...]:
    """Returns the member's display name, global name and user name."""
    return (member.display_name, member.global_name or member.name, member.name)


def _role_names(roles: Iterable[discord.Role], wanted: set[str]) -> dict[str, str]:
    found: dict[str, list[discord.Role]] = {}
    for role in roles:
        if normalize_name(role.name) in wanted:
            found.setdefault(normalize_name(role.name), []).append(role)
    return {same[0].name: str(same[0].id) for same in found.values() if len(same) == 1}
