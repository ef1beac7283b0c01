"""Summaries of stretches of sessions in the memory store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from denizen.domain.ids import SessionId
from denizen.domain.message import Message
from denizen.domain.summary import Summary
from denizen.testing.memory_unit import Unit, in_utc, refer


class MemorySummaries:
    """`denizen.ports.store.Summaries`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def list_summaries(self, session_id: SessionId) -> Sequence[Summary]:
        return list(self._unit.tables.summaries.get(session_id, ()))

    async def put(self, summary: Summary, *, known: Sequence[Summary]) -> bool:
        self._unit.check_writes()
        tables = self._unit.tables
        refer(tables.sessions, summary.session_id)
        there = tables.summaries.get(summary.session_id, [])
        if there != list(known):
            return False
        kept = [each for each in there if each.first < summary.first or each.last > summary.last]
        rows = sorted([*kept, replace(summary, created_at=in_utc(summary.created_at))], key=lambda each: each.first)
        self._unit.put(tables.summaries, summary.session_id, rows)
        return True


def drop_summaries(unit: Unit, which: Callable[[Message], bool]) -> None:
    """Those with one of these messages in their stretch."""
    tables = unit.tables
    for session_id, rows in list(tables.summaries.items()):
        gone = [message.sequence for message in tables.tails.get(session_id, ()) if which(message)]
        kept = [row for row in rows if not any(row.first <= sequence <= row.last for sequence in gone)]
        unit.put(tables.summaries, session_id, kept)
