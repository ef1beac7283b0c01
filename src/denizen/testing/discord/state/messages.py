"""Messages with their files, reactions, polls, references and the history of their edits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum, IntFlag
from typing import Any

from denizen.testing.discord.state.people import SimUser


class MessageKind(IntEnum):
    """Types of messages. Discord itself writes all but the first and the last three."""

    DEFAULT = 0
    CHANNEL_PINNED_MESSAGE = 6
    USER_JOIN = 7
    THREAD_CREATED = 18
    REPLY = 19
    CHAT_INPUT_COMMAND = 20
    THREAD_STARTER_MESSAGE = 21
    CONTEXT_MENU_COMMAND = 23
    POLL_RESULT = 46


class MessageFlag(IntFlag):
    CROSSPOSTED = 1 << 0
    SUPPRESS_EMBEDS = 1 << 2
    HAS_THREAD = 1 << 5
    EPHEMERAL = 1 << 6
    LOADING = 1 << 7
    SUPPRESS_NOTIFICATIONS = 1 << 12
    IS_VOICE_MESSAGE = 1 << 13
    HAS_SNAPSHOT = 1 << 14
    IS_COMPONENTS_V2 = 1 << 15


@dataclass(frozen=True, slots=True)
class SimEmoji:
    """A Unicode emoji (no id) or one of a guild."""

    name: str
    id: int | None = None
    animated: bool = False

    @property
    def key(self) -> str:
        """The emoji itself, or `name:id`, as in a route."""
        return self.name if self.id is None else f"{self.name}:{self.id}"


@dataclass(frozen=True, slots=True)
class SimSticker:
    """A sticker of a guild. Format 1 is PNG."""

    id: int
    name: str
    guild_id: int
    format: int = 1
    tags: str = "wave"
    description: str = ""


@dataclass(frozen=True, slots=True)
class SimAttachment:
    """A file. `file` makes one to send; it gets its id when it is sent."""

    filename: str
    content: bytes
    content_type: str | None = None
    description: str | None = None
    id: int = 0
    ephemeral: bool = False
    title: str | None = None
    duration_s: float | None = None
    waveform: str | None = None

    @property
    def size_bytes(self) -> int:
        return len(self.content)


@dataclass(slots=True)
class SimReaction:
    """One emoji under a message, with those who chose it in order."""

    emoji: SimEmoji
    users: list[SimUser] = field(default_factory=list[SimUser])


@dataclass(slots=True)
class SimPoll:
    """A poll. Answers are numbered from 1; `votes` holds who chose which."""

    question: str
    answers: Sequence[tuple[str, SimEmoji | None]]
    expiry: datetime
    multiple: bool = False
    finalized: bool = False
    votes: dict[int, list[SimUser]] = field(default_factory=dict[int, list[SimUser]])


@dataclass(frozen=True, slots=True)
class SimPollDraft:
    """A poll before it is sent."""

    question: str
    answers: Sequence[str | tuple[str, SimEmoji | None]]
    duration: timedelta = timedelta(hours=24)
    multiple: bool = False


@dataclass(frozen=True, slots=True)
class SimReference:
    """A reference to another message. Kind 0 is a reply (or a system message's subject), 1 a forward."""

    channel_id: int
    message_id: int | None = None
    guild_id: int | None = None
    kind: int = 0
    fail_if_not_exists: bool = True


@dataclass(frozen=True, slots=True)
class SimMessageBody:
    """The content of a message. Components and embeds are kept as they came."""

    content: str = ""
    embeds: Sequence[dict[str, Any]] = ()
    components: Sequence[dict[str, Any]] = ()
    attachments: Sequence[SimAttachment] = ()
    stickers: Sequence[SimSticker] = ()
    snapshots: Sequence[SimSnapshot] = ()
    poll: SimPoll | None = None
    tts: bool = False

    @property
    def is_empty(self) -> bool:
        parts = (self.embeds, self.components, self.attachments, self.stickers, self.snapshots, self.poll)
        return not self.content and not any(parts)


@dataclass(frozen=True, slots=True)
class SimSnapshot:
    """A forwarded message, as it was then."""

    body: SimMessageBody
    kind: MessageKind
    timestamp: datetime
    edited: datetime | None
    flags: int
    mentions: Sequence[SimUser] = ()


@dataclass(frozen=True, slots=True)
class SimEdit:
    """An earlier version of a message and when it was replaced."""

    body: SimMessageBody
    at: datetime


@dataclass(frozen=True, slots=True)
class SimMentions:
    """The mentions that count: users, ids of roles, and whether everyone is mentioned."""

    users: list[SimUser] = field(default_factory=list[SimUser])
    roles: list[int] = field(default_factory=list[int])
    everyone: bool = False


@dataclass(frozen=True, slots=True)
class MessageOrigin:
    """The webhook or interaction that a message comes from, and its nonce.

    Only `seen_by` sees an ephemeral message, which is in no channel's list.
    """

    webhook_id: int | None = None
    application_id: int | None = None
    interaction: Mapping[str, Any] | None = None
    seen_by: SimUser | None = None
    nonce: str | int | None = None


@dataclass(slots=True)
class SimMessageState:
    """Everything that happens to a message after it was sent. `edits` has the earlier versions, oldest first."""

    edited: datetime | None = None
    edits: list[SimEdit] = field(default_factory=list[SimEdit])
    reactions: list[SimReaction] = field(default_factory=list[SimReaction])
    pinned_at: datetime | None = None
    position: int | None = None
    """The number of messages before it in its thread."""
    deleted: bool = False
    odd_fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Fields that are sent as they stand here, to see what a client does with a form that it does not expect."""


@dataclass(slots=True, eq=False)
class SimMessage:
    """A message."""

    id: int
    channel_id: int
    guild_id: int | None
    author: SimUser
    timestamp: datetime
    kind: MessageKind = MessageKind.DEFAULT
    flags: int = 0
    body: SimMessageBody = SimMessageBody()
    mentioned: SimMentions = field(default_factory=SimMentions)
    reference: SimReference | None = None
    origin: MessageOrigin = MessageOrigin()
    state: SimMessageState = field(default_factory=SimMessageState)

    @property
    def content(self) -> str:
        return self.body.content

    @property
    def ephemeral(self) -> bool:
        return bool(self.flags & MessageFlag.EPHEMERAL)

    @property
    def loading(self) -> bool:
        """Whether it is a deferred answer without its text."""
        return bool(self.flags & MessageFlag.LOADING)

    @property
    def pinned(self) -> bool:
        return self.state.pinned_at is not None

    def __str__(self) -> str:
        marks = [f"[{each.filename}]" for each in self.body.attachments]
        marks += [f"[embed {each.get('title') or ''}]" for each in self.body.embeds]
        marks += [f"[{each.emoji.name} {len(each.users)}]" for each in self.state.reactions]
        return " ".join([f"{self.author.display_name}: {self.content}", *marks])


def file(filename: str, content: bytes | str, content_type: str | None = None) -> SimAttachment:
    """A file to be sent."""
    return SimAttachment(filename, content.encode() if isinstance(content, str) else content, content_type)
