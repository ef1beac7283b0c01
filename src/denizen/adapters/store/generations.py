"""The accepted states of the configuration, numbered."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.dialect import InsertInto
from denizen.adapters.store.tables.settings import config_generations
from denizen.adapters.store.unit import Unit
from denizen.ports.store import GenerationRow

_NEWEST_GENERATIONS = sa.select(config_generations).order_by(config_generations.c.number.desc()).limit(sa.bindparam("limit"))


@cache
def _add_generation(insert: InsertInto) -> sa.Executable:
    return (
        insert(config_generations)
        .on_conflict_do_nothing(index_elements=[config_generations.c.number])
        .returning(config_generations.c.number)
    )


class SqlGenerations:
    """`denizen.ports.store.Generations`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def add(self, *, digest: str, source: str, now: datetime) -> GenerationRow:
        add = _add_generation(self._unit.dialect.insert)

        def job(connection: sa.Connection) -> GenerationRow:
            while True:  # again only when another process has taken the number meanwhile
                last = connection.execute(_NEWEST_GENERATIONS, {"limit": 1}).first()
                if last is not None and last.digest == digest:
                    return _generation(last)
                number = 1 if last is None else last.number + 1
                row = {"number": number, "digest": digest, "source": source, "accepted_at": now}
                if connection.execute(add, row).scalar() is not None:
                    return GenerationRow(number, digest, source, now)

        return await self._unit.write(job)

    async def list_generations(self, *, limit: int = 20) -> Sequence[GenerationRow]:
        return await self._unit.read(
            lambda connection: [_generation(row) for row in connection.execute(_NEWEST_GENERATIONS, {"limit": max(limit, 0)})]
        )


def _generation(row: sa.Row[Any]) -> GenerationRow:
    return GenerationRow(row.number, row.digest, row.source, row.accepted_at)
