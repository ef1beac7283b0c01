"""The inbox of agents: claims on messages, read cursors, followed threads, allowlists and bot-reply counters."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import cache, partial
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import EnumValue, PlatformId, metadata, text_keys, texts, times, write_id
from denizen.adapters.store.dialect import InsertInto, SqlDialect
from denizen.adapters.store.repository import SqlRepository, insert_row, insert_rows
from denizen.domain.ids import AgentName
from denizen.ports.inbox import AllowedKind, MessageClaim

claims = sa.Table(
    "claims",
    metadata,
    *text_keys("agent", "platform"),
    sa.Column("post", PlatformId(), primary_key=True),
    sa.Column("turn_id", sa.Text()),
    sa.Column("refusal", sa.Text(), nullable=False),
    *times("created_at"),
)

read_cursors = sa.Table(
    "read_cursors", metadata, *text_keys("agent", "platform", "room"), sa.Column("post", PlatformId(), nullable=False)
)

follows = sa.Table("follows", metadata, *text_keys("agent", "platform", "thread"), *times("created_at"))

allowlist = sa.Table(
    "allowlist",
    metadata,
    *text_keys("agent", "platform"),
    sa.Column("kind", EnumValue(AllowedKind), primary_key=True),
    *text_keys("key"),
    *texts("allowed_by"),
    *times("created_at"),
)

bot_reply_counts = sa.Table(
    "bot_reply_counts", metadata, *text_keys("platform", "room"), sa.Column("replies", sa.Integer(), nullable=False)
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

_add_claim = partial(insert_row, table=claims)
_NO_LIMIT = 2**31 - 1  # the most that the column holds


@cache
def _find_claims(dialect: SqlDialect) -> sa.Select[Any]:
    return sa.select(claims).where(*_by_agent(claims), dialect.among(claims.c.post, "chosen"))


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


class SqlInbox(SqlRepository):
    """Implements `denizen.ports.inbox.InboxRepository`."""

    async def claim(self, claims: Sequence[MessageClaim], *, now: datetime) -> Sequence[MessageClaim]:
        statement = _add_claim(self._dialect.insert)
        first: dict[tuple[str, str, str], MessageClaim] = {}
        for each in claims:
            first.setdefault((each.agent, each.platform, each.post_id), each)
        # Sorted, so that two processes that claim the same messages cannot deadlock.
        rows = [
            {
                "agent": each.agent,
                "platform": each.platform,
                "post": each.post_id,
                "turn_id": each.turn_id,
                "refusal": each.refusal,
                "created_at": now,
            }
            for each in (first[key] for key in sorted(first))
        ]

        def job(connection: sa.Connection) -> list[MessageClaim]:
            added = {tuple(row) for row in connection.execute(statement, rows)}
            return [each for key, each in first.items() if key in added]

        return await self._transaction.write(job) if rows else []

    async def find_claims(
        self, agent: AgentName, platform: str, post_ids: Collection[str]
    ) -> Mapping[str, MessageClaim]:
        chosen = self._dialect.bind_list([write_id(key) for key in post_ids])
        which = {"who": agent, "where": platform, "chosen": chosen}

        def job(connection: sa.Connection) -> dict[str, MessageClaim]:
            rows = connection.execute(_find_claims(self._dialect), which)
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
        statement = _put_position(self._dialect.insert)
        await self._execute(statement, rows)

    async def follow(self, agent: AgentName, platform: str, thread: str, *, now: datetime) -> None:
        row = {"agent": agent, "platform": platform, "thread": thread, "created_at": now}
        await self._execute(insert_rows(self._dialect.insert, follows), row)

    async def unfollow(self, agent: AgentName, platform: str, thread: str) -> None:
        which = {"who": agent, "where": platform, "within": thread}
        await self._execute(_UNFOLLOW, which)

    async def list_followed(self, agent: AgentName, platform: str) -> frozenset[str]:
        which = {"who": agent, "where": platform}
        return await self._transaction.read(
            lambda connection: frozenset(connection.execute(_FOLLOWED, which).scalars())
        )

    async def allow(
        self, agent: AgentName, platform: str, kind: AllowedKind, key: str, *, by: str, now: datetime
    ) -> None:
        row = {"agent": agent, "platform": platform, "kind": kind, "key": key, "allowed_by": by, "created_at": now}
        await self._execute(insert_rows(self._dialect.insert, allowlist), row)

    async def disallow(self, agent: AgentName, platform: str, kind: AllowedKind, key: str) -> bool:
        which = {"who": agent, "where": platform, "what": kind, "which": key}
        return await self._change(_DISALLOW, which) > 0

    async def list_allowed(self, agent: AgentName, platform: str, kind: AllowedKind) -> frozenset[str]:
        which = {"who": agent, "where": platform, "what": kind}
        return await self._transaction.read(lambda connection: frozenset(connection.execute(_ALLOWED, which).scalars()))

    async def take_bot_reply(self, platform: str, room: str, *, limit: int | None = None) -> bool:
        most = _NO_LIMIT if limit is None else limit
        statement = _take(self._dialect.insert)
        row = {"platform": platform, "room": room, "most": most}

        def job(connection: sa.Connection) -> bool:
            return most > 0 and connection.execute(statement, row).scalar() is not None

        return await self._transaction.write(job)

    async def give_back_bot_reply(self, platform: str, room: str) -> None:
        which = {"where": platform, "within": room}
        await self._execute(_GIVE_BACK, which)

    async def reset_bot_replies(self, platform: str, room: str) -> None:
        which = {"where": platform, "within": room}
        await self._execute(_RESET, which)

    async def count_bot_replies(self, platform: str, room: str) -> int:
        which = {"where": platform, "within": room}
        return await self._transaction.read(lambda connection: connection.execute(_COUNT, which).scalar() or 0)
