"""Settings chosen while Denizen runs: named sets for agents, choices of users, and generations of the configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial

import sqlalchemy as sa

from denizen.adapters.store.columns import JsonText, metadata, text_keys, texts, times
from denizen.adapters.store.repository import Row, SqlRepository, insert_row, read_record, upsert, write_record
from denizen.domain.agent_settings import SettingsSet, overrides_from_json, overrides_to_json
from denizen.domain.ids import AgentName
from denizen.domain.json import Json
from denizen.ports.store import ConfigGeneration

config_generations = sa.Table(
    "config_generations",
    metadata,
    sa.Column("number", sa.BigInteger(), primary_key=True, autoincrement=False),
    sa.Column("digest", sa.Text(), nullable=False),
    *texts("source"),
    *times("accepted_at"),
)

user_settings = sa.Table(
    "user_settings",
    metadata,
    *text_keys("principal", "key"),
    sa.Column("value", JsonText(), nullable=False),
    *times("updated_at"),
)

agent_settings = sa.Table(
    "agent_settings",
    metadata,
    *text_keys("agent", "name"),
    sa.Column("chosen", JsonText(), nullable=False),
    sa.Column("is_active", sa.Boolean(), nullable=False),
    *times("created_at", "updated_at"),
)

sa.Index(
    "uq_agent_settings_active",
    agent_settings.c.agent,
    unique=True,
    sqlite_where=agent_settings.c.is_active,
    postgresql_where=agent_settings.c.is_active,
)


_BY_AGENT = agent_settings.c.agent == sa.bindparam("whose")
_ALL_SETS = sa.select(agent_settings).where(_BY_AGENT).order_by(agent_settings.c.name)
_ACTIVE_SET = sa.select(agent_settings).where(_BY_AGENT, agent_settings.c.is_active)
_DEACTIVATE = sa.update(agent_settings).where(_BY_AGENT, agent_settings.c.is_active).values(is_active=False)
_REMOVE_SET = sa.delete(agent_settings).where(_BY_AGENT, agent_settings.c.name == sa.bindparam("which"))


class SqlAgentSettings(SqlRepository):
    """Implements `denizen.ports.store.AgentSettingsRepository`."""

    async def put(self, row: SettingsSet) -> None:
        put = upsert(self._dialect.insert, agent_settings, "chosen", "is_active", "updated_at")
        values = write_record(row, "chosen") | {"chosen": overrides_to_json(row.chosen)}

        def job(connection: sa.Connection) -> None:
            if row.is_active:
                connection.execute(_DEACTIVATE, {"whose": row.agent})
            connection.execute(put, values)

        await self._transaction.write(job)

    async def list_sets(self, agent: AgentName) -> Sequence[SettingsSet]:
        # The database sorts escaped texts.
        return sorted(await self._list(_read_set, _ALL_SETS, {"whose": agent}), key=lambda each: each.name)

    async def find_active(self, agent: AgentName) -> SettingsSet | None:
        return await self._find(_read_set, _ACTIVE_SET, {"whose": agent})

    async def remove(self, agent: AgentName, name: str) -> bool:
        return await self._change(_REMOVE_SET, {"whose": agent, "which": name}) > 0


def _read_set(row: Row) -> SettingsSet:
    return read_record(SettingsSet, row, chosen=overrides_from_json(row.chosen))


_USER_SETTINGS = (
    sa.select(user_settings.c.key, user_settings.c.value)
    .where(user_settings.c.principal == sa.bindparam("principal"))
    .order_by(user_settings.c.key)
)
_VALUES = (
    sa.select(user_settings.c.principal, user_settings.c.value)
    .where(user_settings.c.key == sa.bindparam("key"))
    .order_by(user_settings.c.principal)
)
_REMOVE_SETTING = sa.delete(user_settings).where(
    user_settings.c.principal == sa.bindparam("principal"), user_settings.c.key == sa.bindparam("key")
)


class SqlUserSettings(SqlRepository):
    """Implements `denizen.ports.store.UserSettingsRepository`."""

    async def get(self, principal: str) -> Mapping[str, Json]:
        return await self._transaction.read(
            lambda connection: {
                row.key: row.value for row in connection.execute(_USER_SETTINGS, {"principal": principal})
            }
        )

    async def list_values(self, key: str) -> Mapping[str, Json]:
        return await self._transaction.read(
            lambda connection: {row.principal: row.value for row in connection.execute(_VALUES, {"key": key})}
        )

    async def put(self, principal: str, key: str, value: Json, *, now: datetime) -> None:
        which = {"principal": principal, "key": key}
        put = upsert(self._dialect.insert, user_settings)

        def job(connection: sa.Connection) -> None:
            if value is None:
                connection.execute(_REMOVE_SETTING, which)
            else:
                connection.execute(put, which | {"value": value, "updated_at": now})

        await self._transaction.write(job)


_NEWEST_GENERATIONS = (
    sa.select(config_generations).order_by(config_generations.c.number.desc()).limit(sa.bindparam("limit"))
)
_REWRITE_NEWEST = (
    sa.update(config_generations)
    .where(config_generations.c.number == sa.select(sa.func.max(config_generations.c.number)).scalar_subquery())
    .values(source=config_generations.c.source)
)

_read_generation = partial(read_record, ConfigGeneration)


class SqlGenerations(SqlRepository):
    """Implements `denizen.ports.store.ConfigGenerationRepository`."""

    async def add(self, *, digest: str, source: str, now: datetime) -> ConfigGeneration:
        add = insert_row(self._dialect.insert, config_generations)

        def job(connection: sa.Connection) -> ConfigGeneration:
            while True:  # repeats only when another process has taken the number meanwhile
                last = connection.execute(_NEWEST_GENERATIONS, {"limit": 1}).first()
                if last is not None and last.digest == digest:
                    return _read_generation(last)
                number = 1 if last is None else last.number + 1
                row = {"number": number, "digest": digest, "source": source, "accepted_at": now}
                if connection.execute(add, row).first() is not None:
                    return ConfigGeneration(number, digest, source, now)

        return await self._transaction.write(job)

    async def list_generations(self, *, limit: int = 20) -> Sequence[ConfigGeneration]:
        return await self._list(_read_generation, _NEWEST_GENERATIONS, {"limit": max(limit, 0)})

    async def rewrite_newest(self) -> None:
        await self._transaction.write(lambda connection: connection.execute(_REWRITE_NEWEST))
