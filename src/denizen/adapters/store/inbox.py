"""The inbox of agents: claims on messages, read cursors, followed threads, allowlists and bot-reply counters."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, PlatformId, UtcTime, metadata, write_id
from denizen.adapters.store.dialect import InsertInto, SqlDialect
from denizen.adapters.store.transaction import Transaction
from denizen.domain.ids import AgentName
from denizen.ports.inbox import AllowedKind, MessageClaim

claims = sa.Table(
    "claims",
    metadata,
    sa.Column("agent", EscapedText(), primary_key=True),
    sa.Column("platform", EscapedText(), primary_key=True),
    sa.Column("post", PlatformId(), primary_key=True),
    sa.Column("turn_id", sa.Text()),
    sa.Column("refusal", sa.Text(), nullable=False),
    sa.Column("created_at", UtcTime(), nullable=False),
)

read_cursors = sa.Table(
    "read_cursors",
    metadata,
    sa.Column("agent", EscapedText(), primary_key=True),
    sa.Column("platform", EscapedText(), primary_key=True),
    sa.Column("room", EscapedText(), primary_key=True),
    sa.Column("post", PlatformId(), nullable=False),
)

follows = sa.Table(
    "follows",
    metadata,
    sa.Column("agent", EscapedText(), primary_key=True),
    sa.Column("platform", EscapedText(), primary_key=True),
    sa.Column("thread", EscapedText(), primary_key=True),
    sa.Column("created_at", UtcTime(), nullable=False),
)

allowlist = sa.Table(
    "allowlist",
    metadata,
    sa.Column("agent", EscapedText(), primary_key=True),
    sa.Column("platform", EscapedText(), primary_key=True),
    sa.Column("kind", sa.Text(), primary_key=True),
    sa.Column("key", EscapedText(), primary_key=True),
    sa.Column("allowed_by", EscapedText(), nullable=False),
    sa.Column("created_at", UtcTime(), nullable=False),
)

bot_reply_counts = sa.Table(
    "bot_reply_counts",
    metadata,
    sa.Column("platform", EscapedText(), primary_key=True),
    sa.Column("room", EscapedText(), primary_key=True),
    sa.Column("replies", sa.Integer(), nullable=False),
)


def _by_agent(table: sa.Table) -> tuple[sa.ColumnElement[bool], ...]:
    return table.c.agent == sa.bindparam("who"), table.c.platform == sa.bindparam("where")


_HERE = (bot_reply_counts.c.platform == sa.bindparam("where"), bot_reply_counts.c.room == sa.bindparam("within"))
_OF_KIND = (*_by_agent(allowlist), allowlist.c.kind == sa.bindparam("what"))

_POSITIONS = sa.select(read_cursors.c.room, read_cursors.c.post).where(*_by_agent(read_cursors))
_FOLLOWED = sa.select(follows.c.thread).where(*_by_agent(follows))
_UNFOLLOW = sa.delete(follows).where(*_by_agent(follows), follows.c.thread == sa.bindparam("within"))
_ALLOWED = sa.select(allowlist.c.key).where(*_OF_KIND)
_DISALLOW = sa.delete(allowlist).where(*_OF_KIND, allowlist.c.key == sa.bindparam("which"))
_GIVE_BACK = (
    sa.update(bot_reply_counts)
    .where(*_HERE, bot_reply_counts.c.replies > 0)
    .values(replies=bot_reply_counts.c.replies - 1)
)
_RESET = sa.delete(bot_reply_counts).where(*_HERE)
_COUNT = sa.select(bot_reply_counts.c.replies).where(*_HERE)

_NO_LIMIT = 2**31 - 1  # the most that the column holds


@cache
def _claim(insert: InsertInto) -> sa.Executable:
    return insert(claims).on_conflict_do_nothing().returning(claims.c.agent, claims.c.platform, claims.c.post)


@cache
def _find_claims(dialect: SqlDialect) -> sa.Select[Any]:
    return sa.select(claims).where(*_by_agent(claims), dialect.among(claims.c.post, "chosen"))


@cache
def _add(insert: InsertInto, table: sa.Table) -> sa.Executable:
    return insert(table).on_conflict_do_nothing().inline()


@cache
def _put_position(insert: InsertInto) -> sa.Executable:
    statement = insert(read_cursors)
    return statement.on_conflict_do_update(
        index_elements=list(read_cursors.primary_key),
        set_={"post": statement.excluded.post},
        where=statement.excluded.post > read_cursors.c.post,
    ).inline()


@cache
def _take(insert: InsertInto) -> sa.Executable:
    return (
        insert(bot_reply_counts)
        .on_conflict_do_update(
            index_elements=list(bot_reply_counts.primary_key),
            set_={"replies": bot_reply_counts.c.replies + 1},
            where=bot_reply_counts.c.replies < sa.bindparam("most", type_=sa.Integer()),
        )
        .values(platform=sa.bindparam("platform"), room=sa.bindparam("room"), replies=1)
        .returning(bot_reply_counts.c.replies)
    )


class SqlInbox:
    """Implements `denizen.ports.inbox.InboxRepository`."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    async def claim(self, claims: Sequence[MessageClaim], *, now: datetime) -> Sequence[MessageClaim]:
        statement = _claim(self._transaction.dialect.insert)
        first: dict[tuple[str, str, str], MessageClaim] = {}
        for each in claims:
            first.setdefault((each.agent, each.platform, each.post_id), each)
        # Sorted, so that two processes that claim the same messages cannot deadlock.
        rows = [_claim_row(first[key], now) for key in sorted(first)]

        def job(connection: sa.Connection) -> list[MessageClaim]:
            added = {tuple(row) for row in connection.execute(statement, rows)}
            return [each for key, each in first.items() if key in added]

        return await self._transaction.write(job) if rows else []

    async def find_claims(
        self, agent: AgentName, platform: str, post_ids: Collection[str]
    ) -> Mapping[str, MessageClaim]:
        dialect = self._transaction.dialect
        chosen = dialect.bind_list([write_id(key) for key in post_ids])
        which = {"who": agent, "where": platform, "chosen": chosen}

        def job(connection: sa.Connection) -> dict[str, MessageClaim]:
            rows = connection.execute(_find_claims(dialect), which)
            return {row.post: MessageClaim(row.agent, row.platform, row.post, row.turn_id, row.refusal) for row in rows}

        return await self._transaction.read(job)

    async def list_cursors(self, agent: AgentName, platform: str) -> Mapping[str, str]:
        which = {"who": agent, "where": platform}
        return await self._transaction.read(
            lambda connection: {row.room: row.post for row in connection.execute(_POSITIONS, which)}
        )

    async def put_cursors(self, agent: AgentName, platform: str, positions: Mapping[str, str]) -> None:
        rows = [
            {"agent": agent, "platform": platform, "room": room, "post": post}
            for room, post in sorted(positions.items())
        ]
        statement = _put_position(self._transaction.dialect.insert)
        await self._transaction.write(lambda connection: connection.execute(statement, rows) if rows else None)

    async def follow(self, agent: AgentName, platform: str, thread: str, *, now: datetime) -> None:
        row = {"agent": agent, "platform": platform, "thread": thread, "created_at": now}
        statement = _add(self._transaction.dialect.insert, follows)
        await self._transaction.write(lambda connection: connection.execute(statement, row))

    async def unfollow(self, agent: AgentName, platform: str, thread: str) -> None:
        which = {"who": agent, "where": platform, "within": thread}
        await self._transaction.write(lambda connection: connection.execute(_UNFOLLOW, which))

    async def list_followed(self, agent: AgentName, platform: str) -> frozenset[str]:
        which = {"who": agent, "where": platform}
        return await self._transaction.read(
            lambda connection: frozenset(connection.execute(_FOLLOWED, which).scalars())
        )

    async def allow(
        self, agent: AgentName, platform: str, kind: AllowedKind, key: str, *, by: str, now: datetime
    ) -> None:
        row = {"agent": agent, "platform": platform, "kind": kind.value, "key": key, "allowed_by": by}
        statement = _add(self._transaction.dialect.insert, allowlist)
        await self._transaction.write(lambda connection: connection.execute(statement, row | {"created_at": now}))

    async def disallow(self, agent: AgentName, platform: str, kind: AllowedKind, key: str) -> bool:
        which = {"who": agent, "where": platform, "what": kind.value, "which": key}
        return await self._transaction.write(lambda connection: connection.execute(_DISALLOW, which).rowcount > 0)

    async def list_allowed(self, agent: AgentName, platform: str, kind: AllowedKind) -> frozenset[str]:
        which = {"who": agent, "where": platform, "what": kind.value}
        return await self._transaction.read(lambda connection: frozenset(connection.execute(_ALLOWED, which).scalars()))

    async def take_bot_reply(self, platform: str, room: str, *, limit: int | None = None) -> bool:
        most = _NO_LIMIT if limit is None else limit
        statement = _take(self._transaction.dialect.insert)
        row = {"platform": platform, "room": room, "most": most}

        def job(connection: sa.Connection) -> bool:
            return most > 0 and connection.execute(statement, row).scalar() is not None

        return await self._transaction.write(job)

    async def give_back_bot_reply(self, platform: str, room: str) -> None:
        which = {"where": platform, "within": room}
        await self._transaction.write(lambda connection: connection.execute(_GIVE_BACK, which))

    async def reset_bot_replies(self, platform: str, room: str) -> None:
        which = {"where": platform, "within": room}
        await self._transaction.write(lambda connection: connection.execute(_RESET, which))

    async def count_bot_replies(self, platform: str, room: str) -> int:
        which = {"where": platform, "within": room}
        return await self._transaction.read(lambda connection: connection.execute(_COUNT, which).scalar() or 0)


def _claim_row(claim: MessageClaim, now: datetime) -> dict[str, Any]:
    return {
        "agent": claim.agent,
        "platform": claim.platform,
        "post": claim.post_id,
        "turn_id": claim.turn_id,
        "refusal": claim.refusal,
        "created_at": now,
    }
