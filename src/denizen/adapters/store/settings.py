"""Settings chosen while Denizen runs: named sets for agents, choices of users, and generations of the configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, JsonText, UtcTime, metadata
from denizen.adapters.store.dialect import InsertInto
from denizen.adapters.store.transaction import Transaction
from denizen.domain.agent_settings import SettingsSet, overrides_from_json, overrides_to_json
from denizen.domain.ids import AgentName
from denizen.domain.json import Json
from denizen.ports.store import ConfigGeneration

config_generations = sa.Table(
    "config_generations",
    metadata,
    sa.Column("number", sa.BigInteger(), primary_key=True, autoincrement=False),
    sa.Column("digest", sa.Text(), nullable=False),
    sa.Column("source", EscapedText(), nullable=False),
    sa.Column("accepted_at", UtcTime(), nullable=False),
)

user_settings = sa.Table(
    "user_settings",
    metadata,
    sa.Column("principal", EscapedText(), primary_key=True),
    sa.Column("key", EscapedText(), primary_key=True),
    sa.Column("value", JsonText(), nullable=False),
    sa.Column("updated_at", UtcTime(), nullable=False),
)

agent_settings = sa.Table(
    "agent_settings",
    metadata,
    sa.Column("agent", EscapedText(), primary_key=True),
    sa.Column("name", EscapedText(), primary_key=True),
    sa.Column("chosen", JsonText(), nullable=False),
    sa.Column("is_active", sa.Boolean(), nullable=False),
    sa.Column("created_at", UtcTime(), nullable=False),
    sa.Column("updated_at", UtcTime(), nullable=False),
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


@cache
def _put_set(insert: InsertInto) -> sa.Executable:
    statement = insert(agent_settings)
    changed = {name: statement.excluded[name] for name in ("chosen", "is_active", "updated_at")}
    key = (agent_settings.c.agent, agent_settings.c.name)
    return statement.on_conflict_do_update(index_elements=key, set_=changed).inline()


class SqlAgentSettings:
    """Implements `denizen.ports.store.AgentSettingsRepository`."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    async def put(self, row: SettingsSet) -> None:
        put = _put_set(self._transaction.dialect.insert)
        values = {
            "agent": row.agent,
            "name": row.name,
            "chosen": overrides_to_json(row.chosen),
            "is_active": row.is_active,
            "created_at": row.created_at,
            "updated_at": row.updated_at,
        }

        def job(connection: sa.Connection) -> None:
            if row.is_active:
                connection.execute(_DEACTIVATE, {"whose": row.agent})
            connection.execute(put, values)

        await self._transaction.write(job)

    async def list_sets(self, agent: AgentName) -> Sequence[SettingsSet]:
        rows = await self._transaction.read(lambda connection: connection.execute(_ALL_SETS, {"whose": agent}).all())
        return sorted(map(_settings_set, rows), key=lambda each: each.name)

    async def find_active(self, agent: AgentName) -> SettingsSet | None:
        row = await self._transaction.read(lambda connection: connection.execute(_ACTIVE_SET, {"whose": agent}).first())
        return None if row is None else _settings_set(row)

    async def remove(self, agent: AgentName, name: str) -> bool:
        which = {"whose": agent, "which": name}
        return bool(await self._transaction.write(lambda connection: connection.execute(_REMOVE_SET, which).rowcount))


def _settings_set(row: sa.Row[Any]) -> SettingsSet:
    return SettingsSet(
        agent=AgentName(row.agent),
        name=row.name,
        created_at=row.created_at,
        updated_at=row.updated_at,
        chosen=overrides_from_json(row.chosen),
        is_active=row.is_active,
    )


_USER_KEY = (user_settings.c.principal, user_settings.c.key)

_USER_SETTINGS = (
    sa.select(user_settings.c.key, user_settings.c.value)
    .where(user_settings.c.principal == sa.bindparam("principal"))
    .order_by(user_settings.c.key)
)
_REMOVE_SETTING = sa.delete(user_settings).where(
    user_settings.c.principal == sa.bindparam("principal"), user_settings.c.key == sa.bindparam("key")
)


@cache
def _put_setting(insert: InsertInto) -> sa.Executable:
    statement = insert(user_settings)
    changed = {"value": statement.excluded.value, "updated_at": statement.excluded.updated_at}
    return statement.on_conflict_do_update(index_elements=_USER_KEY, set_=changed).inline()


class SqlUserSettings:
    """Implements `denizen.ports.store.UserSettingsRepository`."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    async def get(self, principal: str) -> Mapping[str, Json]:
        return await self._transaction.read(
            lambda connection: {
                row.key: row.value for row in connection.execute(_USER_SETTINGS, {"principal": principal})
            }
        )

    async def put(self, principal: str, key: str, value: Json, *, now: datetime) -> None:
        which = {"principal": principal, "key": key}
        put = _put_setting(self._transaction.dialect.insert)

        def job(connection: sa.Connection) -> None:
            if value is None:
                connection.execute(_REMOVE_SETTING, which)
            else:
                connection.execute(put, which | {"value": value, "updated_at": now})

        await self._transaction.write(job)


_NEWEST_GENERATIONS = (
    sa.select(config_generations).order_by(config_generations.c.number.desc()).limit(sa.bindparam("limit"))
)


@cache
def _add_generation(insert: InsertInto) -> sa.Executable:
    return (
        insert(config_generations)
        .on_conflict_do_nothing(index_elements=[config_generations.c.number])
        .returning(config_generations.c.number)
    )


class SqlGenerations:
    """Implements `denizen.ports.store.ConfigGenerationRepository`."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    async def add(self, *, digest: str, source: str, now: datetime) -> ConfigGeneration:
        add = _add_generation(self._transaction.dialect.insert)

        def job(connection: sa.Connection) -> ConfigGeneration:
            while True:  # repeats only when another process has taken the number meanwhile
                last = connection.execute(_NEWEST_GENERATIONS, {"limit": 1}).first()
                if last is not None and last.digest == digest:
                    return _generation(last)
                number = 1 if last is None else last.number + 1
                row = {"number": number, "digest": digest, "source": source, "accepted_at": now}
                if connection.execute(add, row).scalar() is not None:
                    return ConfigGeneration(number, digest, source, now)

        return await self._transaction.write(job)

    async def list_generations(self, *, limit: int = 20) -> Sequence[ConfigGeneration]:
        return await self._transaction.read(
            lambda connection: [
                _generation(row) for row in connection.execute(_NEWEST_GENERATIONS, {"limit": max(limit, 0)})
            ]
        )


def _generation(row: sa.Row[Any]) -> ConfigGeneration:
    return ConfigGeneration(row.number, row.digest, row.source, row.accepted_at)
