"""A guild: its roles, members and channels, and methods for tests, which the actions implement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypedDict, Unpack

from denizen.testing.discord.state.channels import SimChannel, SimOverwrite, SimScheduledEvent
from denizen.testing.discord.state.messages import SimEmoji, SimSticker
from denizen.testing.discord.state.people import SimUser
from denizen.testing.discord.state.permissions import EVERYONE, DiscordPermission


@dataclass(slots=True, eq=False)
class SimRole:
    """A role. `bot_id` marks the managed role of one bot. @everyone has the id of its guild."""

    id: int
    name: str
    permissions: DiscordPermission
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
class SimMember:
    """A member of one guild. `roles` are ids, without @everyone."""

    user: SimUser
    guild_id: int
    joined_at: datetime
    roles: list[int] = field(default_factory=list[int])
    nick: str | None = None
    timeout_until: datetime | None = None

    @property
    def display_name(self) -> str:
        return self.nick or self.user.display_name


@dataclass(frozen=True, slots=True)
class SimVoiceState:
    """A member in a voice channel; `channel` is None for one who has just left."""

    user: SimUser
    channel: SimChannel | None
    session_id: str
    self_mute: bool = False
    self_deaf: bool = False


@dataclass(frozen=True, slots=True)
class SimBan:
    user: SimUser
    reason: str | None


@dataclass(slots=True)
class SimExpressions:
    """The emojis and stickers of a guild, by id."""

    emojis: dict[int, SimEmoji] = field(default_factory=dict[int, SimEmoji])
    stickers: dict[int, SimSticker] = field(default_factory=dict[int, SimSticker])


@dataclass(slots=True)
class SimAttendance:
    """The people who were banned from a guild, and those who are in its voice channels, by id."""

    bans: dict[int, SimBan] = field(default_factory=dict[int, SimBan])
    voice: dict[int, SimVoiceState] = field(default_factory=dict[int, SimVoiceState])


class ChannelOptions(TypedDict, total=False):
    """The options of a new channel. By default it is an open text channel at the end of the list.

    `kind`: text, announcement, forum, media, voice, stage or category. `private_to`: only these roles and people see
    it (and administrators). `tags`: names of a forum's tags.
    """

    kind: str
    category: SimChannel | None
    private_to: Sequence[SimRole | SimUser]
    overwrites: Sequence[SimOverwrite]
    topic: str
    slowmode_s: int
    nsfw: bool
    tags: Sequence[str]


class RoleOptions(TypedDict, total=False):
    """The options of a new role. By default it is grey and has no permissions of its own."""

    permissions: DiscordPermission
    color: int
    hoist: bool
    mentionable: bool


class GuildManager(Protocol):
    """Changes guilds: checks, changes, reports."""

    def add_channel(self, guild: SimGuild, name: str, **options: Unpack[ChannelOptions]) -> SimChannel: ...
    def add_role(self, guild: SimGuild, name: str, **options: Unpack[RoleOptions]) -> SimRole: ...
    def join(self, guild: SimGuild, user: SimUser, roles: Sequence[SimRole | DiscordPermission]) -> SimMember: ...
    def leave(self, guild: SimGuild, user: SimUser) -> None: ...
    def set_roles(self, guild: SimGuild, user: SimUser, roles: Sequence[SimRole]) -> SimMember: ...
    def add_emoji(self, guild: SimGuild, name: str, *, animated: bool = False) -> SimEmoji: ...
    def add_sticker(self, guild: SimGuild, name: str) -> SimSticker: ...
    def set_available(self, guild: SimGuild, *, available: bool) -> None: ...


@dataclass(slots=True, eq=False)
class SimGuild:
    """A server. Its methods act like Discord itself: unchecked, but reported to every bot that may know."""

    id: int
    name: str
    owner: SimUser
    steward: GuildManager
    roles: dict[int, SimRole] = field(default_factory=dict[int, SimRole])
    members: dict[int, SimMember] = field(default_factory=dict[int, SimMember])
    channels: dict[int, SimChannel] = field(default_factory=dict[int, SimChannel])
    threads: dict[int, SimChannel] = field(default_factory=dict[int, SimChannel])
    events: dict[int, SimScheduledEvent] = field(default_factory=dict[int, SimScheduledEvent])
    attendance: SimAttendance = field(default_factory=SimAttendance)
    expressions: SimExpressions = field(default_factory=SimExpressions)
    available: bool = True

    @property
    def bans(self) -> dict[int, SimBan]:
        return self.attendance.bans

    @property
    def voice(self) -> dict[int, SimVoiceState]:
        """The members who are in a voice channel."""
        return self.attendance.voice

    @property
    def everyone(self) -> SimRole:
        return self.roles[self.id]

    def add_channel(self, name: str, **options: Unpack[ChannelOptions]) -> SimChannel:
        return self.steward.add_channel(self, name, **options)

    def add_role(self, name: str, **options: Unpack[RoleOptions]) -> SimRole:
        return self.steward.add_role(self, name, **options)

    def join(self, user: SimUser, roles: Sequence[SimRole | DiscordPermission] = ()) -> SimMember:
        """Adds a member. For a bot, a permission among the roles becomes its managed role."""
        return self.steward.join(self, user, roles)

    def leave(self, user: SimUser) -> None:
        self.steward.leave(self, user)

    def set_roles(self, user: SimUser, roles: Sequence[SimRole]) -> SimMember:
        return self.steward.set_roles(self, user, roles)

    def add_emoji(self, name: str, *, animated: bool = False) -> SimEmoji:
        return self.steward.add_emoji(self, name, animated=animated)

    def add_sticker(self, name: str) -> SimSticker:
        return self.steward.add_sticker(self, name)

    def set_available(self, *, available: bool) -> None:
        """Begins or ends an outage of this guild."""
        self.steward.set_available(self, available=available)

    def channel(self, name: str) -> SimChannel:
        """Returns the channel or thread of that name. Raises KeyError."""
        for each in (*self.channels.values(), *self.threads.values()):
            if each.name == name.lstrip("#"):
                return each
        raise KeyError(name)

    def __repr__(self) -> str:
        return f"<Guild {self.name} {self.id}>"


def everyone_role(guild_id: int) -> SimRole:
    return SimRole(guild_id, "@everyone", EVERYONE, 0, guild_id)


def find_members(guild: SimGuild, prefix: str, limit: int) -> list[SimMember]:
    """Returns members whose name or nickname begins with this, whatever the case."""
    start = prefix.casefold()
    found = [
        each
        for each in guild.members.values()
        if any(name.casefold().startswith(start) for name in (each.user.name, each.user.display_name, each.nick or ""))
    ]
    return found[:limit] if limit else found
