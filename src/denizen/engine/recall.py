"""What was said before, for agents that search it: full text, within the conversation that they are in.

Only the conversation of the call is searched: whoever reads the reply could read those messages too (promise 3).
"""

from __future__ import annotations

from collections.abc import Sequence

from denizen.engine.choices import reset_at
from denizen.ports.store import Store
from denizen.ports.toolset import CallScope
from denizen.skill import Found


class Recall:
    """Searches the stored messages of one conversation."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def __call__(self, scope: CallScope, words: str, limit: int) -> Sequence[Found]:
        """Newest first; at most `limit` messages that contain all the words. The turn's own messages are left out."""
        async with self._store.work(write=False) as work:
            hits = await work.messages.search(words, conversation_ids=[scope.conversation_id], limit=limit + 1)
            reset = await reset_at(work, scope.agent, scope.conversation_id)
        return [
            Found(hit.message.author.name, hit.message.created_at, hit.excerpt)
            for hit in hits
            if hit.message.turn_id != scope.turn_id and (reset is None or hit.message.created_at > reset)
        ][:limit]
