"""The vectors of texts, and how far collections are indexed. Each database has its own `VectorIndex`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, escape, metadata, position_column, texts
from denizen.adapters.store.dialect import SqlDialect, VectorQuery
from denizen.adapters.store.repository import SqlRepository, write_record
from denizen.domain.vector import VectorMatch, find_nearest, sign_bits
from denizen.ports.memory import StoredVector

vectors = sa.Table(
    "vectors",
    metadata,
    position_column(),
    sa.Column("collection", sa.Text(), nullable=False),
    *texts("key", "model", "namespace"),
    sa.Column("bits", sa.LargeBinary(), nullable=False),
    sa.Column("data", sa.LargeBinary(), nullable=False),
    sa.UniqueConstraint("collection", "key", "model"),
    sa.Index("ix_vectors_collection_model_position", "collection", "model", "position"),
    sa.Index("ix_vectors_collection_namespace", "collection", "namespace"),
    sqlite_autoincrement=True,
)
"""A position is never used twice, so that an index in memory finds new rows by reading on (`sqlite_vectors`).

`bits` are the signs of `data`. Where Postgres has pgvector, there is also a column `embedding` (`postgres_vectors`).
"""


index_progress = sa.Table(
    "index_progress",
    metadata,
    sa.Column("collection", sa.Text(), primary_key=True),
    sa.Column("state", sa.Text(), nullable=False),
)

IN_COLLECTION = vectors.c.collection == sa.bindparam("within")
OF_MODEL = vectors.c.model == sa.bindparam("of_model", type_=EscapedText())


def scan_vectors(connection: sa.Connection, rows: sa.Select[str, bytes], wanted: VectorQuery) -> list[VectorMatch]:
    """Compares all vectors of `rows` here: 20 ms for a thousand vectors of 384 dimensions."""
    found = connection.execute(rows, wanted.bounds)
    return find_nearest(wanted.query, ((key, data) for key, data in found), limit=wanted.limit)


_REMOVE_OTHERS = sa.delete(vectors).where(IN_COLLECTION, ~OF_MODEL)
_REMOVE = sa.delete(vectors).where(
    *(vectors.c[name] == sa.bindparam(f"old_{name}", type_=vectors.c[name].type) for name in ("collection", "key")),
    vectors.c.model == sa.bindparam("old_model", type_=vectors.c.model.type),
)
_ADD = sa.insert(vectors)
_DATA = sa.select(vectors.c.key, vectors.c.data).where(
    IN_COLLECTION, OF_MODEL, vectors.c.key.in_(sa.bindparam("keys", expanding=True))
)


@cache
def _in_namespaces(dialect: SqlDialect) -> sa.Select[str, bytes]:
    return sa.select(vectors.c.key, vectors.c.data).where(
        IN_COLLECTION, OF_MODEL, dialect.among(vectors.c.namespace, "namespaces")
    )


class SqlVectors(SqlRepository):
    """Implements `denizen.ports.memory.VectorRepository`."""

    async def put(self, vectors: Sequence[StoredVector]) -> None:
        if not vectors:
            return
        # The last of several with the same key wins. Sorted, so that two writers cannot deadlock.
        latest = {(each.collection, each.key, each.model): each for each in vectors}
        rows = [write_record(latest[key]) | {"bits": sign_bits(latest[key].data)} for key in sorted(latest)]

        def job(connection: sa.Connection) -> None:
            # Removed and added instead of updated, because the index in memory finds new rows by their new positions.
            old = [{f"old_{name}": row[name] for name in ("collection", "key", "model")} for row in rows]
            connection.execute(_REMOVE, old)
            connection.execute(_ADD, rows)
            self._dialect.vector_index.learn(connection, rows)

        await self._transaction.write(job)

    async def list_vectors(self, collection: str, keys: Collection[str], model: str) -> Mapping[str, bytes]:
        bounds = {"within": collection, "of_model": model, "keys": sorted(keys)}
        return await self._transaction.read(
            lambda connection: {row.key: row.data for row in connection.execute(_DATA, bounds)}
        )

    async def find_nearest(
        self, collection: str, namespaces: Collection[str], model: str, query: bytes, *, limit: int
    ) -> Sequence[VectorMatch]:
        if not namespaces or limit < 1:
            return []
        dialect, writes = self._dialect, self._transaction.writes
        chosen = frozenset(map(escape, namespaces))
        bounds = {"within": collection, "of_model": model, "namespaces": dialect.bind_list(sorted(chosen))}
        wanted = VectorQuery(
            collection=collection, model=model, namespaces=chosen, query=query, limit=limit, bounds=bounds
        )

        def job(connection: sa.Connection) -> list[VectorMatch]:
            # The index must not learn vectors of this transaction, which may never be committed.
            found = None if writes else dialect.vector_index.find(connection, wanted)
            return scan_vectors(connection, _in_namespaces(dialect), wanted) if found is None else found

        return await self._transaction.read(job)

    async def remove_other_models(self, collection: str, model: str) -> int:
        bounds = {"within": collection, "of_model": model}
        return await self._change(_REMOVE_OTHERS, bounds)
