"""The port of the chats of the web, and of what their owners think of answers. Part of a unit of work."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from denizen.domain.chat import Chat, ChatId, MessageVote, VoteCount
from denizen.domain.ids import AgentName, ConversationId, MessageId
from denizen.domain.record import record


@record(kw_only=True)
class ChatChanges:
    """The changes of a chat; None is left as it is. An empty `share_token` ends the sharing."""

    title: str | None = None
    agent: AgentName | None = None
    share_token: str | None = None
    is_pinned: bool | None = None
    updated_at: datetime | None = None


class ChatRepository(Protocol):
    """The chats, by their owner and the id among the owner's."""

    async def put(self, chat: Chat) -> tuple[Chat, bool]:
        """Adds the chat. When its owner has one of that id, returns the stored chat and False."""
        ...

    async def find(self, owner: str, chat_id: ChatId) -> Chat | None: ...

    async def find_shared(self, token: str) -> Chat | None:
        """Returns the chat with that token, which is not empty."""
        ...

    async def list_chats(self, owner: str, *, before: datetime | None = None, limit: int = 50) -> Sequence[Chat]:
        """Returns pinned chats, then the others, each newest first; with `before` those that are not pinned and whose
        last message is older.
        """
        ...

    async def change(self, conversation_id: ConversationId, changes: ChatChanges) -> bool:
        """Changes the chat. False when there is none."""
        ...

    async def set_title(self, conversation_id: ConversationId, title: str, *, instead_of: str) -> bool:
        """Gives the chat a title. False, and nothing changes, when it has another than `instead_of` by now."""
        ...

    async def remove(self, conversation_id: ConversationId, *, now: datetime) -> None:
        """Removes the chat for good: its messages, votes, summaries and approvals, and what its turns said, did and
        cited, and asked in vain. Of its sessions and turns an empty row stays, for the sums of usage.
        """
        ...

    async def put_vote(self, vote: MessageVote) -> None:
        """Adds the vote, or replaces the one on its message."""
        ...

    async def remove_vote(self, message_id: MessageId) -> None: ...

    async def list_votes(self, message_ids: Collection[MessageId]) -> Mapping[MessageId, MessageVote]:
        """Returns the votes on these messages."""
        ...

    async def count_votes(self, *, since: datetime, until: datetime) -> Mapping[str, VoteCount]:
        """Counts the votes on answers of that time, without those at its end, by the UTC day of the answer, which is
        named like `2026-11-21`.
        """
        ...
