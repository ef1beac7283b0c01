"""Who may what, computed from owner, roles, overwrites, thread membership and time-outs, and demanded by the acts."""

from __future__ import annotations

from denizen.testing.discord.state.channels import Channel, ChannelKind
from denizen.testing.discord.state.errors import missing_access, missing_permissions, unknown
from denizen.testing.discord.state.guilds import Guild, Member, Role
from denizen.testing.discord.state.people import User
from denizen.testing.discord.state.permissions import ALL, DIRECT, IN_TIMEOUT, NONE, Permission, settle
from denizen.testing.discord.state.realm import Realm


def permissions_in_guild(realm: Realm, guild: Guild, user: User) -> Permission:
    """What the roles give, before any channel's overwrites. Nothing for strangers."""
    member = guild.members.get(user.id)
    if member is None:
        return NONE
    if guild.owner is user:
        return ALL
    granted = guild.everyone.permissions
    for role_id in member.roles:
        granted |= guild.roles[role_id].permissions
    if granted & Permission.ADMINISTRATOR:
        return ALL
    return granted & IN_TIMEOUT if _in_timeout(realm, member) else granted


def permissions_in(realm: Realm, channel: Channel, user: User) -> Permission:
    """What this user may in this channel. A thread takes its parent's overwrites."""
    guild = realm.guild_of(channel)
    if guild is None:
        return DIRECT if user in channel.recipients else NONE
    granted = permissions_in_guild(realm, guild, user)
    member = guild.members.get(user.id)
    if member is None or granted == ALL:
        return granted
    holder = channel.parent if channel.thread and channel.parent else channel
    granted = _overwritten(granted, holder, guild, member)
    if _in_timeout(realm, member):
        granted &= IN_TIMEOUT
    granted = settle(granted, thread=channel.is_thread)
    return granted if sees_thread(channel, user, granted) else NONE


def sees_thread(channel: Channel, user: User, granted: Permission) -> bool:
    """A private thread is seen by its members and by who manages threads; whatever is no private thread by all."""
    if channel.kind is not ChannelKind.PRIVATE_THREAD or channel.thread is None:
        return True
    return user.id in channel.thread.members or bool(granted & Permission.MANAGE_THREADS)


def may(realm: Realm, user: User, channel: Channel, *needed: Permission) -> bool:
    granted = permissions_in(realm, channel, user)
    return all(granted & each for each in needed)


def sees(realm: Realm, user: User, channel: Channel) -> bool:
    return may(realm, user, channel, Permission.VIEW_CHANNEL)


def shows(realm: Realm, user: User, channel: Channel) -> bool:
    """Whether the channel is in the user's list: a category is when one of its channels is."""
    if channel.kind is ChannelKind.CATEGORY and (guild := realm.guild_of(channel)):
        inside = [each for each in guild.channels.values() if each.parent is channel]
        if any(sees(realm, user, each) for each in inside):
            return True
    return sees(realm, user, channel)


def demand(realm: Realm, user: User, channel: Channel, *needed: Permission) -> None:
    """Raises 50001 to one who cannot see the channel, and 50013 when a right is missing."""
    granted = permissions_in(realm, channel, user)
    if not granted & Permission.VIEW_CHANNEL:
        raise missing_access()
    if not all(granted & each for each in needed):
        raise missing_permissions()


def demand_in_guild(realm: Realm, user: User, guild: Guild, *needed: Permission) -> Permission:
    """The same for the guild as a whole. For one who is not in it there is no such guild (10004)."""
    if user.id not in guild.members:
        raise unknown("Guild")
    granted = permissions_in_guild(realm, guild, user)
    if not all(granted & each for each in needed):
        raise missing_permissions()
    return granted


def demand_rank(realm: Realm, user: User, guild: Guild, target: Member | Role) -> None:
    """The actor's highest role stands above the target's (50013). The owner stands above all, and under nobody."""
    if guild.owner is user:
        return
    if isinstance(target, Member) and guild.owner is target.user:
        raise missing_permissions()
    if rank_of(guild, target) >= rank_of(guild, realm.get_member(guild, user.id)):
        raise missing_permissions()


def rank_of(guild: Guild, who: Member | Role) -> int:
    if isinstance(who, Role):
        return who.position
    return max((guild.roles[each].position for each in who.roles), default=0)


def _overwritten(granted: Permission, channel: Channel, guild: Guild, member: Member) -> Permission:
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


def _in_timeout(realm: Realm, member: Member) -> bool:
    return member.timeout_until is not None and member.timeout_until > realm.clock.now()
