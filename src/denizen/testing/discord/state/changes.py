"""What can happen in the world, one record for each. The gateway tells bots of it; a page may show it to people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from denizen.testing.discord.state.channels import Channel, ScheduledEvent
from denizen.testing.discord.state.guilds import Guild, Member, Role
from denizen.testing.discord.state.messages import Emoji, Message
from denizen.testing.discord.state.people import User


@dataclass(frozen=True, slots=True)
class MessageSent:
    channel: Channel
    message: Message


@dataclass(frozen=True, slots=True)
class MessageEdited:
    channel: Channel
    message: Message


@dataclass(frozen=True, slots=True)
class MessagesDeleted:
    """One, or several at once (`bulk`)."""

    channel: Channel
    messages: Sequence[Message]
    bulk: bool = False


@dataclass(frozen=True, slots=True)
class Reacted:
    channel: Channel
    message: Message
    user: User
    emoji: Emoji
    added: bool


@dataclass(frozen=True, slots=True)
class ReactionsCleared:
    """All reactions of a message, or those of one emoji."""

    channel: Channel
    message: Message
    emoji: Emoji | None


@dataclass(frozen=True, slots=True)
class Voted:
    channel: Channel
    message: Message
    user: User
    answer_id: int
    added: bool


@dataclass(frozen=True, slots=True)
class PinsChanged:
    channel: Channel


@dataclass(frozen=True, slots=True)
class Typing:
    """Somebody is seen typing for ten seconds, or until the message comes."""

    channel: Channel
    user: User
    at: datetime


@dataclass(frozen=True, slots=True)
class ChannelChanged:
    channel: Channel
    how: Literal["created", "updated", "deleted"]


@dataclass(frozen=True, slots=True)
class ThreadChanged:
    channel: Channel
    how: Literal["created", "updated", "deleted"]


@dataclass(frozen=True, slots=True)
class ThreadMembersChanged:
    channel: Channel
    added: Sequence[User] = ()
    removed: Sequence[User] = ()


@dataclass(frozen=True, slots=True)
class GuildChanged:
    guild: Guild


@dataclass(frozen=True, slots=True)
class GuildAvailability:
    guild: Guild


@dataclass(frozen=True, slots=True)
class MemberChanged:
    guild: Guild
    member: Member
    how: Literal["joined", "updated", "left"]


@dataclass(frozen=True, slots=True)
class BanChanged:
    guild: Guild
    user: User
    banned: bool


@dataclass(frozen=True, slots=True)
class RoleChanged:
    guild: Guild
    role: Role
    how: Literal["created", "updated", "deleted"]


@dataclass(frozen=True, slots=True)
class ExpressionsChanged:
    guild: Guild
    what: Literal["emojis", "stickers"]


@dataclass(frozen=True, slots=True)
class EventChanged:
    guild: Guild
    event: ScheduledEvent
    how: Literal["created", "updated", "deleted"]


@dataclass(frozen=True, slots=True)
class InviteChanged:
    channel: Channel
    invite: dict[str, Any]
    how: Literal["created", "deleted"]


@dataclass(frozen=True, slots=True)
class WebhooksChanged:
    channel: Channel


@dataclass(frozen=True, slots=True)
class PresenceChanged:
    user: User


@dataclass(frozen=True, slots=True)
class Interacted:
    """Somebody used a command or a component. `payload` is what the application gets."""

    application_id: int
    guild_id: int | None
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answered:
    """An application has answered an interaction, or has let it be known that it will."""

    interaction_id: int


Change = (
    MessageSent
    | MessageEdited
    | MessagesDeleted
    | Reacted
    | ReactionsCleared
    | Voted
    | PinsChanged
    | Typing
    | ChannelChanged
    | ThreadChanged
    | ThreadMembersChanged
    | GuildChanged
    | GuildAvailability
    | MemberChanged
    | BanChanged
    | RoleChanged
    | ExpressionsChanged
    | EventChanged
    | InviteChanged
    | WebhooksChanged
    | PresenceChanged
    | Interacted
    | Answered
)
