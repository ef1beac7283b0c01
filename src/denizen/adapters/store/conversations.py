"""Conversations, and the sessions of agents in them.

An agent has at most one open session in a conversation; a unique index enforces that, not this code.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, UtcTime, metadata, position_column
from denizen.adapters.store.dialect import InsertInto, SqlDialect
from denizen.adapters.store.transaction import Transaction
from denizen.domain.conversation import Conversation, Place, Session
from denizen.domain.errors import NotFound
from denizen.domain.ids import AgentName, ConversationId, SessionId, fresh
from denizen.ports.store import RecentSession

conversations = sa.Table(
    "conversations",
    metadata,
    position_column(),
    sa.Column("id", sa.Text(), nullable=False, unique=True),
    sa.Column("platform", EscapedText(), nullable=False),
    sa.Column("channel", EscapedText(), nullable=False),
    sa.Column("thread", EscapedText(), nullable=False),
    sa.Column("title", EscapedText(), nullable=False),
    sa.Column("created_at", UtcTime(), nullable=False),
    sa.UniqueConstraint("platform", "channel", "thread"),
)

sessions = sa.Table(
    "sessions",
    metadata,
    position_column(),
    sa.Column("id", sa.Text(), nullable=False, unique=True),
    sa.Column("conversation_id", sa.Text(), sa.ForeignKey(conversations.c.id), nullable=False),
    sa.Column("agent", EscapedText(), nullable=False),
    sa.Column("created_at", UtcTime(), nullable=False),
    sa.Column("closed_at", UtcTime()),
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


@cache
def _add_conversation(insert: InsertInto) -> sa.Executable:
    # Two processes that add it at once may collide on either unique key.
    return insert(conversations).on_conflict_do_nothing().returning(conversations.c.position)


class SqlConversations:
    """Implements `denizen.ports.store.ConversationRepository`."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    async def put(self, place: Place, *, title: str = "", now: datetime) -> Conversation:
        key = place.conversation_id
        add = _add_conversation(self._transaction.dialect.insert)

        def job(connection: sa.Connection) -> Conversation:
            found = _find_conversation(connection, key)
            if found is None:
                new = Conversation(key, place, title, now)
                found = (
                    new
                    if connection.execute(add, _conversation_row(new)).scalar() is not None
                    else _get_conversation(connection, key)
                )
            if title and title != found.title:
                connection.execute(_RENAME_CONVERSATION, {"which": key, "new_title": title})
                return Conversation(found.id, found.place, title, found.created_at)
            return found

        return await self._transaction.write(job)

    async def get(self, conversation_id: ConversationId) -> Conversation:
        return await self._transaction.read(lambda connection: _get_conversation(connection, conversation_id))

    async def list_recent(self, *, platform: str = "", limit: int = 50) -> Sequence[Conversation]:
        def job(connection: sa.Connection) -> list[Conversation]:
            rows = connection.execute(_RECENT_CONVERSATIONS, {"platform": platform, "limit": max(limit, 0)})
            return [_conversation(row) for row in rows]

        return await self._transaction.read(job)


def _find_conversation(connection: sa.Connection, conversation_id: ConversationId) -> Conversation | None:
    row = connection.execute(_CONVERSATION_BY_ID, {"id": conversation_id}).first()
    return None if row is None else _conversation(row)


def _get_conversation(connection: sa.Connection, conversation_id: ConversationId) -> Conversation:
    found = _find_conversation(connection, conversation_id)
    if found is None:
        raise NotFound(f"There is no conversation {conversation_id}.", code="conversation_not_found")
    return found


def _conversation_row(conversation: Conversation) -> dict[str, object]:
    place = conversation.place
    return {
        "id": conversation.id,
        "platform": place.platform,
        "channel": place.channel,
        "thread": place.thread,
        "title": conversation.title,
        "created_at": conversation.created_at,
    }


def _conversation(row: sa.Row[tuple[object, ...]]) -> Conversation:
    return Conversation(row.id, Place(row.platform, row.channel, row.thread), row.title, row.created_at)


_SESSION_KEY = (sessions.c.conversation_id == sa.bindparam("conversation"), sessions.c.agent == sa.bindparam("whose"))

_SESSION_BY_ID = sa.select(sessions).where(sessions.c.id == sa.bindparam("id"))
_OPEN_SESSION = sa.select(sessions).where(*_SESSION_KEY, OPEN_SESSION)
_ALL_SESSIONS = (
    sa.select(sessions).where(*_SESSION_KEY).order_by(sessions.c.created_at.desc(), sessions.c.position.desc())
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
def _recent_sessions(*, of_platform: bool, of_agent: bool) -> sa.Select[Any]:
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
    if of_agent:
        found = found.where(sessions.c.agent == sa.bindparam("whose"))
    # Messages are counted only in the sessions that are returned.
    few = found.subquery("few")
    count = sa.select(sa.func.count()).where(_messages.c.session_id == few.c.id).scalar_subquery()
    return sa.select(few, count.label("messages")).order_by(few.c.last_at.desc(), few.c.position.desc())


@cache
def _add_session(insert: InsertInto) -> sa.Executable:
    # The existing row stays, whichever unique key it collides with.
    return insert(sessions).on_conflict_do_nothing().returning(sessions.c.position)


class SqlSessions:
    """Implements `denizen.ports.store.SessionRepository`."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    async def current(self, conversation_id: ConversationId, agent: AgentName, *, now: datetime) -> Session:
        dialect = self._transaction.dialect

        def job(connection: sa.Connection) -> Session:
            row = connection.execute(_OPEN_SESSION, {"conversation": conversation_id, "whose": agent}).first()
            return _open_session(connection, dialect, conversation_id, agent, now) if row is None else _session(row)

        return await self._transaction.write(job)

    async def renew(self, conversation_id: ConversationId, agent: AgentName, *, now: datetime) -> Session:
        dialect = self._transaction.dialect

        def job(connection: sa.Connection) -> Session:
            if dialect.locks_rows:  # of two renewals at once, the second closes the session of the first
                connection.execute(_LOCK_CONVERSATION, {"conversation": conversation_id})
            connection.execute(_CLOSE_SESSION, {"conversation": conversation_id, "whose": agent, "now": now})
            return _open_session(connection, dialect, conversation_id, agent, now)

        return await self._transaction.write(job)

    async def get(self, session_id: SessionId) -> Session:
        def job(connection: sa.Connection) -> Session:
            row = connection.execute(_SESSION_BY_ID, {"id": session_id}).first()
            if row is None:
                raise NotFound(f"There is no session {session_id}.", code="session_not_found")
            return _session(row)

        return await self._transaction.read(job)

    async def list_sessions(self, conversation_id: ConversationId, agent: AgentName) -> Sequence[Session]:
        def job(connection: sa.Connection) -> list[Session]:
            rows = connection.execute(_ALL_SESSIONS, {"conversation": conversation_id, "whose": agent})
            return [_session(row) for row in rows]

        return await self._transaction.read(job)

    async def list_recent(self, *, platform: str = "", agent: str = "", limit: int = 50) -> Sequence[RecentSession]:
        statement = _recent_sessions(of_platform=bool(platform), of_agent=bool(agent))
        bounds = {"where": platform, "whose": agent, "most": max(limit, 0)}

        def job(connection: sa.Connection) -> list[RecentSession]:
            rows = connection.execute(statement, bounds)
            return [
                RecentSession(_session(row), Place(row.platform, row.channel, row.thread), row.messages, row.last_at)
                for row in rows
            ]

        return await self._transaction.read(job)


def _open_session(
    connection: sa.Connection, dialect: SqlDialect, conversation_id: ConversationId, agent: AgentName, now: datetime
) -> Session:
    """Returns the new session, or the one that another process has opened meanwhile."""
    session = Session(SessionId(fresh("sess")), conversation_id, agent, now)
    row = {"id": session.id, "conversation_id": conversation_id, "agent": agent, "created_at": now, "closed_at": None}
    if connection.execute(_add_session(dialect.insert), row).scalar() is not None:
        return session
    return _session(connection.execute(_OPEN_SESSION, {"conversation": conversation_id, "whose": agent}).one())


def _session(row: sa.Row[Any]) -> Session:
    return Session(row.id, row.conversation_id, row.agent, row.created_at, row.closed_at)
