"""The chats of the web, and the votes of their owners on answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import cache, partial
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.answers import citations, gaps
from denizen.adapters.store.approvals import approvals, grants
from denizen.adapters.store.columns import EnumValue, EscapedText, JsonText, UtcTime, metadata, texts, times
from denizen.adapters.store.conversations import conversations, sessions
from denizen.adapters.store.delegations import delegations
from denizen.adapters.store.dialect import SqlDialect
from denizen.adapters.store.messages import messages, summaries
from denizen.adapters.store.outbox import deliveries
from denizen.adapters.store.repository import Row, SqlRepository, insert_row, read_record, upsert, write_record
from denizen.adapters.store.turns import prompts, tool_calls, turns
from denizen.domain.chat import Chat, ChatId, ChatMode, MessageVote, Vote, VoteCount
from denizen.domain.ids import ConversationId, MessageId
from denizen.domain.turn import TurnStatus
from denizen.ports.chats import ChatChanges

chats = sa.Table(
    "chats",
    metadata,
    sa.Column("conversation_id", sa.Text(), sa.ForeignKey(conversations.c.id), primary_key=True),
    *texts("id", "owner", "agent"),
    *times("created_at", "updated_at"),
    sa.Column("mode", EnumValue(ChatMode), nullable=False),
    *texts("title"),
    sa.Column("share_token", sa.Text(), nullable=False),
    sa.Column("is_pinned", sa.Boolean(), nullable=False),
    sa.UniqueConstraint("owner", "id"),
    sa.Index("ix_chats_owner_updated_at", "owner", "updated_at"),
)

IS_SHARED = chats.c.share_token != sa.literal_column("''")

sa.Index("uq_chats_share_token", chats.c.share_token, unique=True, sqlite_where=IS_SHARED, postgresql_where=IS_SHARED)

message_votes = sa.Table(
    "message_votes",
    metadata,
    sa.Column("message_id", sa.Text(), sa.ForeignKey(messages.c.id, ondelete="CASCADE"), primary_key=True),
    sa.Column("vote", EnumValue(Vote), nullable=False),
    *texts("reason"),
    *times("said_at"),
    sa.Index("ix_message_votes_said_at", "said_at"),
)

_OWNER = sa.bindparam("whose", type_=EscapedText())
_WHICH: sa.BindParameter[str] = sa.bindparam("which", type_=sa.Text())

_BY_OWNER = sa.select(chats).where(chats.c.owner == _OWNER, chats.c.id == sa.bindparam("name", type_=EscapedText()))
_BY_TOKEN = sa.select(chats).where(IS_SHARED, chats.c.share_token == sa.bindparam("token"))
_NEWEST_LAST = (chats.c.updated_at.desc(), chats.c.conversation_id)
_NEWEST = (sa.select(chats).where(chats.c.owner == _OWNER).order_by(chats.c.is_pinned.desc(), *_NEWEST_LAST)).limit(
    sa.bindparam("most")
)
_OLDER = (
    sa.select(chats)
    .where(chats.c.owner == _OWNER, ~chats.c.is_pinned, chats.c.updated_at < sa.bindparam("before", type_=UtcTime()))
    .order_by(*_NEWEST_LAST)
    .limit(sa.bindparam("most"))
)
_RETITLE = (
    sa.update(chats)
    .where(chats.c.conversation_id == _WHICH, chats.c.title == sa.bindparam("old", type_=EscapedText()))
    .values(title=sa.bindparam("new", type_=EscapedText()))
)


@cache
def _count_votes(dialect: SqlDialect) -> sa.Executable:
    day = dialect.utc_day_text(message_votes.c.said_at)
    return (
        sa.select(day.label("day"), message_votes.c.vote, sa.func.count().label("votes"))
        .where(
            message_votes.c.said_at >= sa.bindparam("since", type_=UtcTime()),
            message_votes.c.said_at < sa.bindparam("until", type_=UtcTime()),
        )
        .group_by(day, message_votes.c.vote)
        .order_by(day)
    )


_REMOVE_VOTE = sa.delete(message_votes).where(message_votes.c.message_id == _WHICH)


def _removal() -> list[sa.Executable]:
    """Returns the statements that remove a chat with the tasks that agents gave to others in it, in an order that keeps
    all references. The last two take the time.
    """
    parent = turns.alias("parent")
    given = (
        sa.select(turns.c.conversation_id)
        .join(delegations, delegations.c.turn_id == turns.c.id)
        .join(parent, parent.c.id == delegations.c.parent_id)
        .where(parent.c.conversation_id == _WHICH)
    )

    def is_here(column: sa.Column[str]) -> sa.ColumnElement[bool]:
        return sa.or_(column == _WHICH, column.in_(given))

    here = {table: is_here(table.c.conversation_id) for table in (messages, approvals, grants, chats)}
    its_turns = sa.select(turns.c.id).where(is_here(turns.c.conversation_id))
    its_sessions = sa.select(sessions.c.id).where(is_here(sessions.c.conversation_id))
    of_turns = (tool_calls, prompts, citations, gaps, deliveries)
    return [
        sa.delete(summaries).where(summaries.c.session_id.in_(its_sessions)),
        *(sa.delete(table).where(table.c.turn_id.in_(its_turns)) for table in of_turns),
        *(sa.delete(table).where(condition) for table, condition in here.items()),
        sa.update(turns)
        .where(is_here(turns.c.conversation_id))
        .values(
            reply="",
            failure="",
            failure_fix="",
            options=sa.bindparam("nothing", dict[str, object](), type_=JsonText()),
            route=sa.bindparam("no_route", None, type_=JsonText()),
        ),
        sa.update(turns)
        .where(is_here(turns.c.conversation_id), turns.c.status == TurnStatus.OPEN)
        .values(status=TurnStatus.CANCELLED, closed_at=sa.bindparam("now", type_=UtcTime())),
        sa.update(sessions)
        .where(is_here(sessions.c.conversation_id), sessions.c.closed_at.is_(None))
        .values(closed_at=sa.bindparam("now", type_=UtcTime())),
    ]


_REMOVAL = _removal()


@cache
def _votes_among(dialect: SqlDialect) -> sa.Select[Any]:
    return sa.select(message_votes).where(dialect.among(message_votes.c.message_id, "wanted"))


@cache
def _change(names: frozenset[str]) -> sa.Update:
    given = {name: sa.bindparam(f"new_{name}", type_=chats.c[name].type) for name in sorted(names)}
    return sa.update(chats).where(chats.c.conversation_id == _WHICH).values(given)


class SqlChats(SqlRepository):
    """Implements `denizen.ports.chats.ChatRepository`."""

    async def put(self, chat: Chat) -> tuple[Chat, bool]:
        add, row = insert_row(self._dialect.insert, chats), write_record(chat)

        def job(connection: sa.Connection) -> tuple[Chat, bool]:
            if connection.execute(add, row).first() is not None:
                return chat, True
            return _read_chat(connection.execute(_BY_OWNER, {"whose": chat.owner, "name": chat.id}).one()), False

        return await self._transaction.write(job)

    async def find(self, owner: str, chat_id: ChatId) -> Chat | None:
        return await self._find(_read_chat, _BY_OWNER, {"whose": owner, "name": chat_id})

    async def find_shared(self, token: str) -> Chat | None:
        return await self._find(_read_chat, _BY_TOKEN, {"token": token})

    async def list_chats(self, owner: str, *, before: datetime | None = None, limit: int = 50) -> Sequence[Chat]:
        bounds = {"whose": owner, "most": max(limit, 0)}
        if before is None:
            return await self._list(_read_chat, _NEWEST, bounds)
        return await self._list(_read_chat, _OLDER, bounds | {"before": before})

    async def change(self, conversation_id: ConversationId, changes: ChatChanges) -> bool:
        given = {name: value for name, value in asdict(changes).items() if value is not None}
        if not given:
            return True
        values = {f"new_{name}": value for name, value in given.items()} | {"which": conversation_id}
        return bool(await self._change(_change(frozenset(given)), values))

    async def set_title(self, conversation_id: ConversationId, title: str, *, instead_of: str) -> bool:
        return bool(await self._change(_RETITLE, {"which": conversation_id, "new": title, "old": instead_of}))

    async def remove(self, conversation_id: ConversationId, *, now: datetime) -> None:
        def job(connection: sa.Connection) -> None:
            for statement in _REMOVAL[:-2]:
                connection.execute(statement, {"which": conversation_id})
            for statement in _REMOVAL[-2:]:
                connection.execute(statement, {"which": conversation_id, "now": now})

        await self._transaction.write(job)

    async def put_vote(self, vote: MessageVote) -> None:
        await self._execute(upsert(self._dialect.insert, message_votes), write_record(vote))

    async def remove_vote(self, message_id: MessageId) -> None:
        await self._change(_REMOVE_VOTE, {"which": message_id})

    async def list_votes(self, message_ids: Collection[MessageId]) -> Mapping[MessageId, MessageVote]:
        wanted = self._dialect.bind_list(sorted(set(message_ids)))
        found = await self._list(_read_vote, _votes_among(self._dialect), {"wanted": wanted})
        return {vote.message_id: vote for vote in found}

    async def count_votes(self, *, since: datetime, until: datetime) -> Mapping[str, VoteCount]:
        rows = await self._list(_read_count, _count_votes(self._dialect), {"since": since, "until": until})
        days: dict[str, VoteCount] = {}
        for day, count in rows:
            days[day] = days.get(day, VoteCount()) + count
        return days


def _read_count(row: Row) -> tuple[str, VoteCount]:
    return row.day, VoteCount(row.votes, 0) if row.vote is Vote.POSITIVE else VoteCount(0, row.votes)


_read_chat = partial(read_record, Chat)
_read_vote = partial(read_record, MessageVote)
