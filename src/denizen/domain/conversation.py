"""Where talk happens, and one agent's own history in it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from denizen.domain.ids import AgentName, ConversationId, SessionId, conversation_id


@dataclass(frozen=True, slots=True)
class Place:
    """Platform, channel and thread, in the platform's own ids. `thread` is empty outside threads."""

    platform: str
    channel: str
    thread: str = ""

    @property
    def conversation_id(self) -> ConversationId:
        return conversation_id(self.platform, self.channel, self.thread)


@dataclass(frozen=True, slots=True)
class Conversation:
    """Several agents may share one."""

    id: ConversationId
    place: Place
    title: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Session:
    """One agent's history in a conversation. `/new` closes it and opens the next; the old one stays readable."""

    id: SessionId
    conversation_id: ConversationId
    agent: AgentName
    created_at: datetime
    closed_at: datetime | None = None
