"""Making, changing and removing channels, their overwrites, and direct messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Unpack

from denizen.testing.discord.state.access import demand, demand_in_guild, permissions_in
from denizen.testing.discord.state.changes import ChannelChanged, ThreadChanged
from denizen.testing.discord.state.channels import Channel, ChannelKind, ForumTag, Overwrite
from denizen.testing.discord.state.guilds import ChannelOptions, Guild, Role
from denizen.testing.discord.state.people import User
from denizen.testing.discord.state.permissions import NONE, P
from denizen.testing.discord.state.realm import Realm
from denizen.testing.discord.state.refusals import bad_field, forbidden, missing_permissions, unknown

_KINDS = {
    "text": ChannelKind.TEXT,
    "voice": ChannelKind.VOICE,
    "category": ChannelKind.CATEGORY,
    "announcement": ChannelKind.ANNOUNCEMENT,
    "stage": ChannelKind.STAGE,
    "forum": ChannelKind.FORUM,
    "media": ChannelKind.MEDIA,
}


class Channels:
    """The acts on channels of one realm."""

    def __init__(self, realm: Realm) -> None:
        self._realm = realm

    def add(self, guild: Guild, name: str, **options: Unpack[ChannelOptions]) -> Channel:
        """Unchecked. A channel in a category takes the category's overwrites unless it is given others."""
        category = options.get("category")
        given = list(options.get("overwrites", ())) + _private(guild, options.get("private_to"))
        if not given and category is not None:
            given = [Overwrite(each.id, each.kind, each.allow, each.deny) for each in category.overwrites.values()]
        channel = Channel(
            self._realm.ids.fresh(),
            _KINDS[options.get("kind", "text")],
            name,
            guild.id,
            category,
            position=len(guild.channels),
            topic=options.get("topic"),
            nsfw=options.get("nsfw", False),
            slowmode_s=options.get("slowmode_s", 0),
            overwrites={each.id: each for each in given},
            tags=[ForumTag(self._realm.ids.fresh(), each) for each in options.get("tags", ())],
        )
        guild.channels[channel.id] = channel
        self._realm.channels[channel.id] = channel
        self._realm.tell(ChannelChanged(channel, "created"))
        return channel

    def create(self, actor: User, guild: Guild, name: str, **options: Unpack[ChannelOptions]) -> Channel:
        granted = demand_in_guild(self._realm, actor, guild, P.MANAGE_CHANNELS)
        for overwrite in options.get("overwrites", ()):
            if overwrite.allow & ~granted:
                raise missing_permissions()
        return self.add(guild, name, **options)

    def modify(self, actor: User, channel: Channel, change: Callable[[Channel], None]) -> None:
        """Calls `change` when the actor may manage the channel, and tells."""
        if channel.guild_id is None:
            raise forbidden(50003, "Cannot execute action on a DM channel")
        demand(self._realm, actor, channel, P.MANAGE_CHANNELS)
        change(channel)
        self._realm.tell(ChannelChanged(channel, "updated"))

    def set_overwrite(self, actor: User, channel: Channel, overwrite: Overwrite) -> None:
        """A bot allows or denies only what it may itself."""
        guild = self._guild_of(channel)
        demand(self._realm, actor, channel, P.MANAGE_ROLES)
        granted = permissions_in(self._realm, channel, actor)
        if (overwrite.allow | overwrite.deny) & ~granted:
            raise missing_permissions()
        known = guild.roles if overwrite.kind == 0 else self._realm.users
        if overwrite.id not in known:
            raise unknown("Overwrite")
        channel.overwrites[overwrite.id] = overwrite
        self._realm.tell(ChannelChanged(channel, "updated"))

    def delete_overwrite(self, actor: User, channel: Channel, target_id: int) -> None:
        self._guild_of(channel)
        demand(self._realm, actor, channel, P.MANAGE_ROLES)
        if target_id not in channel.overwrites:
            raise unknown("Overwrite")
        del channel.overwrites[target_id]
        self._realm.tell(ChannelChanged(channel, "updated"))

    def delete(self, actor: User, channel: Channel) -> None:
        """A channel with its threads, or one thread. A direct message is only closed: it stays."""
        if channel.is_dm:
            demand(self._realm, actor, channel)
            return
        demand(self._realm, actor, channel, P.MANAGE_THREADS if channel.is_thread else P.MANAGE_CHANNELS)
        self.remove(channel)

    def remove(self, channel: Channel) -> None:
        """The deletion itself, without a look at who asks."""
        guild = self._guild_of(channel)
        for thread in [each for each in guild.threads.values() if each.parent is channel]:
            self._drop(guild, thread)
        self._drop(guild, channel)
        for each in guild.channels.values():
            each.parent = None if each.parent is channel else each.parent
        if channel.is_thread:
            self._realm.tell(ThreadChanged(channel, "deleted"))
        else:
            self._realm.tell(ChannelChanged(channel, "deleted"))

    def open_dm(self, one: User, other: User) -> Channel:
        """The one direct message of these two, made when it is not there yet."""
        if one is other:
            raise bad_field("recipient_id", "CANNOT_DM_SELF", "Cannot send messages to yourself")
        for channel in self._realm.channels.values():
            if channel.is_dm and one in channel.recipients and other in channel.recipients:
                return channel
        dm = Channel(self._realm.ids.fresh(), ChannelKind.DM, "", recipients=[one, other])
        self._realm.channels[dm.id] = dm
        return dm

    def _guild_of(self, channel: Channel) -> Guild:
        guild = self._realm.guild_of(channel)
        if guild is None:
            raise forbidden(50003, "Cannot execute action on a DM channel")
        return guild

    def _drop(self, guild: Guild, channel: Channel) -> None:
        channel.deleted = True
        guild.channels.pop(channel.id, None)
        guild.threads.pop(channel.id, None)
        del self._realm.channels[channel.id]


def _private(guild: Guild, chosen: Sequence[Role | User] | None) -> list[Overwrite]:
    if chosen is None:
        return []
    allowed = [Overwrite(each.id, 0 if isinstance(each, Role) else 1, P.VIEW_CHANNEL, NONE) for each in chosen]
    return [Overwrite(guild.id, 0, NONE, P.VIEW_CHANNEL), *allowed]
