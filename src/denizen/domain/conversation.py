"""Where talk happens, and one agent's own history in it."""

from __future__ import annotations

from datetime import datetime

from denizen.domain.errors import InvalidInput
from denizen.domain.ids import AgentName, ConversationId, SessionId, conversation_id
from denizen.domain.record import record

ALONE = "once_"
"""The name of a session that is asked one question begins so."""
MAX_NAME_CHARS = 200
"""The limit for the name that an owner gives to a session."""


@record
class Place:
    """Platform, channel and thread, in the platform's own ids. `thread` is empty outside threads."""

    platform: str
    channel: str
    thread: str = ""

    @property
    def conversation_id(self) -> ConversationId:
        return conversation_id(self.platform, self.channel, self.thread)


def own_place(platform: str, principal_key: str, session: str) -> Place:
    """The place of somebody's own session of that name, off platforms: nobody else's request can name it.

    Raises InvalidInput for a name that is empty, too long, or not printable.
    """
    if not 0 < len(session) <= MAX_NAME_CHARS or not session.isprintable():
        raise InvalidInput(
            f"A session's name has 1 to {MAX_NAME_CHARS} printable characters.", code="session_name_invalid"
        )
    return Place(platform, principal_key, session)


@record
class Conversation:
    """Several agents may share one."""

    id: ConversationId
    place: Place
    title: str
    created_at: datetime


@record
class Session:
    """One agent's history in a conversation. `/new` closes it and opens the next; the old one stays readable.

    A fork begins with copies of what its parent had before the message `fork_sequence`.
    """

    id: SessionId
    conversation_id: ConversationId
    agent: AgentName
    created_at: datetime
    closed_at: datetime | None = None
    parent_id: SessionId | None = None
    fork_sequence: int = 0
