"""Sources of knowledge in the memory store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from denizen.domain.source import Source, SourceState, SyncRun
from denizen.testing.memory_unit import Unit, in_utc


class MemorySources:
    """`denizen.ports.source.SourceRepository`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def put(self, source: Source) -> None:
        self._unit.check_writes()
        rows = self._unit.tables.sources
        known = rows.get(source.id)
        created_at = in_utc(source.created_at) if known is None else known.created_at
        self._unit.put(rows, source.id, replace(source, created_at=created_at, updated_at=in_utc(source.updated_at)))

    async def find(self, source_id: str) -> Source | None:
        return self._unit.tables.sources.get(source_id)

    async def list_sources(self) -> Sequence[Source]:
        rows = self._unit.tables.sources
        return [rows[key] for key in sorted(rows)]

    async def remove(self, source_id: str) -> bool:
        self._unit.check_writes()
        self._unit.remove(self._unit.tables.source_states, source_id)
        return self._unit.remove(self._unit.tables.sources, source_id)

    async def put_state(self, state: SourceState) -> None:
        self._unit.check_writes()
        if state.source_id in self._unit.tables.sources:
            stored = replace(state, synced_at=_in_utc(state.synced_at), tried_at=_in_utc(state.tried_at))
            self._unit.put(self._unit.tables.source_states, state.source_id, stored)

    async def list_states(self) -> Sequence[SourceState]:
        rows = self._unit.tables.source_states
        return [rows[key] for key in sorted(rows)]

    async def put_sync(self, run: SyncRun) -> None:
        self._unit.check_writes()
        rows = self._unit.tables.syncs
        known = rows.get(run.id)
        started_at = in_utc(run.started_at) if known is None else known.started_at
        self._unit.put(rows, run.id, replace(run, started_at=started_at, ended_at=_in_utc(run.ended_at)))

    async def find_sync(self, run_id: str) -> SyncRun | None:
        return self._unit.tables.syncs.get(run_id)

    async def list_syncs(self, *, limit: int = 20) -> Sequence[SyncRun]:
        return list(self._unit.tables.syncs.values())[::-1][: max(limit, 0)]


def _in_utc(time: datetime | None) -> datetime | None:
    return None if time is None else in_utc(time)
