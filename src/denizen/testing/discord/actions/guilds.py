"""Guilds, their roles, members, bans and emojis. What `Guild` offers is unchecked; acts with an actor check."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Unpack

from denizen.testing.discord.actions.channels import Channels
from denizen.testing.discord.actions.messages import Messages
from denizen.testing.discord.state.access import demand, demand_in_guild, demand_rank, permissions_in_guild
from denizen.testing.discord.state.changes import (
    BanChanged,
    EventChanged,
    ExpressionsChanged,
    GuildAvailability,
    GuildChanged,
    MemberChanged,
    RoleChanged,
)
from denizen.testing.discord.state.channels import Channel, EventStatus, ScheduledEvent
from denizen.testing.discord.state.clock import moment_of
from denizen.testing.discord.state.errors import bad, missing_permissions, unknown
from denizen.testing.discord.state.guilds import (
    Ban,
    ChannelOptions,
    Guild,
    Member,
    Role,
    RoleOptions,
    everyone_role,
)
from denizen.testing.discord.state.messages import Emoji, Sticker
from denizen.testing.discord.state.people import User
from denizen.testing.discord.state.permissions import NONE, P, Permission
from denizen.testing.discord.state.realm import Realm


class Guilds:
    """The steward of every guild of a realm, and the checked acts on members and roles."""

    def __init__(self, realm: Realm, channels: Channels, messages: Messages) -> None:
        self._realm = realm
        self._channels = channels
        self._messages = messages

    def add_guild(self, name: str, owner: User) -> Guild:
        guild_id = self._realm.ids.fresh()
        guild = Guild(guild_id, name, owner, self)
        guild.roles[guild_id] = everyone_role(guild_id)
        self._realm.guilds[guild_id] = guild
        self.join(guild, owner, ())
        return guild

    def add_channel(self, guild: Guild, name: str, **options: Unpack[ChannelOptions]) -> Channel:
        return self._channels.add(guild, name, **options)

    def add_role(self, guild: Guild, name: str, **options: Unpack[RoleOptions]) -> Role:
        for role in guild.roles.values():
            role.position += role.position >= 1
        role = Role(
            self._realm.ids.fresh(),
            name,
            options.get("permissions", NONE),
            1,
            guild.id,
            color=options.get("color", 0),
            hoist=options.get("hoist", False),
            mentionable=options.get("mentionable", False),
        )
        guild.roles[role.id] = role
        self._realm.tell(RoleChanged(guild, role, "created"))
        return role

    def join(self, guild: Guild, user: User, roles: Sequence[Role | Permission]) -> Member:
        if user.id in guild.members:
            return self.set_roles(guild, user, [each for each in roles if isinstance(each, Role)])
        granted = NONE
        for each in roles:
            granted |= each if isinstance(each, Permission) else NONE
        held = [each.id for each in roles if isinstance(each, Role)]
        if user.bot:
            managed = self.add_role(guild, user.name, permissions=granted)
            managed.bot_id = user.id
            held.append(managed.id)
        member = Member(user, guild.id, self._realm.clock.now(), held)
        guild.members[user.id] = member
        self._realm.tell(MemberChanged(guild, member, "joined"))
        return member

    def leave(self, guild: Guild, user: User) -> None:
        member = self._realm.get_member(guild, user.id)
        for thread in guild.threads.values():
            if thread.thread:
                thread.thread.members.pop(user.id, None)
        del guild.members[user.id]
        self._realm.tell(MemberChanged(guild, member, "left"))

    def set_roles(self, guild: Guild, user: User, roles: Sequence[Role]) -> Member:
        """The managed role of a bot stays."""
        member = self._realm.get_member(guild, user.id)
        kept = [each for each in member.roles if guild.roles[each].managed]
        member.roles = list(dict.fromkeys([each.id for each in roles] + kept))
        self._realm.tell(MemberChanged(guild, member, "updated"))
        return member

    def add_emoji(self, guild: Guild, name: str) -> Emoji:
        emoji = Emoji(name, self._realm.ids.fresh())
        guild.emojis[emoji.id or 0] = emoji
        self._realm.tell(ExpressionsChanged(guild, "emojis"))
        return emoji

    def create_emoji(self, actor: User, guild: Guild, name: str, *, animated: bool) -> Emoji:
        demand_in_guild(self._realm, actor, guild, Permission.CREATE_GUILD_EXPRESSIONS)
        emoji = Emoji(name, self._realm.ids.fresh(), animated)
        guild.emojis[emoji.id or 0] = emoji
        self._realm.tell(ExpressionsChanged(guild, "emojis"))
        return emoji

    def delete_emoji(self, actor: User, guild: Guild, emoji: Emoji) -> None:
        demand_in_guild(self._realm, actor, guild, Permission.MANAGE_GUILD_EXPRESSIONS)
        del guild.emojis[emoji.id or 0]
        self._realm.tell(ExpressionsChanged(guild, "emojis"))

    def add_sticker(self, guild: Guild, name: str) -> Sticker:
        sticker = Sticker(self._realm.ids.fresh(), name, guild.id)
        guild.stickers[sticker.id] = sticker
        self._realm.tell(ExpressionsChanged(guild, "stickers"))
        return sticker

    def set_available(self, guild: Guild, *, available: bool) -> None:
        guild.available = available
        self._realm.tell(GuildAvailability(guild))

    def rename(self, actor: User, guild: Guild, name: str) -> None:
        demand_in_guild(self._realm, actor, guild, Permission.MANAGE_GUILD)
        guild.name = name
        self._realm.tell(GuildChanged(guild))

    def create_role(self, actor: User, guild: Guild, name: str, **options: Unpack[RoleOptions]) -> Role:
        """A bot gives no right that it does not have."""
        granted = demand_in_guild(self._realm, actor, guild, Permission.MANAGE_ROLES)
        if options.get("permissions", NONE) & ~granted:
            raise missing_permissions()
        return self.add_role(guild, name, **options)

    def edit_role(
        self, actor: User, guild: Guild, role: Role, name: str | None, **options: Unpack[RoleOptions]
    ) -> Role:
        granted = demand_in_guild(self._realm, actor, guild, Permission.MANAGE_ROLES)
        demand_rank(self._realm, actor, guild, role)
        if options.get("permissions", NONE) & ~granted:
            raise missing_permissions()
        role.name = name or role.name
        role.permissions = options.get("permissions", role.permissions)
        role.color = options.get("color", role.color)
        role.hoist = options.get("hoist", role.hoist)
        role.mentionable = options.get("mentionable", role.mentionable)
        self._realm.tell(RoleChanged(guild, role, "updated"))
        return role

    def delete_role(self, actor: User, guild: Guild, role: Role) -> None:
        demand_in_guild(self._realm, actor, guild, Permission.MANAGE_ROLES)
        demand_rank(self._realm, actor, guild, role)
        if role is guild.everyone or role.managed:
            raise missing_permissions()
        del guild.roles[role.id]
        for channel in guild.channels.values():
            channel.overwrites.pop(role.id, None)
        for member in guild.members.values():
            if role.id in member.roles:
                member.roles.remove(role.id)
        self._realm.tell(RoleChanged(guild, role, "deleted"))

    def give_role(self, actor: User, guild: Guild, member: Member, role: Role, *, given: bool) -> None:
        demand_in_guild(self._realm, actor, guild, Permission.MANAGE_ROLES)
        demand_rank(self._realm, actor, guild, role)
        if role is guild.everyone or role.managed:
            raise missing_permissions()
        if given == (role.id in member.roles):
            return
        if given:
            member.roles.append(role.id)
        else:
            member.roles.remove(role.id)
        self._realm.tell(MemberChanged(guild, member, "updated"))

    def rename_member(self, actor: User, guild: Guild, member: Member, nick: str | None) -> None:
        needed = Permission.CHANGE_NICKNAME if member.user is actor else Permission.MANAGE_NICKNAMES
        demand_in_guild(self._realm, actor, guild, needed)
        if member.user is not actor:
            demand_rank(self._realm, actor, guild, member)
        member.nick = nick or None
        self._realm.tell(MemberChanged(guild, member, "updated"))

    def time_out(self, actor: User, guild: Guild, member: Member, until: datetime | None) -> None:
        demand_in_guild(self._realm, actor, guild, Permission.MODERATE_MEMBERS)
        demand_rank(self._realm, actor, guild, member)
        if until is not None and permissions_in_guild(self._realm, guild, member.user) & Permission.ADMINISTRATOR:
            raise missing_permissions()
        member.timeout_until = until
        self._realm.tell(MemberChanged(guild, member, "updated"))

    def kick(self, actor: User, guild: Guild, member: Member) -> None:
        demand_in_guild(self._realm, actor, guild, Permission.KICK_MEMBERS)
        demand_rank(self._realm, actor, guild, member)
        self.leave(guild, member.user)

    def ban(
        self, actor: User, guild: Guild, user: User, reason: str | None, delete_for: timedelta = timedelta()
    ) -> None:
        """What they wrote in that time is deleted."""
        demand_in_guild(self._realm, actor, guild, Permission.BAN_MEMBERS)
        member = guild.members.get(user.id)
        if member is not None:
            demand_rank(self._realm, actor, guild, member)
        guild.bans[user.id] = Ban(user, reason)
        self._realm.tell(BanChanged(guild, user, banned=True))
        if member is not None:
            self.leave(guild, user)
        oldest = self._realm.clock.now() - delete_for
        for channel in [*guild.channels.values(), *guild.threads.values()]:
            written = [each for each in channel if each.author is user and moment_of(each.id) >= oldest]
            if written and delete_for:
                self._messages.remove(channel, written, bulk=True)

    def unban(self, actor: User, guild: Guild, user_id: int) -> None:
        demand_in_guild(self._realm, actor, guild, Permission.BAN_MEMBERS)
        ban = guild.bans.pop(user_id, None)
        if ban is None:
            raise unknown("Ban")
        self._realm.tell(BanChanged(guild, ban.user, banned=False))


_NEXT = {
    EventStatus.SCHEDULED: (EventStatus.ACTIVE, EventStatus.CANCELED),
    EventStatus.ACTIVE: (EventStatus.COMPLETED,),
}


class Events:
    """The acts on events of one realm. Who made one may change it without the right to manage all."""

    def __init__(self, realm: Realm) -> None:
        self._realm = realm

    def create(self, actor: User, guild: Guild, event: ScheduledEvent) -> ScheduledEvent:
        self._demand(actor, guild, event.channel, P.CREATE_EVENTS)
        guild.events[event.id] = event
        self._realm.tell(EventChanged(guild, event, "created"))
        return event

    def set_status(self, actor: User, guild: Guild, event: ScheduledEvent, status: EventStatus) -> None:
        self._demand_own(actor, guild, event)
        if status not in _NEXT.get(event.status, ()):
            raise bad(180000, "Cannot update a finished event")
        event.status = status
        if status in (EventStatus.COMPLETED, EventStatus.CANCELED):
            del guild.events[event.id]
        self._realm.tell(EventChanged(guild, event, "updated"))

    def delete(self, actor: User, guild: Guild, event: ScheduledEvent) -> None:
        self._demand_own(actor, guild, event)
        del guild.events[event.id]
        self._realm.tell(EventChanged(guild, event, "deleted"))

    def _demand_own(self, actor: User, guild: Guild, event: ScheduledEvent) -> None:
        needed = P.CREATE_EVENTS if event.creator is actor else P.MANAGE_EVENTS
        self._demand(actor, guild, event.channel, needed)

    def _demand(self, actor: User, guild: Guild, channel: Channel | None, needed: P) -> None:
        if channel is None:
            demand_in_guild(self._realm, actor, guild, needed)
            return
        if channel.guild_id != guild.id:
            raise missing_permissions()
        demand(self._realm, actor, channel, needed, P.CONNECT)
