"""Everything there is, by id, and the feed on which changes are told. One realm is one simulated Discord."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import quote

from denizen.domain.clock import Clock
from denizen.testing.discord.state.changes import Change
from denizen.testing.discord.state.channels import Channel
from denizen.testing.discord.state.clock import Snowflakes
from denizen.testing.discord.state.errors import unknown
from denizen.testing.discord.state.guilds import Guild, Member
from denizen.testing.discord.state.interactions import Command, CommandWrite, Interaction
from denizen.testing.discord.state.messages import Attachment, Message
from denizen.testing.discord.state.people import Application, User

Listener = Callable[[Change], None]


@dataclass(slots=True)
class Rules:
    """The limits of Discord that a test may want to move. A deadline of None never passes."""

    content_length: int = 2000
    nonce_window: timedelta = timedelta(minutes=5)
    first_answer: timedelta | None = timedelta(seconds=3)
    token_life: timedelta | None = timedelta(minutes=15)
    bulk_delete_age: timedelta = timedelta(days=14)
    file_size_bytes: int = 10 * 1024 * 1024
    pins: int = 250
    suggested_shards: int = 1
    command_writes_a_day: int = 200


@dataclass(slots=True)
class Webhook:
    """An incoming webhook of one channel."""

    id: int
    token: str
    name: str
    channel: Channel
    creator: User
    application_id: int | None = None


@dataclass(slots=True)
class Invite:
    """An invitation to a guild by way of one channel."""

    code: str
    channel: Channel
    inviter: User
    max_age_s: int = 86400
    max_uses: int = 0
    temporary: bool = False
    created: int = 0


@dataclass(slots=True, eq=False)
class Realm:
    """The tables. `get_` raises what Discord answers for an id that it does not know."""

    clock: Clock
    ids: Snowflakes
    rules: Rules = field(default_factory=Rules)
    cdn_url: str = ""
    users: dict[int, User] = field(default_factory=dict[int, User])
    applications: dict[int, Application] = field(default_factory=dict[int, Application])
    guilds: dict[int, Guild] = field(default_factory=dict[int, Guild])
    channels: dict[int, Channel] = field(default_factory=dict[int, Channel])
    commands: dict[int, Command] = field(default_factory=dict[int, Command])
    command_writes: list[CommandWrite] = field(default_factory=list[CommandWrite])
    interactions: dict[str, Interaction] = field(default_factory=dict[str, Interaction])
    webhooks: dict[int, Webhook] = field(default_factory=dict[int, Webhook])
    invites: dict[str, Invite] = field(default_factory=dict[str, Invite])
    files: dict[int, Attachment] = field(default_factory=dict[int, Attachment])
    presences: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])
    nonces: dict[tuple[int, int, str], Message] = field(default_factory=dict[tuple[int, int, str], Message])
    _listeners: list[Listener] = field(default_factory=list[Listener])

    def subscribe(self, listener: Listener) -> None:
        """`listener` is called with every change, in order, right after it was made."""
        self._listeners.append(listener)

    def tell(self, change: Change) -> None:
        for listener in list(self._listeners):
            listener(change)

    def get_channel(self, channel_id: int) -> Channel:
        if channel := self.channels.get(channel_id):
            return channel
        raise unknown("Channel")

    def get_guild(self, guild_id: int) -> Guild:
        if guild := self.guilds.get(guild_id):
            return guild
        raise unknown("Guild")

    def get_user(self, user_id: int) -> User:
        if user := self.users.get(user_id):
            return user
        raise unknown("User")

    def get_message(self, channel: Channel, message_id: int) -> Message:
        if message := channel.find(message_id):
            return message
        raise unknown("Message")

    def get_member(self, guild: Guild, user_id: int) -> Member:
        if member := guild.members.get(user_id):
            return member
        raise unknown("Member" if user_id in self.users else "User")

    def guild_of(self, channel: Channel) -> Guild | None:
        return None if channel.guild_id is None else self.guilds.get(channel.guild_id)

    def find_message(self, channel_id: int, message_id: int) -> Message | None:
        channel = self.channels.get(channel_id)
        return None if channel is None else channel.find(message_id)

    def thread_of(self, message: Message) -> Channel | None:
        """The thread that hangs on this message: it has the same id."""
        thread = self.channels.get(message.id)
        return thread if thread is not None and thread.is_thread else None

    def url_of(self, channel_id: int, file: Attachment) -> str:
        """Where the CDN has this file. Real addresses expire; these do not."""
        return f"{self.cdn_url}/attachments/{channel_id}/{file.id}/{quote(file.filename)}"
