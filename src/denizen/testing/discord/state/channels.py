"""Channels of every kind and scheduled events. Guild channels, threads and direct messages hold their messages in
order.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum

from denizen.testing.discord.state.messages import SimEmoji, SimMessage
from denizen.testing.discord.state.people import SimUser
from denizen.testing.discord.state.permissions import NONE, DiscordPermission


class ChannelKind(IntEnum):
    TEXT = 0
    DM = 1
    VOICE = 2
    CATEGORY = 4
    ANNOUNCEMENT = 5
    ANNOUNCEMENT_THREAD = 10
    PUBLIC_THREAD = 11
    PRIVATE_THREAD = 12
    STAGE = 13
    FORUM = 15
    MEDIA = 16


THREADS = frozenset({ChannelKind.ANNOUNCEMENT_THREAD, ChannelKind.PUBLIC_THREAD, ChannelKind.PRIVATE_THREAD})
FORUMS = frozenset({ChannelKind.FORUM, ChannelKind.MEDIA})
_PLAINLY_NAMED = frozenset({ChannelKind.TEXT, ChannelKind.ANNOUNCEMENT, *FORUMS})


def normalize_channel_name(kind: ChannelKind, name: str) -> str:
    """Returns the name that Discord gives to a channel: in lower case and without spaces where people type it."""
    return "-".join(name.lower().split()) if kind in _PLAINLY_NAMED else name


WRITABLE = frozenset(
    {ChannelKind.TEXT, ChannelKind.DM, ChannelKind.VOICE, ChannelKind.ANNOUNCEMENT, ChannelKind.STAGE, *THREADS}
)


@dataclass(slots=True)
class SimOverwrite:
    """The permissions that one channel allows and denies to a role (kind 0) or a member (kind 1)."""

    id: int
    kind: int
    allow: DiscordPermission = NONE
    deny: DiscordPermission = NONE


@dataclass(frozen=True, slots=True)
class SimForumTag:
    id: int
    name: str
    moderated: bool = False
    emoji: SimEmoji | None = None


@dataclass(slots=True)
class SimThreadMember:
    user: SimUser
    joined_at: datetime


@dataclass(slots=True)
class SimThreadState:
    """The fields that only threads have."""

    owner: SimUser
    created_at: datetime
    archive_at: datetime
    archived: bool = False
    locked: bool = False
    invitable: bool = True
    auto_archive_min: int = 1440
    members: dict[int, SimThreadMember] = field(default_factory=dict[int, SimThreadMember])
    tags: list[int] = field(default_factory=list[int])
    sent: int = 0
    """The number of messages ever sent, without the first."""


@dataclass(slots=True)
class ChannelSettings:
    """The settings of a channel that people may edit. `tags` are those that a forum offers."""

    topic: str | None = None
    nsfw: bool = False
    slowmode_s: int = 0
    tags: list[SimForumTag] = field(default_factory=list[SimForumTag])
    default_auto_archive_min: int = 1440


@dataclass(slots=True, eq=False)
class MessageHistory:
    """The current messages of a channel in order, oldest first; and its last pin.

    `last_id` stays when the last message is deleted; in a forum it is the last post. `nonces` are by author.
    """

    last_id: int | None = None
    last_pin_at: datetime | None = None
    nonces: dict[tuple[int, str], SimMessage] = field(default_factory=dict[tuple[int, str], SimMessage])
    _ids: list[int] = field(default_factory=list[int])
    _by_id: dict[int, SimMessage] = field(default_factory=dict[int, SimMessage])

    def __iter__(self) -> Iterator[SimMessage]:
        return (self._by_id[each] for each in self._ids)

    def __len__(self) -> int:
        return len(self._ids)

    def find(self, message_id: int) -> SimMessage | None:
        return self._by_id.get(message_id)

    def append(self, message: SimMessage) -> None:
        self._ids.append(message.id)
        self._by_id[message.id] = message
        self.last_id = message.id

    def remove(self, message: SimMessage) -> None:
        del self._by_id[message.id]
        del self._ids[bisect_left(self._ids, message.id)]

    def newest(self, limit: int) -> list[SimMessage]:
        """Returns messages, newest first."""
        return self._slice(max(0, len(self._ids) - limit), len(self._ids))

    def before(self, snowflake: int, limit: int) -> list[SimMessage]:
        """Returns the newest messages before that id, newest first."""
        end = bisect_left(self._ids, snowflake)
        return self._slice(max(0, end - limit), end)

    def after(self, snowflake: int, limit: int) -> list[SimMessage]:
        """Returns the oldest messages after that id, but newest first, as Discord does."""
        start = bisect_right(self._ids, snowflake)
        return self._slice(start, min(len(self._ids), start + limit))

    def around(self, snowflake: int, limit: int) -> list[SimMessage]:
        """Returns messages, half of them before that id and half after, newest first."""
        at = bisect_left(self._ids, snowflake)
        here = at < len(self._ids) and self._ids[at] == snowflake
        start = max(0, at - limit // 2)
        return self._slice(start, min(len(self._ids), at + here + (limit - here) // 2))

    def _slice(self, start: int, end: int) -> list[SimMessage]:
        return [self._by_id[each] for each in reversed(self._ids[start:end])]


@dataclass(slots=True, eq=False)
class SimChannel:
    """One channel, thread or direct message. `parent` is the category, or the channel of a thread."""

    id: int
    kind: ChannelKind
    name: str
    guild_id: int | None = None
    parent: SimChannel | None = None
    position: int = 0
    overwrites: dict[int, SimOverwrite] = field(default_factory=dict[int, SimOverwrite])
    recipients: list[SimUser] = field(default_factory=list[SimUser])
    thread: SimThreadState | None = None
    settings: ChannelSettings = field(default_factory=ChannelSettings)
    history: MessageHistory = field(default_factory=MessageHistory)
    deleted: bool = False

    @property
    def mention(self) -> str:
        return f"<#{self.id}>"

    @property
    def is_thread(self) -> bool:
        return self.thread is not None

    @property
    def is_dm(self) -> bool:
        return self.kind is ChannelKind.DM

    @property
    def messages(self) -> Sequence[SimMessage]:
        """All current messages, oldest first. Ephemeral answers are in no channel."""
        return list(self.history)

    @property
    def texts(self) -> Sequence[str]:
        """The contents of all messages, oldest first."""
        return [message.content for message in self.history]

    def find(self, message_id: int) -> SimMessage | None:
        return self.history.find(message_id)

    def __repr__(self) -> str:
        return f"<Channel #{self.name} {self.kind.name} {self.id}>"


class EventStatus(IntEnum):
    SCHEDULED = 1
    ACTIVE = 2
    COMPLETED = 3
    CANCELED = 4


@dataclass(slots=True, eq=False)
class SimScheduledEvent:
    """A scheduled event. `channel` is None for one at a `location`, which has an end."""

    id: int
    guild_id: int
    name: str
    starts_at: datetime
    creator: SimUser
    ends_at: datetime | None = None
    description: str | None = None
    channel: SimChannel | None = None
    location: str = ""
    status: EventStatus = EventStatus.SCHEDULED
