"""Sums of what the recorded steps used."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.tables import steps
from denizen.adapters.store.unit import Unit
from denizen.adapters.store.usage import usage_of
from denizen.ports.store import UsageRow

_KEYS = (steps.c.day, steps.c.agent, steps.c.model)
_SUMS = [
    sa.func.sum(column, type_=column.type).label(column.name)
    for column in (
        steps.c.input_tokens,
        steps.c.output_tokens,
        steps.c.cache_read_tokens,
        steps.c.cache_write_tokens,
        steps.c.cost_usd,
        steps.c.requests,
    )
]


@cache
def _list(*, of_agent: bool, of_principal: bool) -> sa.Select[Any]:
    statement = sa.select(*_KEYS, *_SUMS).where(steps.c.created_at >= sa.bindparam("since"))
    if of_agent:
        statement = statement.where(steps.c.agent == sa.bindparam("whose"))
    if of_principal:
        statement = statement.where(steps.c.principal == sa.bindparam("asker"))
    return statement.group_by(*_KEYS).order_by(steps.c.day.desc(), steps.c.agent, steps.c.model)


class SqlLedger:
    """`denizen.ports.store.Ledger`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def list_usage(self, *, since: datetime, agent: str = "", principal: str = "") -> Sequence[UsageRow]:
        statement = _list(of_agent=agent != "", of_principal=principal != "")
        wanted = {"since": since} | ({"whose": agent} if agent else {}) | ({"asker": principal} if principal else {})

        def job(connection: sa.Connection) -> list[UsageRow]:
            rows = connection.execute(statement, wanted)
            return [UsageRow(row.day, row.agent, row.model, usage_of(row)) for row in rows]

        return await self._unit.read(job)
