"""The audit log, in the memory store."""

from __future__ import annotations

from collections.abc import Sequence

from denizen.domain.audit import AuditEntry, AuditEvent, AuditHead, chain, head_of
from denizen.testing.memory_unit import Unit, in_utc, through_json


class MemoryAudit:
    """`denizen.ports.store.AuditRepository`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def add(self, events: Sequence[AuditEvent]) -> AuditHead:
        self._unit.check_writes()
        rows = self._unit.tables.audit
        head = await self.head()
        for event in events:
            entry = chain(head, _stored(event))
            head = head_of(entry)
            self._unit.put(rows, entry.number, entry)
        return head

    async def head(self) -> AuditHead:
        rows = self._unit.tables.audit
        return head_of(rows[len(rows)]) if rows else AuditHead()

    async def list_entries(self, *, after: int = 0, limit: int = 1000) -> Sequence[AuditEntry]:
        rows = self._unit.tables.audit
        return [rows[number] for number in range(after + 1, min(after + limit, len(rows)) + 1)]


def _stored(event: AuditEvent) -> AuditEvent:
    return AuditEvent(event.kind, in_utc(event.at), event.actor, event.subject, through_json(dict(event.details)))
