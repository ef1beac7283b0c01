"""The changes of a store while it is moved: triggers note the key of each row that is written, whichever process does
it. After the move, triggers refuse every write, so that nothing is written that would be missed elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.dialect import MOVED
from denizen.domain.record import record

_SEQ = {
    "sqlite": "seq INTEGER PRIMARY KEY AUTOINCREMENT",
    "postgresql": "seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
}
_changes = sa.table("move_changes", sa.column("seq", sa.BigInteger()), sa.column("name"), sa.column("key"))
_state = sa.table("move_state", sa.column("name"), sa.column("value"))
_EVENTS = ("INSERT", "UPDATE", "DELETE")
_DROPPED_AT_ONCE = 500


@record
class Change:
    """A row that was written, by its table and key."""

    number: int
    table: str
    key: tuple[Any, ...]


def create_state(connection: sa.Connection) -> None:
    """Creates the table of what a move remembers, in either database."""
    connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS move_state (name TEXT PRIMARY KEY, value TEXT NOT NULL)")


def read_state(connection: sa.Connection, name: str) -> str:
    """Returns what was remembered; empty for nothing, also where no move has begun."""
    if not sa.inspect(connection).has_table("move_state"):
        return ""
    return str(connection.scalar(sa.select(_state.c.value).where(_state.c.name == name)) or "")


def write_state(connection: sa.Connection, name: str, value: str) -> None:
    connection.execute(sa.delete(_state).where(_state.c.name == name))
    connection.execute(sa.insert(_state).values(name=name, value=value))


def start_noting(connection: sa.Connection, tables: Sequence[sa.Table]) -> None:
    """Creates the log and its triggers, in the transaction that is open."""
    backend = connection.dialect.name
    connection.exec_driver_sql(f"CREATE TABLE move_changes ({_SEQ[backend]}, name TEXT NOT NULL, key TEXT NOT NULL)")
    for table in tables:
        (_note_sqlite if backend == "sqlite" else _note_postgres)(connection, table)


def stop_noting(connection: sa.Connection, tables: Sequence[sa.Table]) -> None:
    """Removes the log and its triggers."""
    for table in tables:
        if connection.dialect.name == "sqlite":
            for event in _EVENTS:
                connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS move_{table.name}_{event.lower()}")
        else:
            connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS move_note ON {table.name}")
            connection.exec_driver_sql(f"DROP FUNCTION IF EXISTS move_note_{table.name}()")
    connection.exec_driver_sql("DROP TABLE IF EXISTS move_changes")


def read_changes(connection: sa.Connection) -> Sequence[Change]:
    rows = connection.execute(sa.select(_changes).order_by(_changes.c.seq))
    return [Change(row.seq, row.name, tuple(json.loads(row.key))) for row in rows]


def drop_changes(connection: sa.Connection, changes: Sequence[Change]) -> None:
    """Forgets changes that were taken over."""
    numbers = [each.number for each in changes]
    for start in range(0, len(numbers), _DROPPED_AT_ONCE):
        some = numbers[start : start + _DROPPED_AT_ONCE]
        connection.execute(sa.delete(_changes).where(_changes.c.seq.in_(some)))


def refuse_writes(connection: sa.Connection, tables: Sequence[sa.Table]) -> None:
    """Makes every later write to these tables fail with MOVED, in every process."""
    if connection.dialect.name == "sqlite":
        for table in tables:
            for event in _EVENTS:
                connection.exec_driver_sql(
                    f"CREATE TRIGGER moved_{table.name}_{event.lower()} BEFORE {event} ON {table.name}"
                    f" BEGIN SELECT RAISE(ABORT, '{MOVED}'); END"
                )
        return
    connection.exec_driver_sql(
        f"CREATE FUNCTION moved() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION '{MOVED}'; END$$"
    )
    for table in tables:
        connection.exec_driver_sql(
            f"CREATE TRIGGER moved BEFORE INSERT OR UPDATE OR DELETE ON {table.name} EXECUTE FUNCTION moved()"
        )


def allow_writes(connection: sa.Connection, tables: Sequence[sa.Table]) -> None:
    """Takes `refuse_writes` back."""
    for table in tables:
        if connection.dialect.name == "sqlite":
            for event in _EVENTS:
                connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS moved_{table.name}_{event.lower()}")
        else:
            connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS moved ON {table.name}")
    if connection.dialect.name != "sqlite":
        connection.exec_driver_sql("DROP FUNCTION IF EXISTS moved()")


def _note_sqlite(connection: sa.Connection, table: sa.Table) -> None:
    for event in _EVENTS:
        rows = {"INSERT": ("new",), "UPDATE": ("old", "new"), "DELETE": ("old",)}[event]
        notes = "".join(
            f" INSERT INTO move_changes(name, key) VALUES ('{table.name}', json_array({_list_keys(table, row)}));"  # noqa: S608 - names of ours
            for row in rows
        )
        name = f"move_{table.name}_{event.lower()}"
        connection.exec_driver_sql(f"CREATE TRIGGER {name} AFTER {event} ON {table.name} BEGIN{notes} END")


def _note_postgres(connection: sa.Connection, table: sa.Table) -> None:
    def note(row: str) -> str:
        return f"INSERT INTO move_changes(name, key) VALUES ('{table.name}', json_build_array({_list_keys(table, row)})::text);"  # noqa: S608, E501 - names of ours

    connection.exec_driver_sql(
        f"CREATE FUNCTION move_note_{table.name}() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN"
        f" IF TG_OP <> 'INSERT' THEN {note('old')} END IF;"
        f" IF TG_OP <> 'DELETE' THEN {note('new')} END IF; RETURN NULL; END$$"
    )
    connection.exec_driver_sql(
        f"CREATE TRIGGER move_note AFTER INSERT OR UPDATE OR DELETE ON {table.name}"
        f" FOR EACH ROW EXECUTE FUNCTION move_note_{table.name}()"
    )


def _list_keys(table: sa.Table, row: str) -> str:
    return ", ".join(f'{row}."{column.name}"' for column in table.primary_key)
