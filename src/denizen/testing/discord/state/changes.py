"""Changes of the world, one record for each. The gateway reports them to bots, the page to people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from denizen.testing.discord.state.channels import SimChannel, SimScheduledEvent
from denizen.testing.discord.state.guilds import SimGuild, SimMember, SimRole, SimVoiceState
from denizen.testing.discord.state.messages import SimEmoji, SimMessage
from denizen.testing.discord.state.people import SimUser


@dataclass(frozen=True, slots=True)
class MessageSent:
    channel: SimChannel
    message: SimMessage


@dataclass(frozen=True, slots=True)
class MessageEdited:
    channel: SimChannel
    message: SimMessage


@dataclass(frozen=True, slots=True)
class MessagesDeleted:
    """One message was deleted, or several at once (`bulk`)."""

    channel: SimChannel
    messages: Sequence[SimMessage]
    bulk: bool = False


@dataclass(frozen=True, slots=True)
class ReactionsChanged:
    channel: SimChannel
    message: SimMessage
    user: SimUser
    emoji: SimEmoji
    added: bool


@dataclass(frozen=True, slots=True)
class ReactionsCleared:
    """All reactions of a message were removed, or those of one emoji."""

    channel: SimChannel
    message: SimMessage
    emoji: SimEmoji | None


@dataclass(frozen=True, slots=True)
class VoteChanged:
    channel: SimChannel
    message: SimMessage
    user: SimUser
    answer_id: int
    added: bool


@dataclass(frozen=True, slots=True)
class PinsChanged:
    channel: SimChannel


@dataclass(frozen=True, slots=True)
class TypingStarted:
    """Somebody is shown as typing for ten seconds, or until the message comes."""

    channel: SimChannel
    user: SimUser
    at: datetime


@dataclass(frozen=True, slots=True)
class ChannelChanged:
    channel: SimChannel
    how: Literal["created", "updated", "deleted"]


@dataclass(frozen=True, slots=True)
class ThreadChanged:
    channel: SimChannel
    how: Literal["created", "updated", "deleted"]


@dataclass(frozen=True, slots=True)
class ThreadMembersChanged:
    channel: SimChannel
    added: Sequence[SimUser] = ()
    removed: Sequence[SimUser] = ()


@dataclass(frozen=True, slots=True)
class GuildChanged:
    guild: SimGuild


@dataclass(frozen=True, slots=True)
class GuildAvailability:
    guild: SimGuild


@dataclass(frozen=True, slots=True)
class MemberChanged:
    guild: SimGuild
    member: SimMember
    how: Literal["joined", "updated", "left"]


@dataclass(frozen=True, slots=True)
class VoiceStateChanged:
    """Somebody joined a voice channel, moved, or left (`state.channel` is None)."""

    guild: SimGuild
    state: SimVoiceState


@dataclass(frozen=True, slots=True)
class BanChanged:
    guild: SimGuild
    user: SimUser
    banned: bool


@dataclass(frozen=True, slots=True)
class RoleChanged:
    guild: SimGuild
    role: SimRole
    how: Literal["created", "updated", "deleted"]


@dataclass(frozen=True, slots=True)
class ExpressionsChanged:
    guild: SimGuild
    what: Literal["emojis", "stickers"]


@dataclass(frozen=True, slots=True)
class EventChanged:
    guild: SimGuild
    event: SimScheduledEvent
    how: Literal["created", "updated", "deleted"]


@dataclass(frozen=True, slots=True)
class InviteChanged:
    channel: SimChannel
    invite: dict[str, Any]
    how: Literal["created", "deleted"]


@dataclass(frozen=True, slots=True)
class WebhooksChanged:
    channel: SimChannel


@dataclass(frozen=True, slots=True)
class PresenceChanged:
    user: SimUser


@dataclass(frozen=True, slots=True)
class InteractionSent:
    """Somebody used a command or a component. `payload` is what the application gets."""

    application_id: int
    guild_id: int | None
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class InteractionAnswered:
    """An application has answered an interaction, or has said that it will."""

    interaction_id: int


SimChange = (
    MessageSent
    | MessageEdited
    | MessagesDeleted
    | ReactionsChanged
    | ReactionsCleared
    | VoteChanged
    | PinsChanged
    | TypingStarted
    | ChannelChanged
    | ThreadChanged
    | ThreadMembersChanged
    | GuildChanged
    | GuildAvailability
    | MemberChanged
    | VoiceStateChanged
    | BanChanged
    | RoleChanged
    | ExpressionsChanged
    | EventChanged
    | InviteChanged
    | WebhooksChanged
    | PresenceChanged
    | InteractionSent
    | InteractionAnswered
)
