"""Sums of what the recorded steps used, and the requests beside them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.tables.statistics import side_requests
from denizen.adapters.store.tables.turns import steps
from denizen.adapters.store.unit import Unit
from denizen.adapters.store.usage import usage_of
from denizen.ports.store import UsageRow

_LEDGER_KEYS = ("day", "agent", "model")
_SUMMED = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost_usd", "requests")


@cache
def _sum_usage(*, of_agent: bool, of_principal: bool) -> sa.Select[Any]:
    parts = [_sum_records(table, of_agent=of_agent, of_principal=of_principal) for table in (steps, side_requests)]
    cells = sa.union_all(*parts).subquery("cells").c
    keys = [cells[name] for name in _LEDGER_KEYS]
    sums = [sa.func.sum(cells[name], type_=cells[name].type).label(name) for name in _SUMMED]
    return sa.select(*keys, *sums).group_by(*keys).order_by(cells.day.desc(), cells.agent, cells.model)


def _sum_records(table: sa.Table, *, of_agent: bool, of_principal: bool) -> sa.Select[Any]:
    """Summed up already, so that the database need not hold the records of a long time."""
    keys = [table.c[name] for name in _LEDGER_KEYS]
    sums = [sa.func.sum(table.c[name], type_=table.c[name].type).label(name) for name in _SUMMED]
    statement = sa.select(*keys, *sums).where(table.c.created_at >= sa.bindparam("since"))
    if of_agent:
        statement = statement.where(table.c.agent == sa.bindparam("whose"))
    if of_principal:
        statement = statement.where(table.c.principal == sa.bindparam("asker"))
    return statement.group_by(*keys)


class SqlLedger:
    """`denizen.ports.store.Ledger`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def list_usage(self, *, since: datetime, agent: str = "", principal: str = "") -> Sequence[UsageRow]:
        statement = _sum_usage(of_agent=agent != "", of_principal=principal != "")
        wanted = {"since": since} | ({"whose": agent} if agent else {}) | ({"asker": principal} if principal else {})

        def job(connection: sa.Connection) -> list[UsageRow]:
            rows = connection.execute(statement, wanted)
            return [UsageRow(row.day, row.agent, row.model, usage_of(row)) for row in rows]

        return await self._unit.read(job)
