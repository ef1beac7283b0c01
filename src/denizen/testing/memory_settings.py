"""Generations of the configuration and settings of users in the memory store."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime

from denizen.domain.json import Json
from denizen.ports.store import ConfigGeneration
from denizen.testing.memory_unit import Unit, in_utc


class MemoryGenerations:
    """`denizen.ports.store.ConfigGenerationRepository`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def add(self, *, digest: str, source: str, now: datetime) -> ConfigGeneration:
        self._unit.check_writes()
        rows = self._unit.tables.generations
        if not rows or rows[-1].digest != digest:
            self._unit.append(rows, ConfigGeneration(len(rows) + 1, digest, source, in_utc(now)))
        return rows[-1]

    async def list_generations(self, *, limit: int = 20) -> Sequence[ConfigGeneration]:
        return self._unit.tables.generations[::-1][: max(limit, 0)]


class MemoryUserSettings:
    """`denizen.ports.store.UserSettingsRepository`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def get(self, principal: str) -> Mapping[str, Json]:
        rows = sorted(self._unit.tables.settings.items())
        return {key: json.loads(text) for (owner, key), text in rows if owner == principal}

    async def put(self, principal: str, key: str, value: Json, *, now: datetime) -> None:
        del now  # a database keeps it for its operator
        self._unit.check_writes()
        if value is None:
            self._unit.remove(self._unit.tables.settings, (principal, key))
        else:
            self._unit.put(self._unit.tables.settings, (principal, key), json.dumps(value, allow_nan=False))
