"""Vectors of texts, looked through one by one.

The same in both databases, since neither can be relied on to compare vectors: a shelf is read and compared here. That
is 20 ms for a thousand of 384 dimensions.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, escape
from denizen.adapters.store.dialect import Dialect, InsertInto
from denizen.adapters.store.tables import vectors
from denizen.adapters.store.unit import Unit
from denizen.domain.vector import Near, find_nearest
from denizen.ports.memory import Vector

_IN = vectors.c.collection == sa.bindparam("within")
_OF_MODEL = sa.bindparam("of_model", type_=EscapedText())
_REMOVE_OTHERS = sa.delete(vectors).where(_IN, vectors.c.model != _OF_MODEL)


@cache
def _put(insert: InsertInto) -> sa.Executable:
    statement = insert(vectors)
    changed = {"shelf": statement.excluded.shelf, "data": statement.excluded.data}
    key = (vectors.c.collection, vectors.c.key, vectors.c.model)
    return statement.on_conflict_do_update(index_elements=key, set_=changed).inline()


@cache
def _on_shelves(dialect: Dialect) -> sa.Select[str, bytes]:
    return sa.select(vectors.c.key, vectors.c.data).where(
        _IN, vectors.c.model == _OF_MODEL, dialect.among(vectors.c.shelf, "shelves")
    )


class SqlVectors:
    """`denizen.ports.memory.Vectors`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def put(self, vectors: Sequence[Vector]) -> None:
        if not vectors:
            return
        put = _put(self._unit.dialect.insert)
        rows = [{name: getattr(each, name) for name in Vector.__slots__} for each in vectors]
        await self._unit.write(lambda connection: connection.execute(put, rows))

    async def find_nearest(
        self, collection: str, shelves: Collection[str], model: str, query: bytes, *, limit: int
    ) -> Sequence[Near]:
        dialect = self._unit.dialect
        chosen = dialect.list_of([escape(shelf) for shelf in sorted(set(shelves))])
        bounds = {"within": collection, "of_model": model, "shelves": chosen}

        def job(connection: sa.Connection) -> list[Near]:
            rows = connection.execute(_on_shelves(dialect), bounds)
            return find_nearest(query, ((key, data) for key, data in rows), limit=limit)

        return await self._unit.read(job)

    async def remove_other_models(self, collection: str, model: str) -> int:
        bounds = {"within": collection, "of_model": model}
        return await self._unit.write(lambda connection: connection.execute(_REMOVE_OTHERS, bounds).rowcount)
