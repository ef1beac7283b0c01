"""The audit log: entries are chained behind the newest one, by one unit of work at a time."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import EnumValue, PositionType, metadata, texts, times
from denizen.adapters.store.dialect import InsertInto
from denizen.adapters.store.repository import Row, SqlRepository
from denizen.domain.audit import AuditEntry, AuditEvent, AuditHead, AuditKind, append_to_chain, chain_head
from denizen.ports.store import AuditSearch

audit = sa.Table(
    "audit",
    metadata,
    sa.Column("number", PositionType, primary_key=True, autoincrement=False),
    sa.Column("kind", EnumValue(AuditKind), nullable=False),
    *times("at"),
    *texts("actor", "subject", "details"),
    sa.Column("previous", sa.Text(), nullable=False),
    sa.Column("digest", sa.Text(), nullable=False),
)

audit_head = sa.Table(
    "audit_head",
    metadata,
    sa.Column("id", sa.Integer(), primary_key=True, autoincrement=False),
    sa.Column("number", sa.BigInteger(), nullable=False),
    sa.Column("digest", sa.Text(), nullable=False),
)
"""One row with the newest entry. Whoever adds an entry locks it."""


_HEAD = sa.select(audit_head.c.number, audit_head.c.digest)
_TAKE_HEAD = _HEAD.with_for_update()
_MOVE_HEAD = sa.update(audit_head).values(number=sa.bindparam("to"), digest=sa.bindparam("as_of"))
_ADD = sa.insert(audit).inline()
_LIST = (
    sa.select(audit).where(audit.c.number > sa.bindparam("after")).order_by(audit.c.number).limit(sa.bindparam("most"))
)


@cache
def _search(*, has_kind: bool, has_words: bool, has_end: bool) -> sa.Select[Any]:
    found = sa.select(audit).order_by(audit.c.number.desc()).limit(sa.bindparam("most"))
    if has_kind:
        found = found.where(audit.c.kind == sa.bindparam("kind"))
    if has_words:
        words = sa.bindparam("words", type_=sa.Text())
        found = found.where(
            sa.or_(*(sa.func.lower(column).like(words, escape="/") for column in (audit.c.actor, audit.c.subject)))
        )
    return found.where(audit.c.number < sa.bindparam("before")) if has_end else found


@cache
def _know_head(insert: InsertInto) -> sa.Executable:
    """Creates the row of the head, since only an existing row can be locked."""
    first = AuditHead()
    return insert(audit_head).values(id=1, number=first.number, digest=first.digest).on_conflict_do_nothing().inline()


class SqlAudit(SqlRepository):
    """Implements `denizen.ports.store.AuditRepository`."""

    async def add(self, events: Sequence[AuditEvent]) -> AuditHead:
        know = _know_head(self._dialect.insert)

        def job(connection: sa.Connection) -> AuditHead:
            connection.execute(know)
            head = AuditHead(*connection.execute(_TAKE_HEAD).one())
            rows: list[dict[str, Any]] = []
            for event in events:
                entry = append_to_chain(head, event)
                head = chain_head(entry)
                rows.append(
                    {
                        "number": entry.number,
                        "kind": event.kind,
                        "at": event.at,
                        "actor": event.actor,
                        "subject": event.subject,
                        "details": json.dumps(event.details, sort_keys=True),
                        "previous": entry.previous,
                        "digest": entry.digest,
                    }
                )
            if rows:
                connection.execute(_ADD, rows)
                connection.execute(_MOVE_HEAD, {"to": head.number, "as_of": head.digest})
            return head

        return await self._transaction.write(job)

    async def head(self) -> AuditHead:
        found = await self._transaction.read(lambda connection: connection.execute(_HEAD).one_or_none())
        return AuditHead(*found) if found is not None else AuditHead()

    async def list_entries(self, *, after: int = 0, limit: int = 1000) -> Sequence[AuditEntry]:
        given = {"after": after, "most": limit}
        return await self._list(_read_entry, _LIST, given)

    async def search(self, wanted: AuditSearch) -> Sequence[AuditEntry]:
        statement = _search(has_kind=wanted.kind is not None, has_words=bool(wanted.words), has_end=wanted.before > 0)
        words = re.sub(r"([%_/])", r"/\1", wanted.words.lower())
        given = {"most": max(wanted.limit, 0), "kind": wanted.kind, "words": f"%{words}%", "before": wanted.before}
        return await self._list(_read_entry, statement, given)


def _read_entry(row: Row) -> AuditEntry:
    event = AuditEvent(row.kind, row.at, row.actor, row.subject, json.loads(row.details))
    return AuditEntry(row.number, event, row.previous, row.digest)
