"""Conversations, sessions and messages of the memory store."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from denizen.domain.conversation import Conversation, Place, Session
from denizen.domain.ids import AgentName, ConversationId, MessageId, SessionId, TurnId, fresh
from denizen.domain.message import Message, Role, parts_from_json, parts_to_json
from denizen.domain.mirror import FORGOTTEN
from denizen.domain.words import excerpt_of, words_of
from denizen.ports.store import MessageHit, RecentSession
from denizen.testing.memory_summaries import drop_summaries
from denizen.testing.memory_unit import Unit, get_row, in_utc, newest_first, refer, through_json


class MemoryConversations:
    """`denizen.ports.store.ConversationRepository`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def put(self, place: Place, *, title: str = "", now: datetime) -> Conversation:
        self._unit.check_writes()
        rows, key = self._unit.tables.conversations, place.conversation_id
        found = rows.get(key) or Conversation(key, place, title, in_utc(now))
        if key not in rows or title not in {"", found.title}:
            found = replace(found, title=title or found.title)
            self._unit.put(rows, key, found)
        return found

    async def get(self, conversation_id: ConversationId) -> Conversation:
        return get_row(self._unit.tables.conversations, conversation_id, "conversation")

    async def list_recent(self, *, platform: str = "", limit: int = 50) -> Sequence[Conversation]:
        tables = self._unit.tables
        latest: dict[str, datetime] = {}
        for message in tables.messages.values():
            known = latest.get(message.conversation_id, message.created_at)
            latest[message.conversation_id] = max(known, message.created_at)
        rows = [row for row in tables.conversations.values() if platform in {"", row.place.platform}]
        return newest_first(rows, lambda row: latest.get(row.id, row.created_at), limit)


class MemorySessions:
    """`denizen.ports.store.Sessions`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def current(self, conversation_id: ConversationId, agent: AgentName, *, now: datetime) -> Session:
        self._unit.check_writes()
        return self._find_open(conversation_id, agent) or self._open(conversation_id, agent, now)

    async def renew(self, conversation_id: ConversationId, agent: AgentName, *, now: datetime) -> Session:
        self._unit.check_writes()
        found = self._find_open(conversation_id, agent)
        if found is not None:
            self._unit.put(self._unit.tables.sessions, found.id, replace(found, closed_at=in_utc(now)))
        return self._open(conversation_id, agent, now)

    async def get(self, session_id: SessionId) -> Session:
        return get_row(self._unit.tables.sessions, session_id, "session")

    async def list_sessions(self, conversation_id: ConversationId, agent: AgentName) -> Sequence[Session]:
        return newest_first(self._all(conversation_id, agent), lambda session: session.created_at)

    async def list_recent(self, *, platform: str = "", agent: str = "", limit: int = 50) -> Sequence[RecentSession]:
        tables, found = self._unit.tables, list[RecentSession]()
        for session in tables.sessions.values():
            place, tail = tables.conversations[session.conversation_id].place, tables.tails.get(session.id)
            wanted = platform in {"", place.platform} and agent in {"", session.agent}
            if session.closed_at is None and tail and wanted:
                found.append(RecentSession(session, place, len(tail), tail[-1].created_at))
        return newest_first(found, lambda row: row.last_at, limit)

    def _all(self, conversation_id: ConversationId, agent: AgentName) -> list[Session]:
        rows = self._unit.tables.sessions.values()
        return [row for row in rows if row.conversation_id == conversation_id and row.agent == agent]

    def _find_open(self, conversation_id: ConversationId, agent: AgentName) -> Session | None:
        return next((row for row in self._all(conversation_id, agent) if row.closed_at is None), None)

    def _open(self, conversation_id: ConversationId, agent: AgentName, now: datetime) -> Session:
        refer(self._unit.tables.conversations, conversation_id)
        session = Session(SessionId(fresh("sess")), conversation_id, agent, in_utc(now))
        self._unit.put(self._unit.tables.sessions, session.id, session)
        return session


class MemoryMessages:
    """`denizen.ports.store.Messages`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def add(self, message: Message) -> Message:
        self._unit.check_writes()
        tables = self._unit.tables
        if message.id in tables.messages:
            return tables.messages[message.id]
        refer(tables.conversations, message.conversation_id)
        stored = replace(
            message,
            parts=parts_from_json(through_json(parts_to_json(message.parts))),
            meta=through_json(dict(message.meta)),
            created_at=in_utc(message.created_at),
            sequence=0,
        )
        if message.session_id is not None:
            refer(tables.sessions, message.session_id)
            tail = tables.tails.setdefault(message.session_id, [])
            stored = replace(stored, sequence=tail[-1].sequence + 1 if tail else 1)
            self._unit.append(tail, stored)
        self._unit.put(tables.messages, message.id, stored)
        return stored

    async def get(self, message_id: MessageId) -> Message:
        return get_row(self._unit.tables.messages, message_id, "message")

    async def list_tail(self, session_id: SessionId, *, limit: int, before: int | None = None) -> Sequence[Message]:
        tail = self._unit.tables.tails.get(session_id, [])
        end = len(tail) if before is None else bisect_left(tail, before, key=lambda message: message.sequence)
        return tail[max(end - max(limit, 0), 0) : end]

    async def forget_turn(self, turn_id: TurnId) -> None:
        self._unit.check_writes()
        tables = self._unit.tables
        drop_summaries(self._unit, lambda row: row.turn_id == turn_id)
        gone = [row for row in tables.messages.values() if row.turn_id == turn_id and row.session_id is not None]
        for session_id in {row.session_id for row in gone if row.session_id is not None}:
            kept = [row for row in tables.tails[session_id] if row.turn_id != turn_id]
            self._unit.put(tables.tails, session_id, kept)
        for row in gone:
            self._unit.put(tables.messages, row.id, replace(row, session_id=None, sequence=0))
            self._unit.put(tables.hidden, row.id, value=True)

    async def keep_newest(self, session_id: SessionId, *, limit: int) -> None:
        self._unit.check_writes()
        tables, tail = self._unit.tables, self._unit.tables.tails.get(session_id, [])
        for row in tail[: -max(limit, 1)]:
            self._unit.put(tables.messages, row.id, replace(row, session_id=None, sequence=0, parts=(), meta={}))
            self._unit.put(tables.hidden, row.id, value=True)
        self._unit.put(tables.tails, session_id, tail[-max(limit, 1) :])

    async def search(
        self, words: str, *, conversation_ids: Sequence[ConversationId], limit: int = 10
    ) -> Sequence[MessageHit]:
        wanted, chosen = words_of(words), set(conversation_ids)
        found = [
            message
            for message in (self._unit.tables.messages.values() if wanted else ())
            if message.conversation_id in chosen
            and message.id not in self._unit.tables.hidden
            and message.role in {Role.USER, Role.ASSISTANT}
            and set(wanted) <= set(words_of(message.text))
        ]
        newest = newest_first(found, lambda message: message.created_at, limit)
        return [MessageHit(message, excerpt_of(message.text, wanted)) for message in newest]


def forget_messages(unit: Unit, platform: str, which: Callable[[Message], bool]) -> None:
    """Takes the text out of these messages of the platform's conversations."""
    tables = unit.tables

    def is_meant(message: Message) -> bool:
        return tables.conversations[message.conversation_id].place.platform == platform and which(message)

    drop_summaries(unit, is_meant)
    for message in list(tables.messages.values()):
        if not is_meant(message):
            continue
        blank = replace(message, parts=FORGOTTEN, meta={})
        unit.put(tables.messages, message.id, blank)
        unit.put(tables.hidden, message.id, value=True)
        if message.session_id is not None:
            tail = tables.tails[message.session_id]
            unit.put(tables.tails, message.session_id, [blank if row.id == message.id else row for row in tail])
