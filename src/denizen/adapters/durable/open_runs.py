"""Counts the runs of a durable log that have not ended, without opening the log."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from denizen.adapters.durable.settings import SCHEMA

_OPEN = "status NOT IN ('SUCCESS', 'ERROR', 'CANCELLED', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED')"


def count_open_runs(database: Path | str) -> int:
    """Returns how many runs of the SQLite file or the Postgres database go on, or wait to; 0 where there is no log."""
    if isinstance(database, Path):
        if not database.exists():
            return 0
        with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'workflow_status'").fetchone():
                return 0
            return int(connection.execute(f"SELECT count(*) FROM workflow_status WHERE {_OPEN}").fetchone()[0])  # noqa: S608
    import psycopg

    with psycopg.connect(database) as connection:
        there = connection.execute("SELECT to_regclass(%s)", (f"{SCHEMA}.workflow_status",)).fetchone()
        if there is None or there[0] is None:
            return 0
        query = f"SELECT count(*) FROM {SCHEMA}.workflow_status WHERE {_OPEN}"  # noqa: S608 - a name of ours
        found = connection.execute(query.encode()).fetchone()
        return int(found[0]) if found else 0
