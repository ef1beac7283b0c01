"""Vectors of texts. How they are compared is each database's own (`nearness`)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import escape
from denizen.adapters.store.dialect import Dialect
from denizen.adapters.store.nearness import IN, OF_MODEL, Wanted, scan
from denizen.adapters.store.tables.memory import vectors
from denizen.adapters.store.unit import Unit
from denizen.domain.vector import Near, signs_of
from denizen.ports.memory import Vector

_REMOVE_OTHERS = sa.delete(vectors).where(IN, ~OF_MODEL)
_REMOVE = sa.delete(vectors).where(
    *(vectors.c[name] == sa.bindparam(f"old_{name}", type_=vectors.c[name].type) for name in ("collection", "key")),
    vectors.c.model == sa.bindparam("old_model", type_=vectors.c.model.type),
)
_ADD = sa.insert(vectors)


@cache
def _on_shelves(dialect: Dialect) -> sa.Select[str, bytes]:
    return sa.select(vectors.c.key, vectors.c.data).where(IN, OF_MODEL, dialect.among(vectors.c.shelf, "shelves"))


class SqlVectors:
    """`denizen.ports.memory.Vectors`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def put(self, vectors: Sequence[Vector]) -> None:
        if not vectors:
            return
        # Of two with the same key the last one counts. In one order, so that two writers wait for each other one way.
        latest = {(each.collection, each.key, each.model): each for each in vectors}
        rows = [_row(latest[key]) for key in sorted(latest)]
        dialect = self._unit.dialect

        def job(connection: sa.Connection) -> None:
            # Removed and added, not changed: what is new has a new position.
            old = [{f"old_{name}": row[name] for name in ("collection", "key", "model")} for row in rows]
            connection.execute(_REMOVE, old)
            connection.execute(_ADD, rows)
            dialect.nearness.learn(connection, rows)

        await self._unit.write(job)

    async def find_nearest(
        self, collection: str, shelves: Collection[str], model: str, query: bytes, *, limit: int
    ) -> Sequence[Near]:
        if not shelves or limit < 1:
            return []
        dialect, writes = self._unit.dialect, self._unit.writes
        chosen = frozenset(map(escape, shelves))
        bounds = {"within": collection, "of_model": model, "shelves": dialect.list_of(sorted(chosen))}
        wanted = Wanted(collection, model, chosen, query, limit, bounds)

        def job(connection: sa.Connection) -> list[Near]:
            # What this unit has written itself may never be committed.
            found = None if writes else dialect.nearness.find(connection, wanted)
            return scan(connection, _on_shelves(dialect), wanted) if found is None else found

        return await self._unit.read(job)

    async def remove_other_models(self, collection: str, model: str) -> int:
        bounds = {"within": collection, "of_model": model}
        return await self._unit.write(lambda connection: connection.execute(_REMOVE_OTHERS, bounds).rowcount)


def _row(vector: Vector) -> dict[str, Any]:
    return {name: getattr(vector, name) for name in Vector.__slots__} | {"bits": signs_of(vector.data)}
