"""Permissions, computed from owner, roles, overwrites, thread membership and time-outs. The actions require them."""

from __future__ import annotations

from denizen.testing.discord.state.channels import ChannelKind, SimChannel
from denizen.testing.discord.state.errors import missing_access, missing_permissions, unknown
from denizen.testing.discord.state.guilds import SimGuild, SimMember, SimRole
from denizen.testing.discord.state.people import SimUser
from denizen.testing.discord.state.permissions import (
    ALL,
    DIRECT,
    IN_TIMEOUT,
    NONE,
    DiscordPermission,
    combine_permissions,
)
from denizen.testing.discord.state.store import SimStore


def permissions_in_guild(store: SimStore, guild: SimGuild, user: SimUser) -> DiscordPermission:
    """Returns what the roles grant, before any channel's overwrites. Nothing for strangers."""
    member = guild.members.get(user.id)
    if member is None:
        return NONE
    if guild.owner is user:
        return ALL
    granted = guild.everyone.permissions
    for role_id in member.roles:
        granted |= guild.roles[role_id].permissions
    if granted & DiscordPermission.ADMINISTRATOR:
        return ALL
    return granted & IN_TIMEOUT if _in_timeout(store, member) else granted


def permissions_in(store: SimStore, channel: SimChannel, user: SimUser) -> DiscordPermission:
    """Returns what this user may do in this channel. A thread takes its parent's overwrites."""
    guild = store.get_guild_for(channel)
    if guild is None:
        return DIRECT if user in channel.recipients else NONE
    granted = permissions_in_guild(store, guild, user)
    member = guild.members.get(user.id)
    if member is None or granted == ALL:
        return granted
    holder = channel.parent if channel.thread and channel.parent else channel
    granted = _overwritten(granted, holder, guild, member)
    if _in_timeout(store, member):
        granted &= IN_TIMEOUT
    granted = combine_permissions(granted, thread=channel.is_thread)
    return granted if sees_thread(channel, user, granted) else NONE


def sees_thread(channel: SimChannel, user: SimUser, granted: DiscordPermission) -> bool:
    """Whether the user sees the thread: a private one is visible to its members and to those who manage threads."""
    if channel.kind is not ChannelKind.PRIVATE_THREAD or channel.thread is None:
        return True
    return user.id in channel.thread.members or bool(granted & DiscordPermission.MANAGE_THREADS)


def has_permission(store: SimStore, user: SimUser, channel: SimChannel, *needed: DiscordPermission) -> bool:
    granted = permissions_in(store, channel, user)
    return all(granted & each for each in needed)


def can_see(store: SimStore, user: SimUser, channel: SimChannel) -> bool:
    return has_permission(store, user, channel, DiscordPermission.VIEW_CHANNEL)


def is_shown(store: SimStore, user: SimUser, channel: SimChannel) -> bool:
    """Whether the channel is in the user's list. A category is if one of its channels is."""
    if channel.kind is ChannelKind.CATEGORY and (guild := store.get_guild_for(channel)):
        inside = [each for each in guild.channels.values() if each.parent is channel]
        if any(can_see(store, user, each) for each in inside):
            return True
    return can_see(store, user, channel)


def require_permission(store: SimStore, user: SimUser, channel: SimChannel, *needed: DiscordPermission) -> None:
    """Raises 50001 to a user who cannot see the channel, and 50013 for a missing permission."""
    granted = permissions_in(store, channel, user)
    if not granted & DiscordPermission.VIEW_CHANNEL:
        raise missing_access()
    if not all(granted & each for each in needed):
        raise missing_permissions()


def require_guild_permission(
    store: SimStore, user: SimUser, guild: SimGuild, *needed: DiscordPermission
) -> DiscordPermission:
    """The same for the guild as a whole. For strangers the guild does not exist (10004)."""
    if user.id not in guild.members:
        raise unknown("Guild")
    granted = permissions_in_guild(store, guild, user)
    if not all(granted & each for each in needed):
        raise missing_permissions()
    return granted


def require_rank(store: SimStore, user: SimUser, guild: SimGuild, target: SimMember | SimRole) -> None:
    """Requires that the actor's highest role is above the target's (50013). The owner is above all, and
    below nobody.
    """
    if guild.owner is user:
        return
    if isinstance(target, SimMember) and guild.owner is target.user:
        raise missing_permissions()
    if get_rank(guild, target) >= get_rank(guild, store.get_member(guild, user.id)):
        raise missing_permissions()


def get_rank(guild: SimGuild, who: SimMember | SimRole) -> int:
    if isinstance(who, SimRole):
        return who.position
    return max((guild.roles[each].position for each in who.roles), default=0)


def _overwritten(
    granted: DiscordPermission, channel: SimChannel, guild: SimGuild, member: SimMember
) -> DiscordPermission:
    everyone = channel.overwrites.get(guild.id)
    if everyone:
        granted = granted & ~everyone.deny | everyone.allow
    allow, deny = NONE, NONE
    for role_id in member.roles:
        if overwrite := channel.overwrites.get(role_id):
            allow |= overwrite.allow
            deny |= overwrite.deny
    granted = granted & ~deny | allow
    own = channel.overwrites.get(member.user.id)
    return granted & ~own.deny | own.allow if own else granted


def _in_timeout(store: SimStore, member: SimMember) -> bool:
    return member.timeout_until is not None and member.timeout_until > store.clock.now()
