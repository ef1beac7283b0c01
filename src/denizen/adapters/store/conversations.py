"""Conversations, and the sessions of agents in them.

An agent has at most one open session in a conversation; a unique index enforces that, not this code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache, partial
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, UtcTime, id_columns, metadata, texts, times
from denizen.adapters.store.dialect import SqlDialect
from denizen.adapters.store.repository import Row, SqlRepository, insert_row, read_record, write_record
from denizen.domain.conversation import Conversation, Place, Session
from denizen.domain.delegation import PLATFORM as DELEGATED
from denizen.domain.errors import NotFound
from denizen.domain.ids import AgentName, ConversationId, SessionId, fresh
from denizen.ports.store import Fork, RecentSession

conversations = sa.Table(
    "conversations",
    metadata,
    *id_columns(),
    *texts("platform", "channel", "thread", "title"),
    *times("created_at"),
    sa.UniqueConstraint("platform", "channel", "thread"),
)

sessions = sa.Table(
    "sessions",
    metadata,
    *id_columns(),
    sa.Column("conversation_id", sa.Text(), sa.ForeignKey(conversations.c.id), nullable=False),
    *texts("agent"),
    *times("created_at"),
    sa.Column("closed_at", UtcTime()),
    sa.Column("parent_id", sa.Text()),
    sa.Column("fork_sequence", sa.BigInteger(), nullable=False),
    sa.Index("ix_sessions_conversation_id_agent", "conversation_id", "agent"),
)
OPEN_SESSION = sessions.c.closed_at.is_(None)

sa.Index(
    "uq_sessions_open",
    sessions.c.conversation_id,
    sessions.c.agent,
    unique=True,
    sqlite_where=OPEN_SESSION,
    postgresql_where=OPEN_SESSION,
)

# Declared by name with the columns needed here: importing `messages` would be circular, since it imports this module.
_messages = sa.table(
    "messages",
    sa.column("conversation_id", sa.Text()),
    sa.column("session_id", sa.Text()),
    sa.column("sequence", sa.BigInteger()),
    sa.column("created_at", UtcTime()),
)

_LATEST_MESSAGE = (
    sa.select(sa.func.max(_messages.c.created_at))
    .where(_messages.c.conversation_id == conversations.c.id)
    .scalar_subquery()
)

_CONVERSATION_BY_ID = sa.select(conversations).where(conversations.c.id == sa.bindparam("id"))
_PLATFORM = sa.bindparam("platform", type_=EscapedText())
_RECENT_CONVERSATIONS = (
    sa.select(conversations)
    .where(sa.or_(_PLATFORM == "", conversations.c.platform == _PLATFORM))
    .order_by(sa.func.coalesce(_LATEST_MESSAGE, conversations.c.created_at).desc(), conversations.c.position.desc())
    .limit(sa.bindparam("limit"))
)
_RENAME_CONVERSATION = (
    sa.update(conversations).where(conversations.c.id == sa.bindparam("which")).values(title=sa.bindparam("new_title"))
)


_read_conversation = partial(read_record, Conversation)
_read_session = partial(read_record, Session)


class SqlConversations(SqlRepository):
    """Implements `denizen.ports.store.ConversationRepository`."""

    async def put(self, place: Place, *, title: str = "", now: datetime) -> Conversation:
        key = place.conversation_id
        new = Conversation(key, place, title, now)
        add = insert_row(self._dialect.insert, conversations)

        def job(connection: sa.Connection) -> Conversation:
            row = connection.execute(_CONVERSATION_BY_ID, {"id": key}).first()
            if row is None and connection.execute(add, write_record(new)).first() is not None:
                return new
            # Another process may have added it in between.
            found = _read_conversation(row or connection.execute(_CONVERSATION_BY_ID, {"id": key}).one())
            if title and title != found.title:
                connection.execute(_RENAME_CONVERSATION, {"which": key, "new_title": title})
                return Conversation(found.id, found.place, title, found.created_at)
            return found

        return await self._transaction.write(job)

    async def get(self, conversation_id: ConversationId) -> Conversation:
        found = await self._find(_read_conversation, _CONVERSATION_BY_ID, {"id": conversation_id})
        if found is None:
            raise NotFound(f"There is no conversation {conversation_id}.", code="conversation_not_found")
        return found

    async def list_recent(self, *, platform: str = "", limit: int = 50) -> Sequence[Conversation]:
        bounds = {"platform": platform, "limit": max(limit, 0)}
        return await self._list(_read_conversation, _RECENT_CONVERSATIONS, bounds)


_SESSION_KEY = (sessions.c.conversation_id == sa.bindparam("conversation"), sessions.c.agent == sa.bindparam("whose"))

_SESSION_BY_ID = sa.select(sessions).where(sessions.c.id == sa.bindparam("id"))
_OPEN_SESSION = sa.select(sessions).where(*_SESSION_KEY, OPEN_SESSION)
_ALL_SESSIONS = (
    sa.select(sessions).where(*_SESSION_KEY).order_by(sessions.c.created_at.desc(), sessions.c.position.desc())
)
_REOPEN_SESSION = (
    sa.update(sessions).where(sessions.c.id == sa.bindparam("which")).values(closed_at=None).returning(*sessions.c)
)
_OF_CONVERSATION = (
    sa.select(sessions)
    .where(sessions.c.conversation_id == sa.bindparam("conversation"))
    .order_by(sessions.c.created_at, sessions.c.position)
)
_CLOSE_SESSION = sa.update(sessions).where(*_SESSION_KEY, OPEN_SESSION).values(closed_at=sa.bindparam("now"))
_LOCK_CONVERSATION = (
    sa.select(conversations.c.id)
    .where(conversations.c.id == sa.bindparam("conversation"))
    .with_for_update(key_share=True)
)

_LAST_MESSAGE = (
    sa.select(_messages.c.created_at)
    .where(_messages.c.session_id == sessions.c.id)
    .order_by(_messages.c.sequence.desc())
    .limit(1)
    .scalar_subquery()
)


@cache
def _recent_sessions(*, of_platform: bool, of_channel: bool, of_agent: bool, but_some: bool) -> sa.Select[Any]:
    found = (
        sa.select(sessions, conversations.c.platform, conversations.c.channel, conversations.c.thread)
        .add_columns(_LAST_MESSAGE.label("last_at"))
        .join(conversations, conversations.c.id == sessions.c.conversation_id)
        .where(OPEN_SESSION)
        .order_by(_LAST_MESSAGE.desc(), sessions.c.position.desc())
        .limit(sa.bindparam("most"))
        .where(_LAST_MESSAGE.is_not(None))
    )
    if of_platform:
        found = found.where(conversations.c.platform == sa.bindparam("where"))
    else:
        found = found.where(conversations.c.platform != DELEGATED)
    if of_channel:
        found = found.where(conversations.c.channel == sa.bindparam("which"))
    if of_agent:
        found = found.where(sessions.c.agent == sa.bindparam("whose"))
    if but_some:
        prefix = sa.bindparam("but", type_=sa.String)
        found = found.where(sa.func.substr(conversations.c.thread, 1, sa.func.length(prefix)) != prefix)
    # Messages are counted only in the sessions that are returned.
    few = found.subquery("few")
    count = sa.select(sa.func.count()).where(_messages.c.session_id == few.c.id).scalar_subquery()
    return sa.select(few, count.label("messages")).order_by(few.c.last_at.desc(), few.c.position.desc())


class SqlSessions(SqlRepository):
    """Implements `denizen.ports.store.SessionRepository`."""

    async def current(self, conversation_id: ConversationId, agent: AgentName, *, now: datetime) -> Session:
        def job(connection: sa.Connection) -> Session:
            row = connection.execute(_OPEN_SESSION, {"conversation": conversation_id, "whose": agent}).first()
            return (
                _open_session(connection, self._dialect, conversation_id, agent, now)
                if row is None
                else _read_session(row)
            )

        return await self._transaction.write(job)

    async def renew(
        self, conversation_id: ConversationId, agent: AgentName, *, now: datetime, fork: Fork | None = None
    ) -> Session:
        def job(connection: sa.Connection) -> Session:
            if self._dialect.locks_rows:  # of two renewals at once, the second closes the session of the first
                connection.execute(_LOCK_CONVERSATION, {"conversation": conversation_id})
            connection.execute(_CLOSE_SESSION, {"conversation": conversation_id, "whose": agent, "now": now})
            return _open_session(connection, self._dialect, conversation_id, agent, now, fork)

        return await self._transaction.write(job)

    async def reopen(self, session_id: SessionId, *, now: datetime) -> Session:
        def job(connection: sa.Connection) -> Session:
            row = connection.execute(_SESSION_BY_ID, {"id": session_id}).first()
            if row is None:
                raise _missing_session(session_id)
            if self._dialect.locks_rows:
                connection.execute(_LOCK_CONVERSATION, {"conversation": row.conversation_id})
            key = {"conversation": row.conversation_id, "whose": row.agent}
            connection.execute(_CLOSE_SESSION, {**key, "now": now})
            return _read_session(connection.execute(_REOPEN_SESSION, {"which": session_id}).one())

        return await self._transaction.write(job)

    async def get(self, session_id: SessionId) -> Session:
        found = await self._find(_read_session, _SESSION_BY_ID, {"id": session_id})
        if found is None:
            raise _missing_session(session_id)
        return found

    async def list_all(self, conversation_id: ConversationId) -> Sequence[Session]:
        return await self._list(_read_session, _OF_CONVERSATION, {"conversation": conversation_id})

    async def list_sessions(self, conversation_id: ConversationId, agent: AgentName) -> Sequence[Session]:
        return await self._list(_read_session, _ALL_SESSIONS, {"conversation": conversation_id, "whose": agent})

    async def list_recent(
        self, *, platform: str = "", channel: str = "", agent: str = "", except_prefix: str = "", limit: int = 50
    ) -> Sequence[RecentSession]:
        statement = _recent_sessions(
            of_platform=bool(platform), of_channel=bool(channel), of_agent=bool(agent), but_some=bool(except_prefix)
        )
        bounds = {"where": platform, "which": channel, "whose": agent, "but": except_prefix, "most": max(limit, 0)}
        return await self._list(_read_recent, statement, bounds)


def _read_recent(row: Row) -> RecentSession:
    return RecentSession(_read_session(row), read_record(Place, row), row.messages, row.last_at)


def _missing_session(session_id: SessionId) -> NotFound:
    return NotFound(f"There is no session {session_id}.", code="session_not_found")


def _open_session(
    connection: sa.Connection,
    dialect: SqlDialect,
    conversation_id: ConversationId,
    agent: AgentName,
    now: datetime,
    fork: Fork | None = None,
) -> Session:
    """Returns the new session, or the one that another process has opened meanwhile."""
    session = Session(SessionId(fresh("sess")), conversation_id, agent, now)
    if fork is not None:
        session = replace(session, parent_id=fork.parent_id, fork_sequence=fork.sequence)
    if connection.execute(insert_row(dialect.insert, sessions), write_record(session)).first() is not None:
        return session
    return _read_session(connection.execute(_OPEN_SESSION, {"conversation": conversation_id, "whose": agent}).one())
