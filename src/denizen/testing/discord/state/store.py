"""The records of one simulated Discord by id, and the feed on which changes are reported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from urllib.parse import quote

from denizen.domain.clock import Clock
from denizen.testing.discord.state.changes import SimChange
from denizen.testing.discord.state.channels import SimChannel
from denizen.testing.discord.state.clock import SnowflakeGenerator
from denizen.testing.discord.state.errors import forbidden, unknown
from denizen.testing.discord.state.guilds import SimGuild, SimMember
from denizen.testing.discord.state.interactions import SimInteractions
from denizen.testing.discord.state.messages import SimAttachment, SimMessage
from denizen.testing.discord.state.people import SimApplication, SimUser

Listener = Callable[[SimChange], None]


@dataclass(slots=True)
class SimLimits:
    """The limits of Discord that a test may change. A deadline of None never passes."""

    content_length: int = 2000
    nonce_window: timedelta = timedelta(minutes=5)
    first_answer: timedelta | None = timedelta(seconds=3)
    token_life: timedelta | None = timedelta(minutes=15)
    bulk_delete_age: timedelta = timedelta(days=14)
    file_size_bytes: int = 10 * 1024 * 1024
    pins: int = 250
    suggested_shards: int = 1
    command_writes_a_day: int = 200
    member_pause: timedelta = timedelta(seconds=30)
    """Between two requests of a bot for all members of a guild."""


@dataclass(slots=True)
class SimWebhook:
    """An incoming webhook of one channel."""

    id: int
    token: str
    name: str
    channel: SimChannel
    creator: SimUser
    application_id: int | None = None


@dataclass(slots=True)
class SimInvite:
    """An invitation to a guild by way of one channel."""

    code: str
    channel: SimChannel
    inviter: SimUser
    max_age_s: int = 86400
    max_uses: int = 0
    temporary: bool = False
    created: int = 0


@dataclass(slots=True)
class SimFiles:
    """The files on the CDN."""

    cdn_url: str = ""
    by_id: dict[int, SimAttachment] = field(default_factory=dict[int, SimAttachment])

    def url(self, channel_id: int, file: SimAttachment) -> str:
        """Returns the address of a file. Discord's addresses expire; these do not."""
        return f"{self.cdn_url}/attachments/{channel_id}/{file.id}/{quote(file.filename)}"


@dataclass(slots=True, eq=False)
class SimStore:
    """The tables. The `get_` methods raise Discord's error for an unknown id."""

    clock: Clock
    ids: SnowflakeGenerator
    rules: SimLimits = field(default_factory=SimLimits)
    users: dict[int, SimUser] = field(default_factory=dict[int, SimUser])
    applications: dict[int, SimApplication] = field(default_factory=dict[int, SimApplication])
    guilds: dict[int, SimGuild] = field(default_factory=dict[int, SimGuild])
    channels: dict[int, SimChannel] = field(default_factory=dict[int, SimChannel])
    interactions: SimInteractions = field(default_factory=SimInteractions)
    webhooks: dict[int, SimWebhook] = field(default_factory=dict[int, SimWebhook])
    invites: dict[str, SimInvite] = field(default_factory=dict[str, SimInvite])
    files: SimFiles = field(default_factory=SimFiles)
    _listeners: list[Listener] = field(default_factory=list[Listener])

    def subscribe(self, listener: Listener) -> None:
        """Calls `listener` with every change, in order, right after it was made."""
        self._listeners.append(listener)

    def tell(self, change: SimChange) -> None:
        for listener in list(self._listeners):
            listener(change)

    def get_channel(self, channel_id: int) -> SimChannel:
        if channel := self.channels.get(channel_id):
            return channel
        raise unknown("Channel")

    def get_guild(self, guild_id: int) -> SimGuild:
        if guild := self.guilds.get(guild_id):
            return guild
        raise unknown("Guild")

    def get_user(self, user_id: int) -> SimUser:
        if user := self.users.get(user_id):
            return user
        raise unknown("User")

    def get_message(self, channel: SimChannel, message_id: int) -> SimMessage:
        if message := channel.find(message_id):
            return message
        raise unknown("Message")

    def get_member(self, guild: SimGuild, user_id: int) -> SimMember:
        if member := guild.members.get(user_id):
            return member
        raise unknown("Member" if user_id in self.users else "User")

    def get_guild_for(self, channel: SimChannel) -> SimGuild | None:
        return None if channel.guild_id is None else self.guilds.get(channel.guild_id)

    def require_guild(self, channel: SimChannel) -> SimGuild:
        """Returns the guild of a channel. Raises 50003 for a direct message."""
        if guild := self.get_guild_for(channel):
            return guild
        raise forbidden(50003, "Cannot execute action on a DM channel")

    def find_message(self, channel_id: int, message_id: int) -> SimMessage | None:
        channel = self.channels.get(channel_id)
        return None if channel is None else channel.find(message_id)

    def find_thread_for(self, message: SimMessage) -> SimChannel | None:
        """Returns the thread under this message, which has the same id."""
        thread = self.channels.get(message.id)
        return thread if thread is not None and thread.is_thread else None
