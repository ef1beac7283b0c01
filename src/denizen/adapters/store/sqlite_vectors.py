"""Vector search for SQLite, which cannot compare vectors: a search over their signs in memory finds candidates, and
only these are compared in full.

Measured: 98 % of the true neighbours for a tenth of the work. The first search reads the signs of a collection (1 s and
10 MB for 100,000 vectors), later ones read what is new. Vectors that are gone or have changed are noticed when the
candidates themselves are read, so no result is outdated or from another namespace.
"""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.dialect import VectorQuery
from denizen.adapters.store.vectors import IN_COLLECTION, OF_MODEL, vectors
from denizen.domain.vector import VectorMatch, find_nearest, sign_bits

CANDIDATES = 400
"""The number of vectors that are compared in full, unless the query asks for more."""
MANY_GONE = 0.1

_NEW = (
    sa.select(vectors.c.position, sa.type_coerce(vectors.c.namespace, sa.Text()), vectors.c.bits)
    .where(IN_COLLECTION, OF_MODEL, vectors.c.position > sa.bindparam("last"))
    .order_by(vectors.c.position)
)
_chosen = sa.func.json_each(sa.bindparam("chosen", type_=sa.Text())).table_valued("value")
_SAME = sa.select(vectors.c.key, sa.type_coerce(vectors.c.namespace, sa.Text()), vectors.c.data).where(
    vectors.c.position.in_(sa.select(_chosen.c.value)), IN_COLLECTION, OF_MODEL
)


class SqliteVectorIndex:
    """Implements `denizen.adapters.store.dialect.VectorIndex`. Threads take turns."""

    def __init__(self) -> None:
        self._collections: dict[tuple[str, str], _Signs] = {}
        self._lock = Lock()

    def learn(self, connection: sa.Connection, rows: Sequence[dict[str, Any]]) -> None:
        """Does nothing: the next search reads the new rows, if they were committed."""

    def find(self, connection: sa.Connection, wanted: VectorQuery) -> list[VectorMatch] | None:
        with self._lock:
            signs = self._collections.setdefault((wanted.collection, wanted.model), _Signs())
            signs.read_on(connection, wanted.bounds)
            positions = signs.find_like(wanted)
        rows = connection.execute(_SAME, wanted.bounds | {"chosen": json.dumps(positions)}).all()
        there = [(key, data) for key, namespace, data in rows if namespace in wanted.namespaces]
        with self._lock:
            signs.gone += len(positions) - len(rows)
            if signs.gone > MANY_GONE * len(signs.positions):
                self._collections.pop((wanted.collection, wanted.model), None)
        return find_nearest(wanted.query, there, limit=wanted.limit)


@dataclass(slots=True)
class _Signs:
    """The signs of one collection and model, by position. `gone` counts candidates that were missing."""

    positions: array[int] = field(default_factory=lambda: array("q"))
    namespaces: array[int] = field(default_factory=lambda: array("l"))
    signs: list[int] = field(default_factory=list[int])
    names: dict[str, int] = field(default_factory=dict[str, int])
    gone: int = 0

    def read_on(self, connection: sa.Connection, bounds: dict[str, Any]) -> None:
        last = self.positions[-1] if self.positions else 0
        for position, namespace, bits in connection.execute(_NEW, bounds | {"last": last}):
            self.positions.append(position)
            self.namespaces.append(self.names.setdefault(namespace, len(self.names)))
            self.signs.append(int.from_bytes(bits))

    def find_like(self, wanted: VectorQuery) -> list[int]:
        """Returns the positions of the vectors with the most signs in common, about CANDIDATES of them."""
        places = self._find_places(wanted.namespaces)
        query, signs, most = int.from_bytes(sign_bits(wanted.query)), self.signs, max(CANDIDATES, wanted.limit)
        if len(places) <= most:
            return [self.positions[place] for place in places]
        if len(places) == len(signs):
            distances = [(query ^ each).bit_count() for each in signs]
        else:
            distances = [(query ^ signs[place]).bit_count() for place in places]
        bound = _find_bound(Counter(distances), most)
        near = [place for place, distance in zip(places, distances, strict=True) if distance <= bound]
        return [self.positions[place] for place in near]

    def _find_places(self, namespaces: frozenset[str]) -> Sequence[int]:
        chosen = {self.names[name] for name in namespaces if name in self.names}
        if len(chosen) == len(self.names):
            return range(len(self.signs))
        return [place for place, namespace in enumerate(self.namespaces) if namespace in chosen]


def _find_bound(distances: Counter[int], most: int) -> int:
    """Returns the distance within which there are at least `most` vectors."""
    total = 0
    for distance in sorted(distances):
        total += distances[distance]
        if total >= most:
            return distance
    return max(distances, default=0)
