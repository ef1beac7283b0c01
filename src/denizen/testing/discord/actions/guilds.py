"""Actions on guilds, their roles, members, bans, emojis and events. Those without an actor are unchecked."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Unpack

from denizen.testing.discord.actions.channels import ChannelActions
from denizen.testing.discord.actions.messages import MessageActions
from denizen.testing.discord.state.access import (
    permissions_in_guild,
    require_guild_permission,
    require_permission,
    require_rank,
)
from denizen.testing.discord.state.changes import (
    BanChanged,
    EventChanged,
    ExpressionsChanged,
    GuildAvailability,
    GuildChanged,
    MemberChanged,
    RoleChanged,
    VoiceStateChanged,
)
from denizen.testing.discord.state.channels import EventStatus, SimChannel, SimScheduledEvent
from denizen.testing.discord.state.clock import snowflake_time
from denizen.testing.discord.state.errors import bad, missing_permissions, unknown
from denizen.testing.discord.state.guilds import (
    ChannelOptions,
    RoleOptions,
    SimBan,
    SimGuild,
    SimMember,
    SimRole,
    SimVoiceState,
    everyone_role,
)
from denizen.testing.discord.state.messages import SimEmoji, SimSticker
from denizen.testing.discord.state.people import SimUser
from denizen.testing.discord.state.permissions import NONE, DiscordPermission, P
from denizen.testing.discord.state.store import SimStore


class GuildActions:
    """The manager of every guild of a store, and the checked actions on members and roles."""

    def __init__(self, store: SimStore, channels: ChannelActions, messages: MessageActions) -> None:
        self._store = store
        self._channels = channels
        self._messages = messages

    def add_guild(self, name: str, owner: SimUser) -> SimGuild:
        guild_id = self._store.ids.fresh()
        guild = SimGuild(guild_id, name, owner, self)
        guild.roles[guild_id] = everyone_role(guild_id)
        self._store.guilds[guild_id] = guild
        self.join(guild, owner, ())
        return guild

    def add_channel(self, guild: SimGuild, name: str, **options: Unpack[ChannelOptions]) -> SimChannel:
        return self._channels.add(guild, name, **options)

    def set_voice(
        self, guild: SimGuild, user: SimUser, channel: SimChannel | None, *, mute: bool = False, deaf: bool = False
    ) -> SimVoiceState:
        """Puts a member into a voice channel, or out of it."""
        before = guild.voice.get(user.id)
        state = SimVoiceState(user, channel, before.session_id if before else secrets.token_hex(16), mute, deaf)
        if channel is None:
            guild.voice.pop(user.id, None)
        else:
            guild.voice[user.id] = state
        if before is not None or channel is not None:
            self._store.tell(VoiceStateChanged(guild, state))
        return state

    def add_role(self, guild: SimGuild, name: str, **options: Unpack[RoleOptions]) -> SimRole:
        for role in guild.roles.values():
            role.position += role.position >= 1
        role = SimRole(
            self._store.ids.fresh(),
            name,
            options.get("permissions", NONE),
            1,
            guild.id,
            color=options.get("color", 0),
            hoist=options.get("hoist", False),
            mentionable=options.get("mentionable", False),
        )
        guild.roles[role.id] = role
        self._store.tell(RoleChanged(guild, role, "created"))
        return role

    def join(self, guild: SimGuild, user: SimUser, roles: Sequence[SimRole | DiscordPermission]) -> SimMember:
        if user.id in guild.members:
            return self.set_roles(guild, user, [each for each in roles if isinstance(each, SimRole)])
        granted = NONE
        for each in roles:
            granted |= each if isinstance(each, DiscordPermission) else NONE
        held = [each.id for each in roles if isinstance(each, SimRole)]
        if user.bot:
            managed = self.add_role(guild, user.name, permissions=granted)
            managed.bot_id = user.id
            held.append(managed.id)
        member = SimMember(user, guild.id, self._store.clock.now(), held)
        guild.members[user.id] = member
        self._store.tell(MemberChanged(guild, member, "joined"))
        return member

    def leave(self, guild: SimGuild, user: SimUser) -> None:
        member = self._store.get_member(guild, user.id)
        for thread in guild.threads.values():
            if thread.thread:
                thread.thread.members.pop(user.id, None)
        del guild.members[user.id]
        self._store.tell(MemberChanged(guild, member, "left"))

    def set_roles(self, guild: SimGuild, user: SimUser, roles: Sequence[SimRole]) -> SimMember:
        """Sets the roles of a member. The managed role of a bot stays."""
        member = self._store.get_member(guild, user.id)
        kept = [each for each in member.roles if guild.roles[each].managed]
        member.roles = list(dict.fromkeys([each.id for each in roles] + kept))
        self._store.tell(MemberChanged(guild, member, "updated"))
        return member

    def create_emoji(self, actor: SimUser, guild: SimGuild, name: str, *, animated: bool) -> SimEmoji:
        require_guild_permission(self._store, actor, guild, DiscordPermission.CREATE_GUILD_EXPRESSIONS)
        return self.add_emoji(guild, name, animated=animated)

    def add_emoji(self, guild: SimGuild, name: str, *, animated: bool = False) -> SimEmoji:
        emoji = SimEmoji(name, self._store.ids.fresh(), animated)
        guild.expressions.emojis[emoji.id or 0] = emoji
        self._store.tell(ExpressionsChanged(guild, "emojis"))
        return emoji

    def delete_emoji(self, actor: SimUser, guild: SimGuild, emoji: SimEmoji) -> None:
        require_guild_permission(self._store, actor, guild, DiscordPermission.MANAGE_GUILD_EXPRESSIONS)
        del guild.expressions.emojis[emoji.id or 0]
        self._store.tell(ExpressionsChanged(guild, "emojis"))

    def add_sticker(self, guild: SimGuild, name: str) -> SimSticker:
        sticker = SimSticker(self._store.ids.fresh(), name, guild.id)
        guild.expressions.stickers[sticker.id] = sticker
        self._store.tell(ExpressionsChanged(guild, "stickers"))
        return sticker

    def set_available(self, guild: SimGuild, *, available: bool) -> None:
        guild.available = available
        self._store.tell(GuildAvailability(guild))

    def rename(self, actor: SimUser, guild: SimGuild, name: str) -> None:
        require_guild_permission(self._store, actor, guild, DiscordPermission.MANAGE_GUILD)
        guild.name = name
        self._store.tell(GuildChanged(guild))

    def create_role(self, actor: SimUser, guild: SimGuild, name: str, **options: Unpack[RoleOptions]) -> SimRole:
        """Creates a role. A bot grants no right that it does not hold."""
        granted = require_guild_permission(self._store, actor, guild, DiscordPermission.MANAGE_ROLES)
        if options.get("permissions", NONE) & ~granted:
            raise missing_permissions()
        return self.add_role(guild, name, **options)

    def edit_role(
        self, actor: SimUser, guild: SimGuild, role: SimRole, name: str | None, **options: Unpack[RoleOptions]
    ) -> SimRole:
        granted = require_guild_permission(self._store, actor, guild, DiscordPermission.MANAGE_ROLES)
        require_rank(self._store, actor, guild, role)
        if options.get("permissions", NONE) & ~granted:
            raise missing_permissions()
        role.name = name or role.name
        role.permissions = options.get("permissions", role.permissions)
        role.color = options.get("color", role.color)
        role.hoist = options.get("hoist", role.hoist)
        role.mentionable = options.get("mentionable", role.mentionable)
        self._store.tell(RoleChanged(guild, role, "updated"))
        return role

    def delete_role(self, actor: SimUser, guild: SimGuild, role: SimRole) -> None:
        require_guild_permission(self._store, actor, guild, DiscordPermission.MANAGE_ROLES)
        require_rank(self._store, actor, guild, role)
        if role is guild.everyone or role.managed:
            raise missing_permissions()
        del guild.roles[role.id]
        for channel in guild.channels.values():
            channel.overwrites.pop(role.id, None)
        for member in guild.members.values():
            if role.id in member.roles:
                member.roles.remove(role.id)
        self._store.tell(RoleChanged(guild, role, "deleted"))

    def give_role(self, actor: SimUser, guild: SimGuild, member: SimMember, role: SimRole, *, given: bool) -> None:
        require_guild_permission(self._store, actor, guild, DiscordPermission.MANAGE_ROLES)
        require_rank(self._store, actor, guild, role)
        if role is guild.everyone or role.managed:
            raise missing_permissions()
        if given == (role.id in member.roles):
            return
        if given:
            member.roles.append(role.id)
        else:
            member.roles.remove(role.id)
        self._store.tell(MemberChanged(guild, member, "updated"))

    def rename_member(self, actor: SimUser, guild: SimGuild, member: SimMember, nick: str | None) -> None:
        needed = DiscordPermission.CHANGE_NICKNAME if member.user is actor else DiscordPermission.MANAGE_NICKNAMES
        require_guild_permission(self._store, actor, guild, needed)
        if member.user is not actor:
            require_rank(self._store, actor, guild, member)
        member.nick = nick or None
        self._store.tell(MemberChanged(guild, member, "updated"))

    def time_out(self, actor: SimUser, guild: SimGuild, member: SimMember, until: datetime | None) -> None:
        require_guild_permission(self._store, actor, guild, DiscordPermission.MODERATE_MEMBERS)
        require_rank(self._store, actor, guild, member)
        if (
            until is not None
            and permissions_in_guild(self._store, guild, member.user) & DiscordPermission.ADMINISTRATOR
        ):
            raise missing_permissions()
        member.timeout_until = until
        self._store.tell(MemberChanged(guild, member, "updated"))

    def kick(self, actor: SimUser, guild: SimGuild, member: SimMember) -> None:
        require_guild_permission(self._store, actor, guild, DiscordPermission.KICK_MEMBERS)
        require_rank(self._store, actor, guild, member)
        self.leave(guild, member.user)

    def ban(
        self, actor: SimUser, guild: SimGuild, user: SimUser, reason: str | None, delete_for: timedelta = timedelta()
    ) -> None:
        """Bans a user and deletes what they wrote within `delete_for`."""
        require_guild_permission(self._store, actor, guild, DiscordPermission.BAN_MEMBERS)
        member = guild.members.get(user.id)
        if member is not None:
            require_rank(self._store, actor, guild, member)
        guild.bans[user.id] = SimBan(user, reason)
        self._store.tell(BanChanged(guild, user, banned=True))
        if member is not None:
            self.leave(guild, user)
        oldest = self._store.clock.now() - delete_for
        for channel in [*guild.channels.values(), *guild.threads.values()]:
            written = [each for each in channel.history if each.author is user and snowflake_time(each.id) >= oldest]
            if written and delete_for:
                self._messages.remove(channel, written, bulk=True)

    def unban(self, actor: SimUser, guild: SimGuild, user_id: int) -> None:
        require_guild_permission(self._store, actor, guild, DiscordPermission.BAN_MEMBERS)
        ban = guild.bans.pop(user_id, None)
        if ban is None:
            raise unknown("Ban")
        self._store.tell(BanChanged(guild, ban.user, banned=False))


_NEXT = {
    EventStatus.SCHEDULED: (EventStatus.ACTIVE, EventStatus.CANCELED),
    EventStatus.ACTIVE: (EventStatus.COMPLETED,),
}


class EventActions:
    """The actions on scheduled events of one store. The creator of an event may change it without further rights."""

    def __init__(self, store: SimStore) -> None:
        self._store = store

    def create(self, actor: SimUser, guild: SimGuild, event: SimScheduledEvent) -> SimScheduledEvent:
        self._demand(actor, guild, event.channel, P.CREATE_EVENTS)
        guild.events[event.id] = event
        self._store.tell(EventChanged(guild, event, "created"))
        return event

    def set_status(self, actor: SimUser, guild: SimGuild, event: SimScheduledEvent, status: EventStatus) -> None:
        self._demand_own(actor, guild, event)
        if status not in _NEXT.get(event.status, ()):
            raise bad(180000, "Cannot update a finished event")
        event.status = status
        if status in (EventStatus.COMPLETED, EventStatus.CANCELED):
            del guild.events[event.id]
        self._store.tell(EventChanged(guild, event, "updated"))

    def delete(self, actor: SimUser, guild: SimGuild, event: SimScheduledEvent) -> None:
        self._demand_own(actor, guild, event)
        del guild.events[event.id]
        self._store.tell(EventChanged(guild, event, "deleted"))

    def _demand_own(self, actor: SimUser, guild: SimGuild, event: SimScheduledEvent) -> None:
        needed = P.CREATE_EVENTS if event.creator is actor else P.MANAGE_EVENTS
        self._demand(actor, guild, event.channel, needed)

    def _demand(self, actor: SimUser, guild: SimGuild, channel: SimChannel | None, needed: P) -> None:
        if channel is None:
            require_guild_permission(self._store, actor, guild, needed)
            return
        if channel.guild_id != guild.id:
            raise missing_permissions()
        require_permission(self._store, actor, channel, needed, P.CONNECT)
