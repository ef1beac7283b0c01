"""Named sets of an assistant's settings in the memory store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from denizen.domain.assistant import SettingsSet
from denizen.domain.ids import AgentName
from denizen.testing.memory_unit import Unit, in_utc


class MemoryAgentSettings:
    """`denizen.ports.store.AgentSettingsRepository`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def put(self, row: SettingsSet) -> None:
        self._unit.check_writes()
        rows = self._unit.tables.agent_settings
        active = await self.find_active(row.agent)
        if row.is_active and active is not None:
            self._unit.put(rows, (active.agent, active.name), replace(active, is_active=False))
        known = rows.get((row.agent, row.name))
        created_at = in_utc(row.created_at) if known is None else known.created_at
        kept = replace(row, created_at=created_at, updated_at=in_utc(row.updated_at))
        self._unit.put(rows, (row.agent, row.name), kept)

    async def list_sets(self, agent: AgentName) -> Sequence[SettingsSet]:
        rows = self._unit.tables.agent_settings
        return [rows[key] for key in sorted(rows) if key[0] == agent]

    async def find_active(self, agent: AgentName) -> SettingsSet | None:
        return next((each for each in await self.list_sets(agent) if each.is_active), None)

    async def remove(self, agent: AgentName, name: str) -> bool:
        self._unit.check_writes()
        return self._unit.remove(self._unit.tables.agent_settings, (agent, name))
