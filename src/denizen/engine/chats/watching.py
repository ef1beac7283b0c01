"""Follows what happens in a chat, for somebody who has it open: its turns, one after another, and all other changes."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream

from denizen.domain.chat import Chat, ChatId
from denizen.domain.events import TurnEvent
from denizen.domain.ids import TurnId
from denizen.domain.turn import Turn, TurnStatus
from denizen.engine.chats.live_chats import ChatChanged, ChatEvent, LiveChats, MessageTaken, TitleChanged
from denizen.engine.chats.reading import get_chat
from denizen.engine.loop.services import EngineServices
from denizen.engine.turn import TurnRunner

LOOK_EVERY_S = 5.0
"""How often a watcher that hears nothing looks at the store: another process may have taken a message."""
RECENT = 100
"""So many turns of a chat, the newest, are looked at for those that run."""


class ChatWatcher:
    """Watches chats. `live` tells what happens in this process, the store what others have done."""

    def __init__(self, services: EngineServices, turns: TurnRunner, live: LiveChats) -> None:
        self._services = services
        self._turns = turns
        self._live = live

    async def watch(self, owner: str, chat_id: ChatId) -> AsyncGenerator[tuple[TurnId, TurnEvent] | ChatEvent]:
        """Yields what happens in a chat, turn by turn: of one that runs already, what has happened so far. The first
        event is `ChatChanged`: what is read after it misses nothing. It does not end by itself, unless the chat is
        removed. Raises NotFound.
        """
        chat = await self._get(owner, chat_id)
        with self._live.watch(chat.conversation_id) as news:
            waiting = deque(turn.id for turn in await self._list_open(chat))
            seen = set(waiting)
            yield ChatChanged()
            while True:
                while waiting:
                    key = waiting.popleft()
                    yield MessageTaken(key)
                    async with aclosing(self._turns.watch(key)) as events:
                        async for event in events:
                            yield key, event
                            for other in _take_ready(news, seen, waiting):
                                yield other
                    chat = await self._find(owner, chat_id) or chat  # what its own turn changed is no news
                with anyio.move_on_after(LOOK_EVERY_S):
                    told = await news.receive()
                    if isinstance(told, MessageTaken):
                        _add_turn(told.turn_id, seen, waiting)
                    elif told != TitleChanged(""):
                        yield told
                        if told == ChatChanged(is_removed=True):
                            return
                    continue
                found = await self._find(owner, chat_id)
                if found is None:
                    yield ChatChanged(is_removed=True)
                    return
                for turn in await self._list_open(found):
                    _add_turn(turn.id, seen, waiting)
                if found != chat and not waiting:
                    yield ChatChanged()
                chat = found

    async def _list_open(self, chat: Chat) -> Sequence[Turn]:
        async with self._services.store.work(write=False) as work:
            turns = await work.turns.list_turns(conversation_id=chat.conversation_id, limit=RECENT)
        return [turn for turn in reversed(turns) if turn.status is TurnStatus.OPEN]

    async def _get(self, owner: str, chat_id: ChatId) -> Chat:
        async with self._services.store.work(write=False) as work:
            return await get_chat(work, owner, chat_id)

    async def _find(self, owner: str, chat_id: ChatId) -> Chat | None:
        async with self._services.store.work(write=False) as work:
            return await work.chats.find(owner, chat_id)


def _add_turn(turn_id: TurnId, seen: set[TurnId], waiting: deque[TurnId]) -> None:
    if turn_id not in seen:
        seen.add(turn_id)
        waiting.append(turn_id)


def _take_ready(
    news: MemoryObjectReceiveStream[ChatEvent], seen: set[TurnId], waiting: deque[TurnId]
) -> Iterator[ChatEvent]:
    """Yields the events that have come already; turns wait until the one before them has ended."""
    while True:
        try:
            event = news.receive_nowait()
        except anyio.WouldBlock:
            return
        if isinstance(event, MessageTaken):
            _add_turn(event.turn_id, seen, waiting)
        elif event != TitleChanged(""):
            yield event
