"""Counts the runs of a durable log that have not ended, without opening the log."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from denizen.adapters.durable.settings import SCHEMA
from denizen.domain.errors import DenizenError

_OPEN = "status NOT IN ('SUCCESS', 'ERROR', 'CANCELLED', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED')"


def count_open_runs(database: Path | str) -> int:
    """Returns how many runs of the SQLite file or the Postgres database go on, or wait to; 0 where there is no log.
    Raises NeedsAttention and Unavailable for a log that cannot be read.
    """
    return _count_in_file(database) if isinstance(database, Path) else _count_in_postgres(database)


def _count_in_file(file: Path) -> int:
    if not file.exists():
        return 0
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'workflow_status'").fetchone():
                return 0
            return int(connection.execute(f"SELECT count(*) FROM workflow_status WHERE {_OPEN}").fetchone()[0])  # noqa: S608
    except sqlite3.Error as error:
        raise _explain(error) from error


def _count_in_postgres(url: str) -> int:
    import psycopg
    from sqlalchemy import make_url

    plain = make_url(url).set(drivername="postgresql")  # libpq knows no `+psycopg`, and quotes what it cannot read
    try:
        with psycopg.connect(plain.render_as_string(hide_password=False)) as connection:
            there = connection.execute("SELECT to_regclass(%s)", (f"{SCHEMA}.workflow_status",)).fetchone()
            if there is None or there[0] is None:
                return 0
            query = f"SELECT count(*) FROM {SCHEMA}.workflow_status WHERE {_OPEN}"  # noqa: S608 - a name of ours
            found = connection.execute(query.encode()).fetchone()
            return int(found[0]) if found else 0
    except psycopg.Error as error:
        raise _explain(error) from error


def _explain(error: Exception) -> DenizenError:
    from denizen.adapters.durable.database import explain

    return explain(error)
