"""A copy of the tables in a schema beside them: an upgrade is tried on it first, and it is the way back afterwards.

The copy is made by the migrations themselves, so that it has every name that they know, and is filled by the server.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import sqlalchemy as sa

from denizen.adapters.store.dialect import REVISION_TABLE

_SCHEMAS = sa.text("SELECT nspname FROM pg_namespace")
_FILLED = sa.text(
    """
    SELECT table_name, column_name FROM information_schema.columns
    WHERE table_schema = :copy AND is_generated = 'NEVER' AND table_name <> :revision
    ORDER BY table_name, ordinal_position
    """
)
_NUMBERED = sa.text(
    """
    SELECT table_name, column_name, pg_get_serial_sequence(format('%I.%I', table_schema, table_name), column_name)
    FROM information_schema.columns WHERE table_schema = :copy
    """
)


def find_copy_revision(connection: sa.Connection, schema: str) -> str | None:
    """Returns the revision of the tables in a schema; None where there are none."""
    if connection.scalar(sa.select(sa.func.to_regclass(f'"{schema}".{REVISION_TABLE}'))) is None:
        return None
    return str(connection.exec_driver_sql(f'SELECT version_num FROM "{schema}".{REVISION_TABLE}').scalar_one())  # noqa: S608


def choose_copy_name(connection: sa.Connection, head: str) -> str:
    """Returns the name of the schema for what was there before the upgrade to `head`. It is another than the one in
    use, which may be such a copy itself.
    """
    name = f"before_{head}"
    return f"{name}_again" if connection.scalar(sa.select(sa.func.current_schema())) == name else name


def copy_tables(connection: sa.Connection, copy: str, create: Callable[[], None]) -> None:
    """Copies the tables of the current schema as they are at one moment. `create` makes empty ones where it is told
    to. A copy that is there already is replaced; newer tables there, which an undone upgrade has left, change their
    name.
    """
    source = str(connection.scalar(sa.select(sa.func.current_schema())))
    if find_copy_revision(connection, copy) not in {None, find_copy_revision(connection, source)}:
        taken = set(connection.execute(_SCHEMAS).scalars())
        free = next(name for number in count(1) if (name := f"undone_{number}") not in taken)
        connection.exec_driver_sql(f'ALTER SCHEMA "{copy}" RENAME TO {free}')
    connection.exec_driver_sql(f'DROP SCHEMA IF EXISTS "{copy}" CASCADE')
    connection.exec_driver_sql(f'CREATE SCHEMA "{copy}"')
    enter_copy(connection, copy)
    create()
    # Each table comes behind those that it refers to.
    created = sa.inspect(connection).get_sorted_table_and_fkc_names(schema=copy)
    for table in [name for name, _ in created if name is not None and name != REVISION_TABLE]:
        rows = connection.execute(_FILLED, {"copy": copy, "revision": REVISION_TABLE})
        names = ", ".join(f'"{row.column_name}"' for row in rows if row.table_name == table)
        connection.exec_driver_sql(
            f'INSERT INTO "{copy}"."{table}" ({names}) OVERRIDING SYSTEM VALUE SELECT {names} FROM "{source}"."{table}"'  # noqa: S608 - names from the catalogue
        )
    for table, column, sequence in connection.execute(_NUMBERED, {"copy": copy}).all():
        if sequence is not None:
            connection.exec_driver_sql(
                f'SELECT setval(\'{sequence}\', max("{column}")) FROM "{copy}"."{table}"'  # noqa: S608
            )


def enter_copy(connection: sa.Connection, copy: str) -> None:
    """Lets the rest of the transaction see the tables of the copy, and no others."""
    connection.exec_driver_sql(f'SET LOCAL search_path = "{copy}"')
