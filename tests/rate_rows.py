"""What the rate limiter counts, as it stands in the store."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from denizen.testing.temporary_store import TemporaryStore


def count_rate_keys(store: TemporaryStore) -> int:
    """How many people, addresses or topics have uses that the limiter counts."""
    with closing(sqlite3.connect(store.path)) as connection:
        [number] = connection.execute("SELECT count(*) FROM rates").fetchone()
    return number
