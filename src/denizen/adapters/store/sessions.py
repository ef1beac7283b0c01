"""Sessions: one agent's own history in a conversation. At most one is open; an index holds that, not this code."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.dialect import Dialect, InsertInto
from denizen.adapters.store.tables.talk import OPEN_SESSION, conversations, messages, sessions
from denizen.adapters.store.unit import Unit
from denizen.domain.conversation import Place, Session
from denizen.domain.errors import NotFound
from denizen.domain.ids import AgentName, ConversationId, SessionId, fresh
from denizen.ports.store import RecentSession

_SESSION_KEY = (sessions.c.conversation_id == sa.bindparam("conversation"), sessions.c.agent == sa.bindparam("whose"))

_SESSION_BY_ID = sa.select(sessions).where(sessions.c.id == sa.bindparam("id"))
_OPEN_SESSION = sa.select(sessions).where(*_SESSION_KEY, OPEN_SESSION)
_ALL_SESSIONS = sa.select(sessions).where(*_SESSION_KEY).order_by(sessions.c.created_at.desc(), sessions.c.position.desc())
_CLOSE_SESSION = sa.update(sessions).where(*_SESSION_KEY, OPEN_SESSION).values(closed_at=sa.bindparam("now"))
_LOCK_CONVERSATION = (
    sa.select(conversations.c.id)
    .where(conversations.c.id == sa.bindparam("conversation"))
    .with_for_update(key_share=True)
)

_LAST_MESSAGE = (
    sa.select(messages.c.created_at)
    .where(messages.c.session_id == sessions.c.id)
    .order_by(messages.c.sequence.desc())
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
    # Counted only in those that are told.
    few = found.subquery("few")
    count = sa.select(sa.func.count()).where(messages.c.session_id == few.c.id).scalar_subquery()
    return sa.select(few, count.label("messages")).order_by(few.c.last_at.desc(), few.c.position.desc())


@cache
def _add_session(insert: InsertInto) -> sa.Executable:
    # Whichever of the unique keys it is, the row that is there stays.
    return insert(sessions).on_conflict_do_nothing().returning(sessions.c.position)


class SqlSessions:
    """`denizen.ports.store.Sessions`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def current(self, conversation_id: ConversationId, agent: AgentName, *, now: datetime) -> Session:
        dialect = self._unit.dialect

        def job(connection: sa.Connection) -> Session:
            row = connection.execute(_OPEN_SESSION, {"conversation": conversation_id, "whose": agent}).first()
            return _open_session(connection, dialect, conversation_id, agent, now) if row is None else _session(row)

        return await self._unit.write(job)

    async def renew(self, conversation_id: ConversationId, agent: AgentName, *, now: datetime) -> Session:
        dialect = self._unit.dialect

        def job(connection: sa.Connection) -> Session:
            if dialect.locks_rows:  # two that renew at once: the second closes what the first has opened
                connection.execute(_LOCK_CONVERSATION, {"conversation": conversation_id})
            connection.execute(_CLOSE_SESSION, {"conversation": conversation_id, "whose": agent, "now": now})
            return _open_session(connection, dialect, conversation_id, agent, now)

        return await self._unit.write(job)

    async def get(self, session_id: SessionId) -> Session:
        def job(connection: sa.Connection) -> Session:
            row = connection.execute(_SESSION_BY_ID, {"id": session_id}).first()
            if row is None:
                raise NotFound(f"There is no session {session_id}.", code="session_not_found")
            return _session(row)

        return await self._unit.read(job)

    async def list_sessions(self, conversation_id: ConversationId, agent: AgentName) -> Sequence[Session]:
        def job(connection: sa.Connection) -> list[Session]:
            rows = connection.execute(_ALL_SESSIONS, {"conversation": conversation_id, "whose": agent})
            return [_session(row) for row in rows]

        return await self._unit.read(job)

    async def list_recent(self, *, platform: str = "", agent: str = "", limit: int = 50) -> Sequence[RecentSession]:
        statement = _recent_sessions(of_platform=bool(platform), of_agent=bool(agent))
        bounds = {"where": platform, "whose": agent, "most": max(limit, 0)}

        def job(connection: sa.Connection) -> list[RecentSession]:
            rows = connection.execute(statement, bounds)
            return [
                RecentSession(_session(row), Place(row.platform, row.channel, row.thread), row.messages, row.last_at)
                for row in rows
            ]

        return await self._unit.read(job)


def _open_session(
    connection: sa.Connection, dialect: Dialect, conversation_id: ConversationId, agent: AgentName, now: datetime
) -> Session:
    """The new session, or the one that another process has opened meanwhile."""
    session = Session(SessionId(fresh("sess")), conversation_id, agent, now)
    row = {"id": session.id, "conversation_id": conversation_id, "agent": agent, "created_at": now, "closed_at": None}
    if connection.execute(_add_session(dialect.insert), row).scalar() is not None:
        return session
    return _session(connection.execute(_OPEN_SESSION, {"conversation": conversation_id, "whose": agent}).one())


def _session(row: sa.Row[Any]) -> Session:
    return Session(row.id, row.conversation_id, row.agent, row.created_at, row.closed_at)
