"""The store on SQLite or Postgres: tables, repositories, migrations. Others open it and use it through its port.

`open_store` and `open_sql_reader` are all that others need. Each module holds the tables of one topic and the
repository over them. Read `database`, `transaction` and `connections` first, then `repository` (what repositories
share) and any of them; `sqlite` and `postgres` hold what differs; `sql_views` and `sql_reader` stand apart.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from denizen.domain.clock import Clock
from denizen.domain.errors import InvalidInput
from denizen.ports.sql import SqlReader
from denizen.ports.store import Store

if TYPE_CHECKING:
    from denizen.adapters.store.dialect import SqlDialect

__all__ = ["hide_password", "open_dialect", "open_sql_reader", "open_store"]

MAX_CONNECTIONS = 10
"""The connections to Postgres by default: opened when needed, and kept."""


async def open_store(url: str, *, clock: Clock, max_connections: int = MAX_CONNECTIONS) -> Store:
    """Opens the store at `sqlite:///PATH` or `postgresql://USER:PASSWORD@HOST/NAME`; creates or upgrades it when
    needed. `max_connections` (2 or more) is for Postgres.

    Raises InvalidInput for another kind of URL, NeedsAttention when the database cannot be used (no rights, full disk,
    a schema that is too new or too old, a migration that fails) and Unavailable when it is locked or does not answer.
    """
    import anyio

    from denizen.adapters.store.database import SqlStore
    from denizen.adapters.store.migrator import migrate

    dialect = open_dialect(url, max_connections)
    await anyio.to_thread.run_sync(migrate, dialect)
    await anyio.to_thread.run_sync(dialect.prepare)
    return SqlStore(dialect, clock)


def open_sql_reader(url: str) -> SqlReader:
    """Returns a reader for SQL of administrators on the same database. It opens nothing before its first query."""
    from denizen.adapters.store.sql_reader import open_reader

    return open_reader(url)


def open_dialect(url: str, max_connections: int = MAX_CONNECTIONS) -> SqlDialect:
    """Returns the database behind a URL, for those that copy it. It connects to nothing yet. Raises InvalidInput."""
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:
        raise _refuse() from error
    name = parsed.get_backend_name()
    if name == "sqlite" and parsed.database and parsed.database != ":memory:":
        from denizen.adapters.store.sqlite import SqliteDialect

        return SqliteDialect(Path(parsed.database))
    if name in {"postgresql", "postgres"}:
        from denizen.adapters.store.postgres import PostgresDialect

        return PostgresDialect(parsed, max_connections)
    raise _refuse()


def hide_password(url: str) -> str:
    """Returns a URL of a store as people may see it; nothing but its kind where one cannot tell what is a password."""
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    from denizen.adapters.store.dialect import describe_url

    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        return next((kind for kind in ("postgresql", "sqlite") if url.startswith(kind)), "another database")
    return describe_url(parsed)


def _refuse() -> InvalidInput:
    """Returns the error without the URL, which may hold a password."""
    return InvalidInput(
        "The store's URL is not one that can be opened.",
        code="store_url",
        fix="Use sqlite:///PATH (a file) or postgresql://USER:PASSWORD@HOST/NAME.",
    )
