"""Conversations: where talk happens."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText
from denizen.adapters.store.dialect import InsertInto
from denizen.adapters.store.tables.talk import conversations, messages
from denizen.adapters.store.unit import Unit
from denizen.domain.conversation import Conversation, Place
from denizen.domain.errors import NotFound
from denizen.domain.ids import ConversationId

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
    """`denizen.ports.store.Conversations`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def put(self, place: Place, *, title: str = "", now: datetime) -> Conversation:
        key = place.conversation_id
        add = _add_conversation(self._unit.dialect.insert)

        def job(connection: sa.Connection) -> Conversation:
            found = _find_conversation(connection, key)
            if found is None:
                new = Conversation(key, place, title, now)
                found = new if connection.execute(add, _conversation_row(new)).scalar() is not None else _get_conversation(connection, key)
            if title and title != found.title:
                connection.execute(_RENAME_CONVERSATION, {"which": key, "new_title": title})
                return Conversation(found.id, found.place, title, found.created_at)
            return found

        return await self._unit.write(job)

    async def get(self, conversation_id: ConversationId) -> Conversation:
        return await self._unit.read(lambda connection: _get_conversation(connection, conversation_id))

    async def list_recent(self, *, platform: str = "", limit: int = 50) -> Sequence[Conversation]:
        def job(connection: sa.Connection) -> list[Conversation]:
            rows = connection.execute(_RECENT_CONVERSATIONS, {"platform": platform, "limit": max(limit, 0)})
            return [_conversation(row) for row in rows]

        return await self._unit.read(job)


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
