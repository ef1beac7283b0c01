"""Vector search with pgvector: the server compares vectors, with one index for each vector length.

The `embedding` column is derived from `data`. It is created when the server has the extension, now or later. Without
pgvector the vectors are compared one by one, which is fast enough for memories and slow for documents.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from denizen.adapters.store.columns import EscapedText, escape
from denizen.adapters.store.dialect import VectorQuery
from denizen.domain.vector import VectorMatch, unpack_vector

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

MAX_DIMENSIONS = 2000
"""The longest vectors that a pgvector index takes; longer ones are compared one by one."""
FEW = 10_000
"""So many vectors are all compared, which takes about 20 ms: of a filtered search, the index finds only a part."""

_AVAILABLE = sa.text("SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'")
_THERE = sa.text(
    "SELECT count(*) FROM pg_attribute WHERE attrelid = to_regclass('vectors') AND attname = 'embedding'"
    " AND NOT attisdropped"
)
_ALONE = sa.text("SELECT pg_advisory_xact_lock(hashtext('denizen:vectors'))")
"""Processes that start together would stand in each other's way: neither statement waits for another process."""
_LEARN = sa.text(
    "UPDATE vectors SET embedding = CAST(:embedding AS vector)"
    " WHERE collection = :collection AND key = :key AND model = :model"
)

_CHOSEN = "FROM vectors WHERE collection = :within AND model = :of_model AND namespace = ANY(:namespaces)"
_COUNT = sa.text(f"SELECT count(*) FROM (SELECT 1 {_CHOSEN} LIMIT :few + 1) AS chosen")  # noqa: S608 - a constant

_log = logging.getLogger(__name__)


class PgvectorIndex:
    """Implements `denizen.adapters.store.dialect.VectorIndex`."""

    def __init__(self) -> None:
        self.is_there = False
        self._indexed: set[int] = set()

    def prepare(self, engine: Engine) -> None:
        """Creates the column if the server allows it, once the schema is up to date. A refusal is only logged."""
        with engine.connect() as connection:
            self.is_there = bool(connection.execute(_THERE).scalar_one())
            if not self.is_there and connection.execute(_AVAILABLE).scalar_one():
                try:
                    connection.execute(_ALONE)
                    if not connection.execute(_THERE).scalar_one():
                        connection.execute(sa.text("CREATE EXTENSION IF NOT EXISTS vector"))
                        connection.execute(sa.text("ALTER TABLE vectors ADD COLUMN embedding vector"))
                        # Indexing makes them anew in the background, with the column.
                        connection.execute(sa.text("DELETE FROM vectors"))
                    connection.commit()
                except DBAPIError as error:
                    connection.rollback()
                    _log.warning("pgvector cannot be used", extra={"why": str(error.orig).strip()})
                self.is_there = bool(connection.execute(_THERE).scalar_one())

    def learn(self, connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
        if not self.is_there:
            return
        for size in {len(row["data"]) for row in rows} - self._indexed:
            _make_index(connection, size)
            self._indexed.add(size)
        given = [{name: escape(row[name]) for name in ("collection", "key", "model")} for row in rows]
        for row, told in zip(rows, given, strict=True):
            told["embedding"] = _written(row["data"])
        connection.execute(_LEARN, given)

    def find(self, connection: Connection, wanted: VectorQuery) -> list[VectorMatch] | None:
        size = len(wanted.query)
        if not self.is_there or size > MAX_DIMENSIONS or not any(wanted.query):
            return None
        asked = wanted.bounds | {"of_model": escape(wanted.model)}
        are_few = connection.execute(_COUNT, asked | {"few": FEW}).scalar_one() <= FEW
        if not are_few:
            connection.execute(sa.text("SET LOCAL hnsw.iterative_scan = relaxed_order"))
        asked |= {"q": _written(wanted.query), "most": wanted.limit}
        rows = connection.execute(_nearest(size, are_few=are_few), asked)
        return sorted((VectorMatch(key, near) for key, near in rows), key=lambda each: (-each.similarity, each.key))


def _make_index(connection: Connection, size: int) -> None:
    if size <= MAX_DIMENSIONS:
        connection.execute(
            sa.text(
                f"CREATE INDEX IF NOT EXISTS ix_vectors_near_{size} ON vectors"
                f" USING hnsw ((embedding::vector({size})) vector_cosine_ops) WHERE vector_dims(embedding) = {size}"
            )
        )


def _nearest(size: int, *, are_few: bool) -> sa.Executable:
    distance = f"embedding::vector({size}) <=> CAST(:q AS vector({size}))"
    # The index serves only an order by the distance itself.
    order = f"1 - ({distance}) DESC" if are_few else distance
    return sa.text(
        f"SELECT key, 1 - ({distance}) {_CHOSEN} AND vector_dims(embedding) = {size} ORDER BY {order} LIMIT :most"
    ).columns(sa.column("key", EscapedText()), sa.column("near", sa.Float()))


def _written(data: bytes) -> str:
    return "[" + ",".join(map(str, unpack_vector(data))) + "]"
