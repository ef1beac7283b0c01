"""Named sets of an assistant's settings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.dialect import InsertInto
from denizen.adapters.store.tables.settings import agent_settings
from denizen.adapters.store.unit import Unit
from denizen.domain.assistant import SettingsSet, chosen_from_json, chosen_to_json
from denizen.domain.ids import AgentName

_BY_AGENT = agent_settings.c.agent == sa.bindparam("whose")
_ALL_SETS = sa.select(agent_settings).where(_BY_AGENT).order_by(agent_settings.c.name)
_ACTIVE_SET = sa.select(agent_settings).where(_BY_AGENT, agent_settings.c.is_active)
_DEACTIVATE = sa.update(agent_settings).where(_BY_AGENT, agent_settings.c.is_active).values(is_active=False)
_REMOVE_SET = sa.delete(agent_settings).where(_BY_AGENT, agent_settings.c.name == sa.bindparam("which"))


@cache
def _put_set(insert: InsertInto) -> sa.Executable:
    statement = insert(agent_settings)
    changed = {name: statement.excluded[name] for name in ("chosen", "is_active", "updated_at")}
    key = (agent_settings.c.agent, agent_settings.c.name)
    return statement.on_conflict_do_update(index_elements=key, set_=changed).inline()


class SqlAgentSettings:
    """`denizen.ports.assistant.AgentSettings`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def put(self, row: SettingsSet) -> None:
        put = _put_set(self._unit.dialect.insert)
        values = {
            "agent": row.agent, "name": row.name, "chosen": chosen_to_json(row.chosen), "is_active": row.is_active,
            "created_at": row.created_at, "updated_at": row.updated_at,
        }  # fmt: skip

        def job(connection: sa.Connection) -> None:
            if row.is_active:
                connection.execute(_DEACTIVATE, {"whose": row.agent})
            connection.execute(put, values)

        await self._unit.write(job)

    async def list_sets(self, agent: AgentName) -> Sequence[SettingsSet]:
        rows = await self._unit.read(lambda connection: connection.execute(_ALL_SETS, {"whose": agent}).all())
        return sorted(map(_settings_set, rows), key=lambda each: each.name)

    async def find_active(self, agent: AgentName) -> SettingsSet | None:
        row = await self._unit.read(lambda connection: connection.execute(_ACTIVE_SET, {"whose": agent}).first())
        return None if row is None else _settings_set(row)

    async def remove(self, agent: AgentName, name: str) -> bool:
        which = {"whose": agent, "which": name}
        return bool(await self._unit.write(lambda connection: connection.execute(_REMOVE_SET, which).rowcount))


def _settings_set(row: sa.Row[Any]) -> SettingsSet:
    return SettingsSet(
        AgentName(row.agent), row.name, row.created_at, row.updated_at, chosen_from_json(row.chosen), row.is_active
    )
