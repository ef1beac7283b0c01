"""The messages of sessions, and summaries of stretches of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import JsonText, id_columns, metadata, texts, times
from denizen.adapters.store.conversations import conversations, sessions
from denizen.adapters.store.dialect import InsertInto
from denizen.adapters.store.repository import SqlRepository, insert_rows, read_record, write_record
from denizen.domain.conversation import Session
from denizen.domain.errors import NotFound
from denizen.domain.ids import ConversationId, MessageId, SessionId, TurnId, derive
from denizen.domain.message import Author, Message, Role, parts_from_json, parts_to_json
from denizen.domain.summary import Summary
from denizen.domain.terms import index_terms, query_terms
from denizen.domain.words import make_excerpt
from denizen.ports.store import MessageHit

messages = sa.Table(
    "messages",
    metadata,
    *id_columns(),
    sa.Column("conversation_id", sa.Text(), sa.ForeignKey(conversations.c.id), nullable=False),
    sa.Column("session_id", sa.Text(), sa.ForeignKey(sessions.c.id)),
    sa.Column("sequence", sa.BigInteger(), nullable=False),
    *times("created_at"),
    sa.Column("role", sa.Text(), nullable=False),
    *texts("author_id", "author_name"),
    sa.Column("author_is_bot", sa.Boolean(), nullable=False),
    sa.Column("turn_id", sa.Text()),
    *texts("platform_id"),
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
    *texts("text"),
    *times("created_at"),
)


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


class SqlSummaries(SqlRepository):
    """Implements `denizen.ports.store.SummaryRepository`."""

    async def list_summaries(self, session_id: SessionId) -> Sequence[Summary]:
        return await self._transaction.read(lambda connection: _list_summaries(connection, session_id))

    async def put(self, summary: Summary, *, known: Sequence[Summary]) -> bool:
        def job(connection: sa.Connection) -> bool:
            if self._dialect.locks_rows:  # forgetting in this session has finished, or starts after this
                connection.execute(_LOCK_SESSION, {"session": summary.session_id})
            if _list_summaries(connection, summary.session_id) != list(known):
                return False
            connection.execute(
                _REMOVE_SUMMARIES, {"session": summary.session_id, "from": summary.first, "until": summary.last}
            )
            connection.execute(_ADD_SUMMARY, write_record(summary))
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
    return [read_record(Summary, row) for row in rows]


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


_HEAD = (
    sa.select(*MESSAGE_COLUMNS)
    .where(messages.c.session_id == sa.bindparam("session"), messages.c.sequence < sa.bindparam("before"))
    .order_by(messages.c.sequence)
)
_SUMMARIES_BEFORE = sa.select(summaries).where(
    summaries.c.session_id == sa.bindparam("session"), summaries.c.last < sa.bindparam("before")
)


class SqlMessages(SqlRepository):
    """Implements `denizen.ports.store.MessageRepository`."""

    async def add(self, message: Message) -> Message:
        add, row = _add_message(self._dialect.insert), _message_row(message)

        def job(connection: sa.Connection) -> Message:
            if (
                self._dialect.locks_rows and message.session_id is not None
            ):  # only one writer may take the next sequence
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

    async def copy(self, source: SessionId, target: Session, *, before: int) -> int:
        add, add_summary = insert_rows(self._dialect.insert, messages), insert_rows(self._dialect.insert, summaries)
        bounds = {"session": source, "before": before}

        def job(connection: sa.Connection) -> int:
            found = [_message(row) for row in connection.execute(_HEAD, bounds)]
            copies = [
                replace(each, id=MessageId(derive("msg", target.id, each.id)), session_id=target.id) for each in found
            ]
            if copies:
                rows = [_message_row(each) | {"sequence": each.sequence, "words": ""} for each in copies]
                connection.execute(add, rows)
            told = [read_record(Summary, row) for row in connection.execute(_SUMMARIES_BEFORE, bounds)]
            if told:
                connection.execute(add_summary, [write_record(replace(each, session_id=target.id)) for each in told])
            return len(copies)

        return await self._transaction.write(job)

    async def forget_turn(self, turn_id: TurnId) -> None:
        locks_rows = self._dialect.locks_rows

        def job(connection: sa.Connection) -> None:
            drop_summaries(connection, _IN_TURN, {"turn": turn_id}, locks_rows=locks_rows)
            connection.execute(_FORGET_TURN, {"turn": turn_id})

        await self._transaction.write(job)

    async def keep_newest(self, session_id: SessionId, *, limit: int) -> None:
        bounds = {"session": session_id, "keep": max(limit, 1)}
        await self._execute(_KEEP_NEWEST, bounds)

    async def search(
        self, words: str, *, conversation_ids: Sequence[ConversationId], limit: int = 10
    ) -> Sequence[MessageHit]:
        wanted, dialect = query_terms(words), self._dialect
        if not wanted or not conversation_ids or limit < 1:
            return []
        bounds = {
            "query": dialect.match_all(wanted),
            "conversations": dialect.bind_list(conversation_ids),
            "limit": limit,
        }

        def job(connection: sa.Connection) -> list[MessageHit]:
            found = [_message(row) for row in connection.execute(dialect.search, bounds).all()]
            return [MessageHit(message, make_excerpt(message.text, wanted)) for message in found]

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
        "words": " ".join(index_terms(message.text)) if message.role in _SEARCHED else "",
    }


def _message(row: Sequence[Any]) -> Message:
    """Reads the row by position, since looking up a column name costs time in every row."""
    key, conversation, session, sequence, created_at, role, author, name, is_bot, turn, platform, parts, meta = row
    return Message(
        id=key,
        conversation_id=conversation,
        role=Role(role),
        author=Author(author, name, is_bot),
        parts=parts_from_json(parts),
        created_at=created_at,
        session_id=session,
        turn_id=turn,
        platform_id=platform,
        sequence=sequence,
        meta=meta,
    )
