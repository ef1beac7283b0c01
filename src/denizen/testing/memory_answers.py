"""What answers cite, and questions that documents did not answer, in the memory store."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from denizen.domain.citation import Citation
from denizen.domain.errors import NotFound
from denizen.domain.gap import Gap
from denizen.domain.ids import TurnId
from denizen.testing.memory_unit import Unit, in_utc


class MemoryCitations:
    """`denizen.ports.answers.CitationRepository`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def add(self, turn_id: TurnId, citations: Sequence[Citation]) -> None:
        self._unit.check_writes()
        if not citations:
            return
        if turn_id not in self._unit.tables.turns:
            raise NotFound("What this belongs to does not exist.", code="store_reference")
        if turn_id not in self._unit.tables.citations:
            self._unit.put(self._unit.tables.citations, turn_id, tuple(citations))

    async def list_for(self, turn_id: TurnId) -> Sequence[Citation]:
        return list(self._unit.tables.citations.get(turn_id, ()))


class MemoryGaps:
    """`denizen.ports.answers.Gaps`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def add(self, gap: Gap) -> bool:
        self._unit.check_writes()
        rows = self._unit.tables.gaps
        if gap.id in rows:
            return False
        self._unit.put(rows, gap.id, replace(gap, created_at=in_utc(gap.created_at)))
        return True

    async def list_gaps(
        self, *, since: datetime | None = None, closed: bool = False, limit: int = 1000
    ) -> Sequence[Gap]:
        rows = [
            gap
            for gap in reversed(list(self._unit.tables.gaps.values()))
            if gap.is_closed == closed and (since is None or gap.created_at >= since)
        ]
        return sorted(rows, key=lambda gap: gap.created_at, reverse=True)[: max(limit, 0)]

    async def close(self, gap_ids: Collection[str]) -> int:
        self._unit.check_writes()
        rows = self._unit.tables.gaps
        chosen = [key for key in gap_ids if key in rows and not rows[key].is_closed]
        for key in chosen:
            self._unit.put(rows, key, replace(rows[key], is_closed=True))
        return len(chosen)

    async def forget_asker(self, asker: str) -> int:
        self._unit.check_writes()
        rows = self._unit.tables.gaps
        chosen = [key for key, gap in rows.items() if gap.asker == asker]
        self._unit.remove(rows, *chosen)
        return len(chosen)
