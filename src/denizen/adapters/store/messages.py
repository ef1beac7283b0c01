"""Messages: added at the end of a session, read from its end, searched by words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import JsonText
from denizen.adapters.store.dialect import InsertInto
from denizen.adapters.store.summaries import drop_summaries
from denizen.adapters.store.tables.talk import MESSAGE, messages, sessions
from denizen.adapters.store.unit import Unit
from denizen.domain.errors import NotFound
from denizen.domain.ids import ConversationId, MessageId, SessionId, TurnId
from denizen.domain.message import Author, Message, Role, parts_from_json, parts_to_json
from denizen.domain.words import excerpt_of, words_of
from denizen.ports.store import Hit

_SEARCHED = frozenset({Role.USER, Role.ASSISTANT})
_NO_BOUND = 2**62
_GIVEN = [column.name for column in messages.c if column.name not in {"position", "sequence", "session_id"}]

_MESSAGE_BY_ID = sa.select(*MESSAGE).where(messages.c.id == sa.bindparam("id"))
_TAIL = (
    sa.select(*MESSAGE)
    .where(messages.c.session_id == sa.bindparam("session"), messages.c.sequence < sa.bindparam("before"))
    .order_by(messages.c.sequence.desc())
    .limit(sa.bindparam("limit"))
)
_LOCK_SESSION = sa.select(sessions.c.id).where(sessions.c.id == sa.bindparam("session")).with_for_update(key_share=True)


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
    """The next sequence is found while inserting; a message outside sessions has none."""
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
    """`denizen.ports.store.Messages`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def add(self, message: Message) -> Message:
        dialect = self._unit.dialect
        add, row = _add_message(dialect.insert), _message_row(message)

        def job(connection: sa.Connection) -> Message:
            if dialect.locks_rows and message.session_id is not None:  # the next sequence is for one writer only
                connection.execute(_LOCK_SESSION, {"session": message.session_id})
            sequence = connection.execute(add, row).scalar()
            if sequence is None:
                return _get_message(connection, message.id)
            return replace(message, sequence=sequence)

        return await self._unit.write(job)

    async def get(self, message_id: MessageId) -> Message:
        return await self._unit.read(lambda connection: _get_message(connection, message_id))

    async def list_tail(self, session_id: SessionId, *, limit: int, before: int | None = None) -> Sequence[Message]:
        bounds = {"session": session_id, "limit": max(limit, 0), "before": _NO_BOUND if before is None else before}

        def job(connection: sa.Connection) -> list[Message]:
            return [_message(row) for row in connection.execute(_TAIL, bounds).all()][::-1]

        return await self._unit.read(job)

    async def forget_turn(self, turn_id: TurnId) -> None:
        locks_rows = self._unit.dialect.locks_rows

        def job(connection: sa.Connection) -> None:
            drop_summaries(connection, _IN_TURN, {"turn": turn_id}, locks_rows=locks_rows)
            connection.execute(_FORGET_TURN, {"turn": turn_id})

        await self._unit.write(job)

    async def keep_newest(self, session_id: SessionId, *, limit: int) -> None:
        bounds = {"session": session_id, "keep": max(limit, 1)}
        await self._unit.write(lambda connection: connection.execute(_KEEP_NEWEST, bounds))

    async def search(self, words: str, *, conversation_ids: Sequence[ConversationId], limit: int = 10) -> Sequence[Hit]:
        wanted, dialect = words_of(words), self._unit.dialect
        if not wanted or not conversation_ids or limit < 1:
            return []
        bounds = {
            "query": dialect.query_of(wanted),
            "conversations": dialect.list_of(conversation_ids),
            "limit": limit,
        }

        def job(connection: sa.Connection) -> list[Hit]:
            found = [_message(row) for row in connection.execute(dialect.search, bounds).all()]
            return [Hit(message, excerpt_of(message.text, wanted)) for message in found]

        return await self._unit.read(job)


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
    """By position: a name costs a look-up in every row."""
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
