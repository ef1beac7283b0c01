"""The audit log: entries are chained behind the newest one, by one unit of work at a time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, UtcTime, metadata
from denizen.adapters.store.dialect import InsertInto
from denizen.adapters.store.transaction import Transaction
from denizen.domain.audit import AuditEntry, AuditEvent, AuditHead, AuditKind, append_to_chain, chain_head

audit = sa.Table(
    "audit",
    metadata,
    sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True, autoincrement=False),
    sa.Column("kind", sa.Text(), nullable=False),
    sa.Column("at", UtcTime(), nullable=False),
    sa.Column("actor", EscapedText(), nullable=False),
    sa.Column("subject", EscapedText(), nullable=False),
    sa.Column("details", EscapedText(), nullable=False),
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
def _know_head(insert: InsertInto) -> sa.Executable:
    """Creates the row of the head, since only an existing row can be locked."""
    first = AuditHead()
    return insert(audit_head).values(id=1, number=first.number, digest=first.digest).on_conflict_do_nothing().inline()


class SqlAudit:
    """Implements `denizen.ports.store.AuditRepository`."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    async def add(self, events: Sequence[AuditEvent]) -> AuditHead:
        know = _know_head(self._transaction.dialect.insert)

        def job(connection: sa.Connection) -> AuditHead:
            connection.execute(know)
            head = AuditHead(*connection.execute(_TAKE_HEAD).one())
            rows: list[dict[str, Any]] = []
            for event in events:
                entry = append_to_chain(head, event)
                head = chain_head(entry)
                rows.append(_row(entry))
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
        rows = await self._transaction.read(lambda connection: connection.execute(_LIST, given).all())
        return [_entry(row) for row in rows]


def _row(entry: AuditEntry) -> dict[str, Any]:
    event = entry.event
    return {
        "number": entry.number,
        "kind": event.kind.value,
        "at": event.at,
        "actor": event.actor,
        "subject": event.subject,
        "details": json.dumps(event.details, sort_keys=True),
        "previous": entry.previous,
        "digest": entry.digest,
    }


def _entry(row: sa.Row[Any]) -> AuditEntry:
    event = AuditEvent(AuditKind(row.kind), row.at, row.actor, row.subject, json.loads(row.details))
    return AuditEntry(row.number, event, row.previous, row.digest)
