"""The queue of a session in a fleet, where any process may run turns: it is known by the open turns in the store."""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from denizen.domain.errors import LimitExceeded
from denizen.domain.ids import AgentName, ConversationId
from denizen.domain.turn import Turn, TurnStatus
from denizen.engine.intake.opening import queue_key, turn_queue_key
from denizen.engine.intake.turn_queue import MAX_WAITING
from denizen.ports.store import Store

LOOK_EVERY_S = 0.2


class TurnsElsewhere:
    """One for a process of a fleet."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def check_not_full(self, agent: AgentName, conversation_id: ConversationId) -> None:
        """Raises LimitExceeded when as many turns wait as may."""
        if len(await self._list_open(agent, conversation_id)) > MAX_WAITING:
            raise LimitExceeded(
                f"I am still busy: {MAX_WAITING} messages wait here already. Please ask again in a few minutes.",
                code="queue_full",
                why=f"at most {MAX_WAITING} messages wait in one conversation",
            )

    async def wait_until_idle(self, agent: AgentName, conversation_id: ConversationId) -> None:
        """Waits until none of the session's turns is open."""
        while True:
            if not await self._list_open(agent, conversation_id):
                return
            await anyio.sleep(LOOK_EVERY_S)

    async def _list_open(self, agent: AgentName, conversation_id: ConversationId) -> Sequence[Turn]:
        queue = queue_key(agent, conversation_id)
        async with self._store.work(write=False) as work:
            turns = await work.turns.list_turns(
                status=TurnStatus.OPEN, conversation_id=conversation_id, limit=2 * MAX_WAITING
            )
        return [turn for turn in turns if turn_queue_key(turn) == queue]
