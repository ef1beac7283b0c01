"""A guild: its roles, members, channels, and what a test asks it for. The work behind is done by the acts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypedDict, Unpack

from denizen.testing.discord.state.channels import Channel, Overwrite, ScheduledEvent
from denizen.testing.discord.state.messages import Emoji, Sticker
from denizen.testing.discord.state.people import User
from denizen.testing.discord.state.permissions import EVERYONE, Permission


@dataclass(slots=True, eq=False)
class Role:
    """A role. `bot_id` marks the managed role of one bot. The one of @everyone has the id of its guild."""

    id: int
    name: str
    permissions: Permission
    position: int
    guild_id: int
    color: int = 0
    hoist: bool = False
    mentionable: bool = False
    bot_id: int | None = None

    @property
    def mention(self) -> str:
        return f"<@&{self.id}>"

    @property
    def managed(self) -> bool:
        return self.bot_id is not None


@dataclass(slots=True, eq=False)
class Member:
    """Somebody in one guild. `roles` are ids, without @everyone."""

    user: User
    guild_id: int
    joined_at: datetime
    roles: list[int] = field(default_factory=list[int])
    nick: str | None = None
    timeout_until: datetime | None = None

    @property
    def display_name(self) -> str:
        return self.nick or self.user.display_name


@dataclass(frozen=True, slots=True)
class Ban:
    user: User
    reason: str | None


class ChannelOptions(TypedDict, total=False):
    """How a new channel differs from an open text channel at the end of the list.

    `kind`: text, announcement, forum, media, voice, stage or category. `private_to`: only these roles and people see it
    (and administrators). `tags`: names of a forum's tags.
    """

    kind: str
    category: Channel | None
    private_to: Sequence[Role | User]
    overwrites: Sequence[Overwrite]
    topic: str
    slowmode_s: int
    nsfw: bool
    tags: Sequence[str]


class RoleOptions(TypedDict, total=False):
    """How a new role differs from a grey one without rights of its own."""

    permissions: Permission
    color: int
    hoist: bool
    mentionable: bool


class Steward(Protocol):
    """Who changes guilds: checks, changes, tells."""

    def add_channel(self, guild: Guild, name: str, **options: Unpack[ChannelOptions]) -> Channel: ...
    def add_role(self, guild: Guild, name: str, **options: Unpack[RoleOptions]) -> Role: ...
    def join(self, guild: Guild, user: User, roles: Sequence[Role | Permission]) -> Member: ...
    def leave(self, guild: Guild, user: User) -> None: ...
    def set_roles(self, guild: Guild, user: User, roles: Sequence[Role]) -> Member: ...
    def add_emoji(self, guild: Guild, name: str) -> Emoji: ...
    def add_sticker(self, guild: Guild, name: str) -> Sticker: ...
    def set_available(self, guild: Guild, *, available: bool) -> None: ...


@dataclass(slots=True, eq=False)
class Guild:
    """A server. Its methods act as Discord's owner would: unchecked, but told to every bot that may know."""

    id: int
    name: str
    owner: User
    steward: Steward
    roles: dict[int, Role] = field(default_factory=dict[int, Role])
    members: dict[int, Member] = field(default_factory=dict[int, Member])
    channels: dict[int, Channel] = field(default_factory=dict[int, Channel])
    threads: dict[int, Channel] = field(default_factory=dict[int, Channel])
    events: dict[int, ScheduledEvent] = field(default_factory=dict[int, ScheduledEvent])
    bans: dict[int, Ban] = field(default_factory=dict[int, Ban])
    emojis: dict[int, Emoji] = field(default_factory=dict[int, Emoji])
    stickers: dict[int, Sticker] = field(default_factory=dict[int, Sticker])
    available: bool = True

    @property
    def everyone(self) -> Role:
        return self.roles[self.id]

    def add_channel(self, name: str, **options: Unpack[ChannelOptions]) -> Channel:
        return self.steward.add_channel(self, name, **options)

    def add_role(self, name: str, **options: Unpack[RoleOptions]) -> Role:
        return self.steward.add_role(self, name, **options)

    def join(self, user: User, roles: Sequence[Role | Permission] = ()) -> Member:
        """Admits somebody. For a bot, a permission among the roles becomes its managed role."""
        return self.steward.join(self, user, roles)

    def leave(self, user: User) -> None:
        self.steward.leave(self, user)

    def set_roles(self, user: User, roles: Sequence[Role]) -> Member:
        return self.steward.set_roles(self, user, roles)

    def add_emoji(self, name: str) -> Emoji:
        return self.steward.add_emoji(self, name)

    def add_sticker(self, name: str) -> Sticker:
        return self.steward.add_sticker(self, name)

    def set_available(self, *, available: bool) -> None:
        """An outage of this guild begins or ends."""
        self.steward.set_available(self, available=available)

    def channel(self, name: str) -> Channel:
        """The channel or thread of that name. Raises KeyError."""
        for each in (*self.channels.values(), *self.threads.values()):
            if each.name == name.lstrip("#"):
                return each
        raise KeyError(name)

    def __repr__(self) -> str:
        return f"<Guild {self.name} {self.id}>"


def everyone_role(guild_id: int) -> Role:
    return Role(guild_id, "@everyone", EVERYONE, 0, guild_id)


def find_members(guild: Guild, prefix: str, limit: int) -> list[Member]:
    """Members whose name or nick begins with this, whatever the case."""
    start = prefix.casefold()
    found = [
        each
        for each in guild.members.values()
        if any(name.casefold().startswith(start) for name in (each.user.name, each.user.display_name, each.nick or ""))
    ]
    return found[:limit] if limit else found
