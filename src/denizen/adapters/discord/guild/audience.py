"""Who may see what (promise 3): the rooms that an asker and all readers of a place may read, and who moderates.

Permissions are taken from discord.py's mirror of the guild while its gateway is connected. When the mirror does not
hold all members (`members`), the asker is fetched, and rooms count only when whoever sees the place sees them too,
whatever roles there are (`visibility.surely_covers`).

A reader is who can view the place: people in a timeout or still being screened, and bots, who may carry on what they
read. Administrators and the owner read everything, so they take nothing away. The account itself is no reader.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import anyio
import anyio.lowlevel
import discord

from denizen.adapters.discord.client.errors import RESPONSE_TIMEOUT_S, UNKNOWN_CHANNEL, VENDOR_ERRORS, fault_of
from denizen.adapters.discord.client.settings import PLATFORM
from denizen.adapters.discord.guild.members import (
    find_member,
    find_names,
    get_member,
    is_live,
    knows_all_members,
    slowly,
)
from denizen.adapters.discord.guild.visibility import (
    MANAGE_THREADS,
    VIEW,
    Crowd,
    GuildRoom,
    Register,
    Rules,
    Standing,
    may,
    needed_for,
    room_behind,
    rules_of,
    surely_covers,
    surely_open,
)
from denizen.domain.conversation import Place
from denizen.domain.errors import Unavailable
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.room import Room, RoomKind

__all__ = ["find_names", "find_roles", "may_moderate", "may_write", "user_id_of", "visible_rooms"]

_DIRECT_TIMEOUT_S = 5.0
_MAX_FETCHES = 20


async def visible_rooms(client: discord.Client, place: Place, principal: Principal) -> frozenset[str]:
    """Ids of the rooms that the principal and everybody who reads the place may read, by permissions of this moment.

    The place itself is always one. It is the only one for schedules, hooks and users of other platforms, and when
    nothing can be known. In a guild only rooms of that guild count; in a direct talk its user is the only reader.
    Threads that are archived are not known here: a public one is as visible as its channel.
    """
    if place.platform != PLATFORM:
        return frozenset()
    itself = frozenset({place.thread or place.channel})
    user_id = user_id_of(principal)
    if user_id is None or not place.channel.isdecimal():
        return itself
    channel = client.get_channel(int(place.channel))
    room = room_behind(channel)
    if room is not None:
        return itself | await _rooms_in_guild(client, room, user_id)
    if channel is None or isinstance(channel, discord.DMChannel):
        with anyio.move_on_after(_DIRECT_TIMEOUT_S):
            if await _is_direct_talk(client, int(place.channel), user_id):
                return itself | await _rooms_of_user(client, user_id)
    return itself


def find_roles(client: discord.Client, room_id: str, user_ids: Collection[str]) -> Mapping[str, frozenset[str]]:
    """Role ids of those of whom the mirror knows; outside of a guild nobody has any."""
    channel = client.get_channel(int(room_id)) if room_id.isdecimal() else None
    guild = getattr(channel, "guild", None)
    if not isinstance(guild, discord.Guild):
        return dict.fromkeys(user_ids, frozenset[str]())
    members = {key: guild.get_member(int(key)) for key in user_ids if key.isdecimal()}
    return {
        key: frozenset(str(role.id) for role in member.roles if not role.is_default())
        for key, member in members.items()
        if member is not None
    }


async def may_moderate(client: discord.Client, room_id: str, principal: Principal) -> bool:
    """Whether they have Manage Messages there now; False when it cannot be known."""
    user_id = user_id_of(principal)
    channel = client.get_channel(int(room_id)) if room_id.isdecimal() else None
    room = room_behind(channel)
    if user_id is None or room is None or not is_live(client, room.guild):
        return False
    member = await find_member(client, room.guild, user_id)
    return member is not None and room.permissions_for(member).manage_messages


async def may_write(client: discord.Client, place: Place, principal: Principal) -> bool:
    """Whether they may write there now: not who was banned, left, is in a time-out or lost the permission. In direct
    talks everybody may. Raises Unavailable while Discord cannot tell.
    """
    user_id = user_id_of(principal)
    room_id = place.thread or place.channel
    room = room_behind(client.get_channel(int(room_id)) if room_id.isdecimal() else None)
    if user_id is None or room is None:
        return user_id is not None
    if not is_live(client, room.guild):
        raise Unavailable("The server cannot be reached at the moment.", code="discord_guild_away", fix="Try again.")
    member = await get_member(client, room.guild, user_id)
    if member is None or member.is_timed_out():
        return False
    held = room.permissions_for(member)
    return held.view_channel and (held.send_messages_in_threads if place.thread else held.send_messages)


def user_id_of(principal: Principal) -> int | None:
    """The Discord user who asks; None for everybody else."""
    platform, _, number = principal.id.partition(":")
    is_user = principal.kind is PrincipalKind.PLATFORM_USER and platform == PLATFORM
    return int(number) if is_user and number.isdecimal() else None


async def _rooms_in_guild(client: discord.Client, place: GuildRoom, user_id: int) -> frozenset[str]:
    if not is_live(client, place.guild):
        return frozenset()
    asker = await find_member(client, place.guild, user_id)
    # While the asker was fetched, the guild may have been lost, or built anew.
    room = room_behind(client.get_channel(place.id))
    if asker is None or room is None:
        return frozenset()
    survey = _Survey(room.guild)
    if not knows_all_members(client, room.guild):
        return await survey.rooms_for(_Readers.only(survey.standing_of(asker), user_id), covering=room)
    readers = await survey.readers_of(room, asker, besides=client.user.id if client.user else 0)
    return await survey.rooms_for(readers)


async def _rooms_of_user(client: discord.Client, user_id: int) -> frozenset[str]:
    """What one user may read in all guilds that they share with the account."""
    found: set[str] = set()
    fetches = 0
    for guild in list(client.guilds):
        if not is_live(client, guild):
            continue
        fetches += not knows_all_members(client, guild)
        if fetches > _MAX_FETCHES:
            continue
        member = await find_member(client, guild, user_id)
        if member is not None:
            survey = _Survey(guild)
            found |= await survey.rooms_for(_Readers.only(survey.standing_of(member), user_id))
    return frozenset(found)


async def _is_direct_talk(client: discord.Client, channel_id: int, user_id: int) -> bool:
    """Whether the channel is the direct talk with that user. Discord is asked once, the answer is for ever."""
    try:
        return (await client.create_dm(discord.Object(user_id))).id == channel_id
    except VENDOR_ERRORS:
        return False


@dataclass(frozen=True, slots=True)
class _Readers:
    """Those who must be able to see a room, grouped by what decides about it."""

    by_standing: Mapping[Standing, Sequence[int]]
    crowd: Crowd

    @classmethod
    def only(cls, standing: Standing, user_id: int) -> _Readers:
        return cls({standing: (user_id,)}, Crowd([standing]))


class _Survey:
    """One look at a guild: the rules of its rooms, and what a set of readers may read there."""

    def __init__(self, guild: discord.Guild) -> None:
        self._guild = guild
        self._rules = {room.id: rules_of(room) for room in guild.channels if isinstance(room, GuildRoom)}
        self._register = Register(guild, self._rules.values())

    def standing_of(self, member: discord.Member) -> Standing:
        return self._register.standing_of(member)

    async def readers_of(self, place: GuildRoom, asker: discord.Member, *, besides: int) -> _Readers:
        """All who can view the place, and the asker."""
        groups: dict[Standing, list[int]] = {}
        async for member in slowly(self._guild.members):
            if member.id != besides:
                groups.setdefault(self.standing_of(member), []).append(member.id)
        rules = self._rules[place.id]
        groups = {standing: ids for standing, ids in groups.items() if may(rules, standing) & VIEW}
        groups.setdefault(self.standing_of(asker), []).append(asker.id)
        return _Readers(groups, Crowd(groups))

    async def rooms_for(self, readers: _Readers, *, covering: GuildRoom | None = None) -> frozenset[str]:
        """Rooms that all of them may read, and with `covering` only those that all who see that room surely see."""
        answers: dict[tuple[Rules, int], bool] = {}
        visible: set[int] = set()
        for room in [each for each in self._guild.channels if isinstance(each, GuildRoom)]:
            rules, needed = self._rules.get(room.id), needed_for(room)
            if rules is None:
                continue
            known = answers.get((rules, needed))
            if known is None:
                await anyio.lowlevel.checkpoint()
                known = readers.crowd.may_all(rules, needed) and self._is_covered(rules, covering, needed)
                answers[rules, needed] = known
            if known:
                visible.add(room.id)
        threads = (
            thread.id
            for thread in self._guild.threads
            if thread.parent_id in visible
            and (not thread.is_private() or (covering is None and self._is_shared(thread, readers)))
        )
        return frozenset(map(str, (*visible, *threads)))

    def _is_covered(self, rules: Rules, place: GuildRoom | None, needed: int) -> bool:
        if place is None:
            return True
        everyone = self._guild.default_role.permissions.value
        return surely_covers(rules, self._rules[place.id], everyone, needed)

    def _is_shared(self, thread: discord.Thread, readers: _Readers) -> bool:
        """Whether all of them are in the private thread, or manage threads there.

        Who left it is heard of only by those who see it: without the right to, its list of members may be old.
        """
        rules = self._rules[thread.parent_id]
        if not may(rules, self.standing_of(self._guild.me)) & MANAGE_THREADS:
            return False
        inside = {member.id for member in thread.members}
        return all(
            bool(may(rules, standing) & MANAGE_THREADS) or all(each in inside for each in ids)
            for standing, ids in readers.by_standing.items()
        )


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
