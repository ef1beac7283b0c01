"""Whom an @Name in an answer may mean: people and roles of the guild, by the names that are used for them.

What is found becomes pings in `domain/pings`, which decides about case, the longest name and what is code. Here it is
only found who comes into question, among those who can view the place. Exported by `audience`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import AsyncIterator, Iterable, Sequence

import anyio
import discord

from denizen.adapters.discord.faults import VENDOR_ERRORS
from denizen.adapters.discord.members import is_live, knows_all_members, slowly
from denizen.adapters.discord.visibility import GuildRoom, room_behind
from denizen.domain.conversation import Place
from denizen.ports.channel import MentionNames

_MAX_CALLS = 50
_MAX_NAME_CHARS = 64
_MAX_QUERIES = 3
_QUERY_TIMEOUT_S = 3.0
_QUERY_LIMIT = 20


async def find_names(client: discord.Client, place: Place, text: str) -> MentionNames:
    """Those whom an @Name in the text may mean: members by display, global and user name, and mentionable roles.

    A name of several is left out, unless only one of them is shown under it. Without the members intent at most three
    names are looked up, for three seconds in all. Empty outside of guilds, and when the gateway is not connected.
    """
    calls = list(_calls_in(text))
    room = room_behind(client.get_channel(int(place.channel))) if calls and place.channel.isdecimal() else None
    if room is None or not is_live(client, room.guild):
        return MentionNames()
    wanted = {call[:end] for call in calls for end in range(1, len(call) + 1)}
    book = _Book(wanted)
    async for member in _candidates(client, room, calls):
        if book.wants(member) and member != room.guild.me and room.permissions_for(member).view_channel:
            book.add(member)
    roles = [role for role in room.guild.roles if role.mentionable and not role.is_default()]
    return MentionNames(users=book.names(), roles=_role_names(roles, wanted))


async def _candidates(client: discord.Client, room: GuildRoom, calls: Iterable[str]) -> AsyncIterator[discord.Member]:
    if knows_all_members(client, room.guild):
        async for member in slowly(room.guild.members):
            yield member
        return
    # A query is for the beginning of a name; where the name ends, only its owner knows.
    queries = list(dict.fromkeys(word for call in calls if (word := call.split(" ", 1)[0].rstrip(".,:;!?)"))))
    for member in await _query(room.guild, queries[:_MAX_QUERIES]):
        yield member


async def _query(guild: discord.Guild, queries: Sequence[str]) -> list[discord.Member]:
    """Nobody when Discord does not answer: a name stays a name then. Not kept: nobody tells us when they change."""
    found: list[discord.Member] = []
    with anyio.move_on_after(_QUERY_TIMEOUT_S):
        for query in queries:
            try:
                found += await guild.query_members(query, limit=_QUERY_LIMIT, cache=False)
            except VENDOR_ERRORS:
                break
    return found


def _calls_in(text: str) -> Iterable[str]:
    """What stands behind each @, folded, as far as a name may reach."""
    for behind in text.split("@")[1 : _MAX_CALLS + 1]:
        if call := fold(behind[:_MAX_NAME_CHARS].split("\n", 1)[0]):
            yield call


def fold(name: str) -> str:
    """The form in which names are compared, as `domain/pings` does."""
    if name.isascii():
        return " ".join(name.lower().split())
    return " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()).split())


class _Book:
    """Who bears the wanted names. The name that is shown counts for more than one that only a profile shows."""

    def __init__(self, wanted: set[str]) -> None:
        self._wanted = wanted
        self._bearers: dict[str, tuple[int, str, set[str]]] = {}
        """By folded name: the rank of the name, how it is written, and whose it is at that rank."""

    def wants(self, member: discord.Member) -> bool:
        return any(fold(name) in self._wanted for name in _names_of(member))

    def add(self, member: discord.Member) -> None:
        for rank, name in enumerate(_names_of(member)):
            folded = fold(name)
            if folded not in self._wanted:
                continue
            best = self._bearers.get(folded)
            if best is None or rank < best[0]:
                self._bearers[folded] = (rank, name, {str(member.id)})
            elif rank == best[0]:
                best[2].add(str(member.id))

    def names(self) -> dict[str, str]:
        return {name: next(iter(ids)) for _, name, ids in self._bearers.values() if len(ids) == 1}


def _names_of(member: discord.Member) -> tuple[str, ...]:
    """As shown in the guild, as shown elsewhere, and the name that is theirs alone."""
    return (member.display_name, member.global_name or member.name, member.name)


def _role_names(roles: Iterable[discord.Role], wanted: set[str]) -> dict[str, str]:
    found: dict[str, list[discord.Role]] = {}
    for role in roles:
        if fold(role.name) in wanted:
            found.setdefault(fold(role.name), []).append(role)
    return {same[0].name: str(same[0].id) for same in found.values() if len(same) == 1}
