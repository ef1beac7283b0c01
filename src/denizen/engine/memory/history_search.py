"""Search in earlier messages of a conversation, for agents that take part in it.

Only the conversation of the call is searched: whoever reads the reply could read those messages too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from denizen.domain.message import FilePart, ImagePart, Part, TextPart, ToolCallPart, ToolResultPart
from denizen.domain.mirror import FORGOTTEN
from denizen.domain.taint import find_message_taint
from denizen.engine.configuration.choices import find_reset_time
from denizen.ports.store import Store
from denizen.ports.toolset import CallScope
from denizen.skill import HistoryMessage

MAX_READ = 200
"""Messages at once."""


class SessionHistorySearch:
    """The stored messages of one conversation."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def __call__(self, scope: CallScope, words: str, limit: int) -> Sequence[HistoryMessage]:
        """Newest first; at most `limit` messages that contain all the words. The turn's own messages are left out."""
        async with self._store.work(write=False) as work:
            hits = await work.messages.search(words, conversation_ids=[scope.conversation_id], limit=limit + 1)
            reset = await find_reset_time(work, scope.agent, scope.conversation_id)
        found = [
            hit
            for hit in hits
            if hit.message.turn_id != scope.turn_id and (reset is None or hit.message.created_at > reset)
        ][:limit]
        for hit in found:
            scope.trail.taint |= find_message_taint(hit.message)
        return [HistoryMessage(hit.message.author.name, hit.message.created_at, hit.excerpt) for hit in found]

    async def read(self, scope: CallScope, first: int, last: int) -> Sequence[HistoryMessage]:
        """The messages of the session from sequence `first` to `last`, word for word, oldest first; at most MAX_READ.
        The turn's own are left out, and so are those of other conversations, where several share the session.
        """
        last = min(last, first + MAX_READ - 1)
        async with self._store.work(write=False) as work:
            session = await work.sessions.get(scope.session_id)
            if first > last or session.agent != scope.agent:
                return []
            tail = await work.messages.list_tail(session.id, limit=last - first + 1, before=last + 1)
            reset = await find_reset_time(work, scope.agent, scope.conversation_id)
        read = [
            message
            for message in tail
            if message.sequence >= first
            and message.turn_id != scope.turn_id
            and message.conversation_id == scope.conversation_id
            and message.parts not in ((), FORGOTTEN)
            and (reset is None or message.created_at > reset)
        ]
        for message in read:
            scope.trail.taint |= find_message_taint(message)
        return [HistoryMessage(m.author.name, m.created_at, "\n".join(map(_words, m.parts)), m.sequence) for m in read]


def _words(part: Part) -> str:
    match part:
        case TextPart():
            return part.text
        case FilePart():
            return f"[file {part.name}]\n{part.text}"
        case ImagePart():
            return "[image]"
        case ToolCallPart():
            return f"[called {part.tool} with {json.dumps(part.args, ensure_ascii=False)}]"
        case ToolResultPart():
            return f"[{part.tool} gave: {part.text}]"
        case _:
            return ""
