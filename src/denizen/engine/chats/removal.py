"""Removes chats for good: what was said, what runs, the files, and what the durable log has of the turns."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import anyio

from denizen.domain.chat import Chat
from denizen.domain.conversation import own_place
from denizen.domain.errors import DenizenError
from denizen.domain.ids import TurnId
from denizen.domain.turn import Turn, TurnStatus
from denizen.engine.chats.live_chats import ChatChanged, LiveChats
from denizen.engine.chats.reading import WEB
from denizen.engine.chats.titles import title_run_id
from denizen.engine.chats.uploads import ChatUploads
from denizen.engine.configuration.handovers import find_session_handover, put_handover
from denizen.engine.hooks.runner import hook_run_id
from denizen.engine.loop.services import EngineServices
from denizen.engine.turn import TurnRunner

MAX_TURNS = 100_000
"""So many turns of a chat leave the durable log when it is deleted; older ones have left it long ago."""

PATIENCE_S = 30.0
"""How long a removal waits for turns that were stopped: no worker may be there to end them."""


class ChatRemoval:
    """Removes chats, and all that people have in them."""

    def __init__(self, services: EngineServices, turns: TurnRunner, uploads: ChatUploads, live: LiveChats) -> None:
        self._services = services
        self._turns = turns
        self._uploads = uploads
        self._live = live

    async def forget_owner(self, owner: str, turn_ids: Sequence[TurnId] = ()) -> None:
        """Removes all chats and uploads of an owner whose account ends, stops what runs in them, and takes these turns,
        also those outside of chats, out of the durable log.
        """
        await self._stop_turns(turn_ids)
        while True:
            async with self._services.store.work(write=False) as work:
                chats = await work.chats.list_chats(owner)
            if not chats:
                break
            for chat in chats:
                await self.remove(chat)
        await self._services.durable.forget(await self._end_runs(turn_ids))
        await self._uploads.remove_owner(owner)

    async def forget_turns(self, turn_ids: Sequence[TurnId]) -> None:
        """Stops these turns, and takes them out of the durable log."""
        if turn_ids:
            await self._stop_turns(turn_ids)
            await self._services.durable.forget(await self._end_runs(turn_ids))

    async def _stop_turns(self, turn_ids: Sequence[TurnId]) -> None:
        async with self._services.store.work(write=False) as work:
            turns = await work.turns.find_many(turn_ids)
        self._stop_open(turns)

    async def remove(self, chat: Chat) -> None:
        """Removes a chat, and stops what runs in it."""
        now, place = self._services.clock.now(), chat.conversation_id
        async with self._services.store.work() as work:
            turns = [*await work.turns.list_turns(conversation_id=place, limit=MAX_TURNS)]
            given = [each.turn_id for each in await work.delegations.list_in_conversation(place)]
            tasks = await work.turns.find_many(given)
            turns += tasks
            sessions = await work.sessions.list_all(place)
            await work.chats.remove(place, now=now)
        self._stop_open(turns)
        queues = {(session.agent, place) for session in sessions}
        for agent, at in queues | {(task.agent, task.conversation_id) for task in tasks}:
            async with self._turns.hold(agent, at):
                pass
        runs = await self._end_runs([turn.id for turn in turns])
        async with self._services.store.work() as work:  # what a turn wrote before it stopped goes, too
            await work.chats.remove(place, now=now)
            if (handed := await find_session_handover(work, place)) is not None:
                await put_handover(work, handed.own, own_place(WEB, chat.owner, chat.id), None, now=now)
        await self._uploads.remove_chat(chat.owner, chat.id)
        await self._services.durable.forget(runs)
        self._live.publish(place, ChatChanged(is_removed=True))

    def _stop_open(self, turns: Sequence[Turn]) -> None:
        """Stops those that have not ended. In a fleet, each stop is a message to all and a write."""
        for turn in turns:
            if turn.status is TurnStatus.OPEN:
                self._turns.cancel(turn.id)

    async def _end_runs(self, turn_ids: Sequence[TurnId]) -> Sequence[str]:
        """Waits until nothing of these turns runs any more, in any process, and returns their runs, which have what
        models and tools said. What no process ends in time is ended in the durable log.
        """
        durable = self._services.durable
        runs = [run for turn_id in turn_ids for run in (turn_id, title_run_id(turn_id), hook_run_id(turn_id))]
        left = set(runs) & set(await durable.pending())
        with anyio.move_on_after(PATIENCE_S) as waiting:
            for run in left:
                with suppress(DenizenError):
                    await durable.wait(run)
        if waiting.cancelled_caught:
            for run in left:
                with suppress(DenizenError):
                    await durable.cancel(run)
        return runs
