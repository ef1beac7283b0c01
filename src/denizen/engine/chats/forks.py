"""The sessions of a chat that go on from what was said before: branches, earlier ones, and other agents."""

from __future__ import annotations

import math
from dataclasses import replace

from denizen.domain.chat import Chat, ChatId, find_fork_point
from denizen.domain.conversation import Session
from denizen.domain.errors import LimitExceeded
from denizen.domain.ids import AgentName, MessageId, SessionId
from denizen.domain.message import Message, Role
from denizen.domain.rate_limit import DAY_S, HOUR_S, RateLimit
from denizen.engine.chats.live_chats import ChatChanged, LiveChats
from denizen.engine.chats.reading import choose_session, get_chat, get_own_message, no_message
from denizen.engine.intake.rate_limiter import take_rate
from denizen.engine.loop.services import EngineServices
from denizen.ports.chats import ChatChanges
from denizen.ports.store import Fork, UnitOfWork

ROOMS = (RateLimit(calls=60, window_s=HOUR_S), RateLimit(calls=300, window_s=DAY_S))
"""So many chats, sessions and copies of what was said one person may begin without a message, which would count as one
of the day.
"""
MAX_COPIES = 200
"""So many sessions one chat may have, each with a copy of what was said before: room on the disk has an end."""
BACK = 100
"""So many messages at a time are looked at for the question before one."""


class ChatForks:
    """Begins and reopens sessions of chats."""

    def __init__(self, services: EngineServices, live: LiveChats) -> None:
        self._services = services
        self._live = live

    async def branch(self, owner: str, chat_id: ChatId, before: MessageId) -> Session:
        """Begins a session with what was said before the question of a message, in which the chat goes on; the session
        of the message stays as it is. Raises NotFound, and LimitExceeded after `ROOMS` and `MAX_COPIES`.
        """
        async with self._services.store.work() as work:
            chat = await get_chat(work, owner, chat_id)
            message = await _find_question(work, chat, before)
            assert message.session_id is not None
            sessions = await work.sessions.list_all(chat.conversation_id)
            parent = find_fork_point(sessions, message.session_id, message.sequence)
            fork = Fork(parent, message.sequence)
            session = await self._fork(work, chat, chat.agent, message.session_id, fork)
        self._live.publish(chat.conversation_id, ChatChanged())
        return session

    async def activate(self, owner: str, chat_id: ChatId, session_id: SessionId) -> Chat:
        """Goes on with an earlier session of the chat. Raises NotFound."""
        async with self._services.store.work() as work:
            chat = await get_chat(work, owner, chat_id)
            session = choose_session(await work.sessions.list_all(chat.conversation_id), chat, session_id)
            assert session is not None
            if session.closed_at is not None:
                await work.sessions.reopen(session.id, now=self._services.clock.now())
            await work.chats.change(chat.conversation_id, ChatChanges(agent=session.agent))
        self._live.publish(chat.conversation_id, ChatChanged())
        return replace(chat, agent=session.agent)

    async def _fork(self, work: UnitOfWork, chat: Chat, agent: AgentName, source: SessionId, fork: Fork) -> Session:
        now = self._services.clock.now()
        if len(await work.sessions.list_all(chat.conversation_id)) >= MAX_COPIES:
            raise LimitExceeded(
                f"This chat has {MAX_COPIES} branches.",
                code="branches_full",
                why="each holds a copy of what was said before it",
                fix="Go on in one of them, or begin a new chat.",
            )
        await self.take_room(work, chat.owner)
        session = await work.sessions.renew(chat.conversation_id, agent, now=now, fork=fork)
        await work.messages.copy(source, session, before=fork.sequence)
        return session

    async def take_room(self, work: UnitOfWork, owner: str) -> None:
        """Counts something that is stored without a message. Raises LimitExceeded after `ROOMS`."""
        excess = await take_rate(work, f"rooms\x00{owner}", ROOMS, now=self._services.clock.now())
        if excess is not None:
            raise LimitExceeded(
                f"You have begun {excess.limit.calls} chats, sessions or branches of late.",
                code="rooms_limited",
                fix=f"Try again in {math.ceil(excess.wait_s / 60)} min, or go on in one that you have.",
            )

    async def hand_over(self, work: UnitOfWork, chat: Chat, agent: AgentName) -> None:
        """Lets another agent go on with copies of what was said."""
        sessions = await work.sessions.list_all(chat.conversation_id)
        session = choose_session(sessions, chat)
        last = await work.messages.list_tail(session.id, limit=1) if session is not None else ()
        if session is not None and last:
            await self._fork(work, chat, agent, session.id, Fork(session.id, last[-1].sequence + 1))
        await work.chats.change(chat.conversation_id, ChatChanges(agent=agent))


async def _find_question(work: UnitOfWork, chat: Chat, message_id: MessageId) -> Message:
    """Returns the message if somebody asked it, else the question before it in its session."""
    message = await get_own_message(work, chat.owner, message_id)
    session_id = message.session_id
    if message.conversation_id != chat.conversation_id or session_id is None:
        raise no_message()
    while message.role is not Role.USER:
        earlier = await work.messages.list_tail(session_id, limit=BACK, before=message.sequence)
        if not earlier:
            raise no_message()
        message = next((each for each in reversed(earlier) if each.role is Role.USER), earlier[0])
    return message
