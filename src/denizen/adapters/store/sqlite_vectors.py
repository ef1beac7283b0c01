"""Nearness where the database cannot compare vectors: their signs in memory, one number each, and the best of them
looked at in full (measured: 98 % of the true neighbours for a tenth of the work).

The signs of a collection are read with the first search, 1 s and 10 MB for 100 000 vectors, and what is new with each
later one. What is gone or has changed since is found out when the vectors themselves are read, so that nothing is
returned that is not there, or not on a shelf that was asked for.
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
from denizen.domain.vector import Near, find_nearest, signs_of

CANDIDATES = 400
"""Looked at in full, unless more are wanted."""
MANY_GONE = 0.1

_NEW = (
    sa.select(vectors.c.position, sa.type_coerce(vectors.c.shelf, sa.Text()), vectors.c.bits)
    .where(IN_COLLECTION, OF_MODEL, vectors.c.position > sa.bindparam("last"))
    .order_by(vectors.c.position)
)
_chosen = sa.func.json_each(sa.bindparam("chosen", type_=sa.Text())).table_valued("value")
_SAME = sa.select(vectors.c.key, sa.type_coerce(vectors.c.shelf, sa.Text()), vectors.c.data).where(
    vectors.c.position.in_(sa.select(_chosen.c.value)), IN_COLLECTION, OF_MODEL
)


class SqliteVectorIndex:
    """`denizen.adapters.store.vectors.VectorIndex`. Threads take turns."""

    def __init__(self) -> None:
        self._collections: dict[tuple[str, str], _Signs] = {}
        self._lock = Lock()

    def learn(self, connection: sa.Connection, rows: Sequence[dict[str, Any]]) -> None:
        """They are read with the next search, if they were committed."""

    def find(self, connection: sa.Connection, wanted: VectorQuery) -> list[Near] | None:
        with self._lock:
            signs = self._collections.setdefault((wanted.collection, wanted.model), _Signs())
            signs.read_on(connection, wanted.bounds)
            positions = signs.find_like(wanted)
        rows = connection.execute(_SAME, wanted.bounds | {"chosen": json.dumps(positions)}).all()
        there = [(key, data) for key, shelf, data in rows if shelf in wanted.shelves]
        with self._lock:
            signs.gone += len(positions) - len(rows)
            if signs.gone > MANY_GONE * len(signs.positions):
                self._collections.pop((wanted.collection, wanted.model), None)
        return find_nearest(wanted.query, there, limit=wanted.limit)


@dataclass(slots=True)
class _Signs:
    """Of one collection and model, in the order of their positions. `gone` counts those that were met in vain."""

    positions: array[int] = field(default_factory=lambda: array("q"))
    shelves: array[int] = field(default_factory=lambda: array("l"))
    signs: list[int] = field(default_factory=list[int])
    names: dict[str, int] = field(default_factory=dict[str, int])
    gone: int = 0

    def read_on(self, connection: sa.Connection, bounds: dict[str, Any]) -> None:
        last = self.positions[-1] if self.positions else 0
        for position, shelf, bits in connection.execute(_NEW, bounds | {"last": last}):
            self.positions.append(position)
            self.shelves.append(self.names.setdefault(shelf, len(self.names)))
            self.signs.append(int.from_bytes(bits))

    def find_like(self, wanted: VectorQuery) -> list[int]:
        """Positions of those with the most signs in common, about as many as are looked at."""
        places = self._find_places(wanted.shelves)
        query, signs, most = int.from_bytes(signs_of(wanted.query)), self.signs, max(CANDIDATES, wanted.limit)
        if len(places) <= most:
            return [self.positions[place] for place in places]
        if len(places) == len(signs):
            distances = [(query ^ each).bit_count() for each in signs]
        else:
            distances = [(query ^ signs[place]).bit_count() for place in places]
        bound = _find_bound(Counter(distances), most)
        near = [place for place, distance in zip(places, distances, strict=True) if distance <= bound]
        return [self.positions[place] for place in near]

    def _find_places(self, shelves: frozenset[str]) -> Sequence[int]:
        chosen = {self.names[name] for name in shelves if name in self.names}
        if len(chosen) == len(self.names):
            return range(len(self.signs))
        return [place for place, shelf in enumerate(self.shelves) if shelf in chosen]


def _find_bound(distances: Counter[int], most: int) -> int:
    """The distance within which there are at least so many."""
    total = 0
    for distance in sorted(distances):
        total += distances[distance]
        if total >= most:
            return distance
    return max(distances, default=0)
