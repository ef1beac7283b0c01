"""Summaries of stretches of sessions, and how they go with what they sum up."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.tables.talk import messages, sessions
from denizen.adapters.store.tables.summaries import summaries
from denizen.adapters.store.unit import Unit
from denizen.domain.ids import SessionId
from denizen.domain.summary import Summary

_LIST_SUMMARIES = sa.select(summaries).where(summaries.c.session_id == sa.bindparam("session")).order_by(summaries.c.first)
_REMOVE_SUMMARIES = sa.delete(summaries).where(
    summaries.c.session_id == sa.bindparam("session"),
    summaries.c.first >= sa.bindparam("from"),
    summaries.c.last <= sa.bindparam("until"),
)
_ADD_SUMMARY = sa.insert(summaries)
_LOCK_SESSION = sa.select(sessions.c.id).where(sessions.c.id == sa.bindparam("session")).with_for_update(key_share=True)


class SqlSummaries:
    """`denizen.ports.summaries.Summaries`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def list_summaries(self, session_id: SessionId) -> Sequence[Summary]:
        return await self._unit.read(lambda connection: _list_summaries(connection, session_id))

    async def put(self, summary: Summary, *, known: Sequence[Summary]) -> bool:
        dialect = self._unit.dialect
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
            connection.execute(_REMOVE_SUMMARIES, {"session": summary.session_id, "from": summary.first, "until": summary.last})
            connection.execute(_ADD_SUMMARY, row)
            return True

        return await self._unit.write(job)


def drop_summaries(
    connection: sa.Connection, which: sa.ColumnElement[bool], bounds: dict[str, Any], *, locks_rows: bool
) -> None:
    """Those with one of these messages in their stretch."""
    lock, drop = _drop_statements(which)
    if locks_rows:
        connection.execute(lock, bounds)
    connection.execute(drop, bounds)


@cache
def _drop_statements(which: sa.ColumnElement[bool]) -> tuple[sa.Select[Any], sa.Delete]:
    """Found from the messages, of which there are few. The statements are made once for each condition."""
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
