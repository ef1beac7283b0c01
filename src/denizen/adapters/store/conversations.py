"""Conversations, the sessions of agents in them, their messages, and summaries of stretches of messages.

An agent has at most one open session in a conversation; a unique index enforces that, not this code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, JsonText, UtcTime, metadata, position_column
from denizen.adapters.store.dialect import InsertInto, SqlDialect
from denizen.adapters.store.transaction import Transaction
from denizen.domain.conversation import Conversation, Place, Session
from denizen.domain.errors import NotFound
from denizen.domain.ids import AgentName, ConversationId, MessageId, SessionId, TurnId, fresh
from denizen.domain.message import Author, Message, Role, parts_from_json, parts_to_json
from denizen.domain.summary import Summary
from denizen.domain.words import excerpt_of, words_of
from denizen.ports.store import MessageHit, RecentSession

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

messages = sa.Table(
    "messages",
    metadata,
    position_column(),
    sa.Column("id", sa.Text(), nullable=False, unique=True),
    sa.Column("conversation_id", sa.Text(), sa.ForeignKey(conversations.c.id), nullable=False),
    sa.Column("session_id", sa.Text(), sa.ForeignKey(sessions.c.id)),
    sa.Column("sequence", sa.BigInteger(), nullable=False),
    sa.Column("created_at", UtcTime(), nullable=False),
    sa.Column("role", sa.Text(), nullable=False),
    sa.Column("author_id", EscapedText(), nullable=False),
    sa.Column("author_name", EscapedText(), nullable=False),
    sa.Column("author_is_bot", sa.Boolean(), nullable=False),
    sa.Column("turn_id", sa.Text()),
    sa.Column("platform_id", EscapedText(), nullable=False),
    sa.Column("parts", JsonText(), nullable=False),
    sa.Column("meta", JsonText(), nullable=False),
    sa.Column("words", sa.Text(), nullable=False),
    sa.Index("ix_messages_session_id_sequence", "session_id", "sequence", unique=True),
    sa.Index("ix_messages_conversation_id_created_at", "conversation_id", "created_at"),
)
"""Columns that may be long come last, so that the rest of a row is read without them. `words` feeds full-text search;
it is empty for messages that are not searched.
"""

MESSAGE_COLUMNS = tuple(column for column in messages.c if column.name not in {"position", "words"})
"""The columns of a message, in the order in which the repository reads them."""

ON_PLATFORM = messages.c.platform_id != ""

sa.Index("ix_messages_platform_id", messages.c.platform_id, sqlite_where=ON_PLATFORM, postgresql_where=ON_PLATFORM)

sa.Index(
    "ix_messages_turn_id",
    messages.c.turn_id,
    sqlite_where=messages.c.turn_id.is_not(None),
    postgresql_where=messages.c.turn_id.is_not(None),
)

WITH_AUTHOR = messages.c.author_id != ""

sa.Index("ix_messages_author_id", messages.c.author_id, sqlite_where=WITH_AUTHOR, postgresql_where=WITH_AUTHOR)


summaries = sa.Table(
    "summaries",
    metadata,
    sa.Column("session_id", sa.Text(), sa.ForeignKey(sessions.c.id), nullable=False, primary_key=True),
    sa.Column("first", sa.BigInteger(), nullable=False, primary_key=True, autoincrement=False),
    sa.Column("last", sa.BigInteger(), nullable=False),
    sa.Column("text", EscapedText(), nullable=False),
    sa.Column("created_at", UtcTime(), nullable=False),
)


_LATEST_MESSAGE = (
    sa.select(sa.func.max(messages.c.created_at))
    .where(messages.c.conversation_id == conversations.c.id)
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
    # Two who put it at once may meet at either unique key.
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
            if dialect.locks_rows:  # two that renew at once: the second closes what the first has opened
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


_LIST_SUMMARIES = (
    sa.select(summaries).where(summaries.c.session_id == sa.bindparam("session")).order_by(summaries.c.first)
)
_REMOVE_SUMMARIES = sa.delete(summaries).where(
    summaries.c.session_id == sa.bindparam("session"),
    summaries.c.first >= sa.bindparam("from"),
    summaries.c.last <= sa.bindparam("until"),
)
_ADD_SUMMARY = sa.insert(summaries)
_LOCK_SESSION = sa.select(sessions.c.id).where(sessions.c.id == sa.bindparam("session")).with_for_update(key_share=True)


class SqlSummaries:
    """Implements `denizen.ports.store.SummaryRepository`."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    async def list_summaries(self, session_id: SessionId) -> Sequence[Summary]:
        return await self._transaction.read(lambda connection: _list_summaries(connection, session_id))

    async def put(self, summary: Summary, *, known: Sequence[Summary]) -> bool:
        dialect = self._transaction.dialect
        row = {
            "session_id": summary.session_id,
            "first": summary.first,
            "last": summary.last,
            "text": summary.text,
            "created_at": summary.created_at,
        }

        def job(connection: sa.Connection) -> bool:
            if dialect.locks_rows:  # whoever forgets something of the session has done it, or does it after this
                connection.execute(_LOCK_SESSION, {"session": summary.session_id})
            if _list_summaries(connection, summary.session_id) != list(known):
                return False
            connection.execute(
                _REMOVE_SUMMARIES, {"session": summary.session_id, "from": summary.first, "until": summary.last}
            )
            connection.execute(_ADD_SUMMARY, row)
            return True

        return await self._transaction.write(job)


def drop_summaries(
    connection: sa.Connection, which: sa.ColumnElement[bool], bounds: dict[str, Any], *, locks_rows: bool
) -> None:
    """Removes the summaries whose stretch includes one of these messages."""
    lock, drop = _drop_statements(which)
    if locks_rows:
        connection.execute(lock, bounds)
    connection.execute(drop, bounds)


@cache
def _drop_statements(which: sa.ColumnElement[bool]) -> tuple[sa.Select[Any], sa.Delete]:
    """Returns the statements that lock the sessions and remove the summaries; built once for each condition.

    They start from the messages, since these are few.
    """
    summed_up = sa.and_(
        messages.c.session_id == summaries.c.session_id,
        messages.c.sequence >= summaries.c.first,
        messages.c.sequence <= summaries.c.last,
    )
    found = sa.select(summaries.c.session_id, summaries.c.first).join(messages, summed_up).where(which)
    lock = (
        sa.select(sessions.c.id)
        .where(sessions.c.id.in_(sa.select(messages.c.session_id).where(which, messages.c.session_id.is_not(None))))
        .order_by(sessions.c.id)
        .with_for_update(key_share=True)
    )
    return lock, sa.delete(summaries).where(sa.tuple_(summaries.c.session_id, summaries.c.first).in_(found))


def _list_summaries(connection: sa.Connection, session_id: SessionId) -> list[Summary]:
    rows = connection.execute(_LIST_SUMMARIES, {"session": session_id}).all()
    return [Summary(row.session_id, row.first, row.last, row.text, row.created_at) for row in rows]


_SEARCHED = frozenset({Role.USER, Role.ASSISTANT})
_NO_BOUND = 2**62
_GIVEN = [column.name for column in messages.c if column.name not in {"position", "sequence", "session_id"}]

_MESSAGE_BY_ID = sa.select(*MESSAGE_COLUMNS).where(messages.c.id == sa.bindparam("id"))
_TAIL = (
    sa.select(*MESSAGE_COLUMNS)
    .where(messages.c.session_id == sa.bindparam("session"), messages.c.sequence < sa.bindparam("before"))
    .order_by(messages.c.sequence.desc())
    .limit(sa.bindparam("limit"))
)


_IN_TURN = messages.c.turn_id == sa.bindparam("turn")
_FORGET_TURN = sa.update(messages).where(_IN_TURN).values({"session_id": None, "sequence": 0, "words": ""})

_newer = messages.alias()
_KEEP_NEWEST = (
    sa.update(messages)
    .where(
        messages.c.session_id == sa.bindparam("session"),
        messages.c.sequence
        <= sa.select(_newer.c.sequence)
        .where(_newer.c.session_id == sa.bindparam("session"))
        .order_by(_newer.c.sequence.desc())
        .limit(1)
        .offset(sa.bindparam("keep"))
        .scalar_subquery(),
    )
    .values(
        {
            "session_id": None,
            "sequence": 0,
            "words": "",
            "parts": sa.bindparam("no_parts", list[object](), type_=JsonText()),
            "meta": sa.bindparam("no_meta", dict[str, object](), type_=JsonText()),
        }
    )
)


@cache
def _add_message(insert: InsertInto) -> sa.Executable:
    """The statement finds the next sequence while inserting. A message outside of sessions has none."""
    earlier, session = messages.alias(), sa.bindparam("session_id", type_=sa.Text())
    last = sa.select(sa.func.max(earlier.c.sequence)).where(earlier.c.session_id == session).scalar_subquery()
    sequence = sa.case((session.is_(None), 0), else_=sa.func.coalesce(last, 0) + 1)
    values: dict[str, Any] = {name: sa.bindparam(name) for name in _GIVEN}
    return (
        insert(messages)
        .values(values | {"session_id": session, "sequence": sequence})
        .on_conflict_do_nothing(index_elements=[messages.c.id])
        .returning(messages.c.sequence)
    )


class SqlMessages:
    """Implements `denizen.ports.store.MessageRepository`."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    async def add(self, message: Message) -> Message:
        dialect = self._transaction.dialect
        add, row = _add_message(dialect.insert), _message_row(message)

        def job(connection: sa.Connection) -> Message:
            if dialect.locks_rows and message.session_id is not None:  # the next sequence is for one writer only
                connection.execute(_LOCK_SESSION, {"session": message.session_id})
            sequence = connection.execute(add, row).scalar()
            if sequence is None:
                return _get_message(connection, message.id)
            return replace(message, sequence=sequence)

        return await self._transaction.write(job)

    async def get(self, message_id: MessageId) -> Message:
        return await self._transaction.read(lambda connection: _get_message(connection, message_id))

    async def list_tail(self, session_id: SessionId, *, limit: int, before: int | None = None) -> Sequence[Message]:
        bounds = {"session": session_id, "limit": max(limit, 0), "before": _NO_BOUND if before is None else before}

        def job(connection: sa.Connection) -> list[Message]:
            return [_message(row) for row in connection.execute(_TAIL, bounds).all()][::-1]

        return await self._transaction.read(job)

    async def forget_turn(self, turn_id: TurnId) -> None:
        locks_rows = self._transaction.dialect.locks_rows

        def job(connection: sa.Connection) -> None:
            drop_summaries(connection, _IN_TURN, {"turn": turn_id}, locks_rows=locks_rows)
            connection.execute(_FORGET_TURN, {"turn": turn_id})

        await self._transaction.write(job)

    async def keep_newest(self, session_id: SessionId, *, limit: int) -> None:
        bounds = {"session": session_id, "keep": max(limit, 1)}
        await self._transaction.write(lambda connection: connection.execute(_KEEP_NEWEST, bounds))

    async def search(
        self, words: str, *, conversation_ids: Sequence[ConversationId], limit: int = 10
    ) -> Sequence[MessageHit]:
        wanted, dialect = words_of(words), self._transaction.dialect
        if not wanted or not conversation_ids or limit < 1:
            return []
        bounds = {
            "query": dialect.match_all(wanted),
            "conversations": dialect.bind_list(conversation_ids),
            "limit": limit,
        }

        def job(connection: sa.Connection) -> list[MessageHit]:
            found = [_message(row) for row in connection.execute(dialect.search, bounds).all()]
            return [MessageHit(message, excerpt_of(message.text, wanted)) for message in found]

        return await self._transaction.read(job)


def _get_message(connection: sa.Connection, message_id: MessageId) -> Message:
    row = connection.execute(_MESSAGE_BY_ID, {"id": message_id}).first()
    if row is None:
        raise NotFound(f"There is no message {message_id}.", code="message_not_found")
    return _message(row)


def _message_row(message: Message) -> dict[str, Any]:
    return {
        "id": message.id,
        "conversation_id": message.conversation_id,
        "session_id": message.session_id,
        "role": message.role.value,
        "author_id": message.author.id,
        "author_name": message.author.name,
        "author_is_bot": message.author.is_bot,
        "parts": parts_to_json(message.parts),
        "created_at": message.created_at,
        "turn_id": message.turn_id,
        "platform_id": message.platform_id,
        "meta": dict(message.meta),
        "words": " ".join(words_of(message.text)) if message.role in _SEARCHED else "",
    }


def _message(row: Sequence[Any]) -> Message:
    """Reads the row by position, since looking up a column name costs time in every row."""
    key, conversation, session, sequence, created_at, role, author, name, is_bot, turn, platform, parts, meta = row
    return Message(
        key,
        conversation,
        Role(role),
        Author(author, name, is_bot),
        parts_from_json(parts),
        created_at,
        session,
        turn,
        platform,
        sequence,
        meta,
    )
