"""Decides who may see what: the rooms that an asker and all readers of a place may read, and who moderates.

Permissions come from discord.py's cache of the guild while its gateway is connected. When the cache does not hold
all members (see `members`), the asker is fetched, and a room counts only if everybody who can see the place can see
it too, whatever their roles (`visibility.covers_all_readers`).

A reader is anybody who can view the place, including people in a time-out or in screening, and bots, which may
repeat what they read. Administrators and the owner read everything, so they restrict nothing. The account itself is
no reader.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import cast

import anyio
import anyio.lowlevel
import discord

from denizen.adapters.discord.client.errors import RESPONSE_TIMEOUT_S, UNKNOWN_CHANNEL, VENDOR_ERRORS, translate_error
from denizen.adapters.discord.client.settings import PLATFORM
from denizen.adapters.discord.guild.members import (
    find_member,
    find_names,
    get_member,
    is_live,
    iterate_in_batches,
    knows_all_members,
    require_live,
)
from denizen.adapters.discord.guild.visibility import (
    MANAGE_THREADS,
    VIEW,
    ChannelOverwrites,
    GuildRoom,
    MemberGroup,
    PermissionProfile,
    ProfileBuilder,
    compute_permissions,
    covers_all_readers,
    find_guild_room,
    get_needed_permissions,
    is_open_to_all,
    read_overwrites,
)
from denizen.domain.conversation import Place
from denizen.domain.errors import Unavailable
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.record import record
from denizen.domain.room import Room, RoomKind
from denizen.ports.channel import Membership, MembershipList

__all__ = [
    "find_names",
    "find_roles",
    "list_memberships",
    "list_visible_rooms",
    "may_moderate",
    "may_write",
    "parse_user_id",
]

# A search waits for this, so it rather sees less than it waits long.
_DIRECT_TIMEOUT_S = 5.0
# Each guild whose members are not known takes a request to find the user in it.
_MAX_FETCHES = 20


async def list_visible_rooms(client: discord.Client, place: Place, principal: Principal) -> frozenset[str]:
    """Returns the ids of the rooms that the principal and everybody who reads the place may read at this moment.

    The place itself is always included. It is the only one for schedules, hooks and users of other platforms, and
    when nothing can be known. In a guild only rooms of that guild count; in a direct message its user is the only
    reader. Archived threads are not known here: a public one is as visible as its channel.
    """
    if place.platform != PLATFORM:
        return frozenset()
    itself = frozenset({place.thread or place.channel})
    user_id = parse_user_id(principal)
    if user_id is None or not place.channel.isdecimal():
        return itself
    channel = client.get_channel(int(place.channel))
    room = find_guild_room(channel)
    if room is not None:
        return itself | await _list_rooms_in_guild(client, room, user_id)
    if channel is None or isinstance(channel, discord.DMChannel):
        with anyio.move_on_after(_DIRECT_TIMEOUT_S):
            if await _is_direct_talk(client, int(place.channel), user_id):
                shared = await list_memberships(client, str(user_id))
                return itself.union(*(each.rooms for each in shared.found))
    return itself


def find_roles(client: discord.Client, room_id: str, user_ids: Collection[str]) -> Mapping[str, frozenset[str]]:
    """Returns the role ids of the users in the cache. Outside of a guild nobody has any."""
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
    """Whether the principal has Manage Messages there now; False when that cannot be known."""
    user_id = parse_user_id(principal)
    room = find_guild_room(client.get_channel(int(room_id)) if room_id.isdecimal() else None)
    if user_id is None or room is None or not is_live(client, room.guild):
        return False
    member = await find_member(client, room.guild, user_id)
    return member is not None and room.permissions_for(member).manage_messages


async def may_write(client: discord.Client, place: Place, principal: Principal) -> bool:
    """Whether the principal may write there now: not after a ban, a departure, a time-out or a lost permission.
    Everybody may in direct messages. Raises Unavailable while Discord cannot tell.
    """
    user_id = parse_user_id(principal)
    room_id = place.thread or place.channel
    room = find_guild_room(client.get_channel(int(room_id)) if room_id.isdecimal() else None)
    if user_id is None or room is None:
        return user_id is not None
    require_live(client, room.guild)
    member = await get_member(client, room.guild, user_id)
    if member is None or member.is_timed_out():
        return False
    held = room.permissions_for(member)
    return held.view_channel and (held.send_messages_in_threads if place.thread else held.send_messages)


def may_post(client: discord.Client, place: Place, *, in_new_thread: bool = False) -> bool:
    """Whether the account may post there, or in a thread that it opens there, as the cache knows its permissions. True
    for what the cache does not know.
    """
    room_id = place.thread or place.channel
    room = find_guild_room(client.get_channel(int(room_id)) if room_id.isdecimal() else None)
    me = cast("discord.Member | None", room.guild.me) if room is not None else None  # None while it is unavailable
    if room is None or me is None:
        return True
    held = room.permissions_for(me)
    if place.thread or in_new_thread:
        return held.send_messages_in_threads and (held.create_public_threads or not in_new_thread)
    return held.send_messages


def parse_user_id(principal: Principal) -> int | None:
    """Returns the Discord user id of the principal; None for everybody else."""
    platform, _, number = principal.id.partition(":")
    is_user = principal.kind is PrincipalKind.PLATFORM_USER and platform == PLATFORM
    return int(number) if is_user and number.isdecimal() else None


async def _list_rooms_in_guild(client: discord.Client, place: GuildRoom, user_id: int) -> frozenset[str]:
    if not is_live(client, place.guild):
        return frozenset()
    asker = await find_member(client, place.guild, user_id)
    # While the asker was fetched, the cache of the guild may have been dropped or rebuilt.
    room = find_guild_room(client.get_channel(place.id))
    if asker is None or room is None:
        return frozenset()
    survey = _GuildSurvey(room.guild)
    if not knows_all_members(client, room.guild):
        return await survey.rooms_for(_ReaderGroups.only(survey.profile_for(asker), user_id), covering=room)
    readers = await survey.list_readers(room, asker, besides=client.user.id if client.user else 0)
    return await survey.rooms_for(readers)


async def list_memberships(client: discord.Client, user_id: str) -> MembershipList:
    """Returns the guilds that the account shares with the user, with their rights at this moment."""
    if not user_id.isdecimal():
        return MembershipList()
    found: list[Membership] = []
    is_complete, fetches = True, 0
    for guild in list(client.guilds):
        fetches += not knows_all_members(client, guild)
        if fetches > _MAX_FETCHES or not is_live(client, guild):
            is_complete = False
            continue
        try:
            member = await get_member(client, guild, int(user_id))
        except Unavailable:
            is_complete = False
            continue
        if member is not None:
            survey = _GuildSurvey(guild)
            rooms = await survey.rooms_for(_ReaderGroups.only(survey.profile_for(member), member.id))
            found.append(
                Membership(
                    community=str(guild.id),
                    name=guild.name,
                    roles=frozenset(str(role.id) for role in member.roles if not role.is_default()),
                    rooms=rooms,
                    manages=guild.owner_id == member.id or member.guild_permissions.manage_guild,
                )
            )
    return MembershipList(found=found, is_complete=is_complete)


async def _is_direct_talk(client: discord.Client, channel_id: int, user_id: int) -> bool:
    """Whether the channel is the one for direct messages with that user. discord.py caches the answer for good."""
    try:
        return (await client.create_dm(discord.Object(user_id))).id == channel_id
    except VENDOR_ERRORS:
        return False


@record
class _ReaderGroups:
    """Readers who must be able to see a room, grouped by permission profile."""

    by_profile: Mapping[PermissionProfile, Sequence[int]]
    group: MemberGroup

    @classmethod
    def only(cls, profile: PermissionProfile, user_id: int) -> _ReaderGroups:
        return cls({profile: (user_id,)}, MemberGroup([profile]))


class _GuildSurvey:
    """One look at a guild: the overwrites of its rooms, and which of them a group of readers may read."""

    def __init__(self, guild: discord.Guild) -> None:
        self._guild = guild
        self._overwrites = {room.id: read_overwrites(room) for room in guild.channels if isinstance(room, GuildRoom)}
        self._register = ProfileBuilder(guild, self._overwrites.values())

    def profile_for(self, member: discord.Member) -> PermissionProfile:
        return self._register.profile_for(member)

    async def list_readers(self, place: GuildRoom, asker: discord.Member, *, besides: int) -> _ReaderGroups:
        """Returns everybody who can view the place, and the asker."""
        groups: dict[PermissionProfile, list[int]] = {}
        async for member in iterate_in_batches(self._guild.members):
            if member.id != besides:
                groups.setdefault(self.profile_for(member), []).append(member.id)
        overwrites = self._overwrites[place.id]
        groups = {profile: ids for profile, ids in groups.items() if compute_permissions(overwrites, profile) & VIEW}
        groups.setdefault(self.profile_for(asker), []).append(asker.id)
        return _ReaderGroups(groups, MemberGroup(groups))

    async def rooms_for(self, readers: _ReaderGroups, *, covering: GuildRoom | None = None) -> frozenset[str]:
        """Returns the rooms that all may read; with `covering`, only those that everybody who sees that room sees."""
        answers: dict[tuple[ChannelOverwrites, int], bool] = {}
        visible: set[int] = set()
        for room in [each for each in self._guild.channels if isinstance(each, GuildRoom)]:
            overwrites, needed = self._overwrites.get(room.id), get_needed_permissions(room)
            if overwrites is None:
                continue
            known = answers.get((overwrites, needed))
            if known is None:
                await anyio.lowlevel.checkpoint()
                known = readers.group.may_all(overwrites, needed) and self._is_covered(overwrites, covering, needed)
                answers[overwrites, needed] = known
            if known:
                visible.add(room.id)
        threads = (
            thread.id
            for thread in self._guild.threads
            if thread.parent_id in visible
            and (not thread.is_private() or (covering is None and self._is_shared(thread, readers)))
        )
        return frozenset(map(str, (*visible, *threads)))

    def _is_covered(self, overwrites: ChannelOverwrites, place: GuildRoom | None, needed: int) -> bool:
        if place is None:
            return True
        everyone = self._guild.default_role.permissions.value
        return covers_all_readers(overwrites, self._overwrites[place.id], everyone, needed)

    def _is_shared(self, thread: discord.Thread, readers: _ReaderGroups) -> bool:
        """Whether all of them are members of the private thread, or manage threads there.

        Only those who see the thread hear of departures: without the right to manage threads the list of members may
        be stale.
        """
        overwrites = self._overwrites[thread.parent_id]
        if not compute_permissions(overwrites, self.profile_for(self._guild.me)) & MANAGE_THREADS:
            return False
        inside = {member.id for member in thread.members}
        return all(
            bool(compute_permissions(overwrites, profile) & MANAGE_THREADS) or all(each in inside for each in ids)
            for profile, ids in readers.by_profile.items()
        )


def is_open(client: discord.Client, room: Room) -> bool:
    """Whether everybody in the guild may read the room now, including those who join next.

    Age-restricted rooms and the text of voice channels are not open. Raises Unavailable while nothing is known of
    the guild.
    """
    guild = require_live(client, client.get_guild(int(room.guild)) if room.guild.isdecimal() else None)
    channel = guild.get_channel_or_thread(int(room.id)) if room.id.isdecimal() else None
    if isinstance(channel, discord.Thread) and channel.is_private():
        return False
    behind = find_guild_room(channel)
    if behind is None or behind.is_nsfw():
        return False
    return is_open_to_all(read_overwrites(behind), guild.default_role.permissions.value, get_needed_permissions(behind))


async def find_deleted(client: discord.Client, rooms: Sequence[Room]) -> frozenset[str]:
    """Implements `ports.channel.Channel.find_deleted`.

    It takes a request for each room that is not listed; archived threads come a hundred at a time. Private threads
    are not asked for, since only their members see them.
    """
    by_guild: defaultdict[str, list[Room]] = defaultdict(list)
    for room in rooms:
        by_guild[room.guild].append(room)
    deleted: set[str] = set()
    for guild_id, theirs in by_guild.items():
        guild = client.get_guild(int(guild_id)) if guild_id.isdecimal() else None
        if guild is None or not is_live(client, guild):
            continue
        absent = [room for room in theirs if room.id.isdecimal() and guild.get_channel_or_thread(int(room.id)) is None]
        deleted |= {room.id for room in absent if not room.is_thread and await _is_deleted(client, room.id)}
        by_channel: defaultdict[str, list[str]] = defaultdict(list)
        for room in absent:
            if room.kind is RoomKind.THREAD and room.parent.isdecimal() and room.parent not in deleted:
                by_channel[room.parent].append(room.id)
        for parent, threads in by_channel.items():
            channel = guild.get_channel(int(parent))
            if isinstance(channel, discord.TextChannel | discord.ForumChannel):
                archived = await _list_archived(channel)
                deleted |= {each for each in threads if each not in archived and await _is_deleted(client, each)}
    return frozenset(deleted)


async def _list_archived(channel: discord.TextChannel | discord.ForumChannel) -> set[str]:
    try:
        return {str(thread.id) async for thread in channel.archived_threads(limit=None)}
    except discord.Forbidden:
        return set()
    except VENDOR_ERRORS as error:
        raise translate_error(error, "list archived threads") from None


async def _is_deleted(client: discord.Client, room_id: str) -> bool:
    try:
        with anyio.fail_after(RESPONSE_TIMEOUT_S):
            await client.http.get_channel(int(room_id))
    except (discord.NotFound, discord.Forbidden) as error:
        return error.code == UNKNOWN_CHANNEL
    except VENDOR_ERRORS as error:
        raise translate_error(error, "ask for a channel") from None
    return False
