"""The way back after an upgrade: the copy that it has left, what was written since, and taking that copy into use.

On SQLite the copy is a file beside the database, and the two change names. On Postgres it is a schema beside the
tables, and the search path of Denizen's user is set to it. Either way the newer tables are kept.
"""

from __future__ import annotations

import glob
import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import count
from pathlib import Path

import sqlalchemy as sa

from denizen.adapters.store.dialect import REVISION_TABLE, SqlDialect
from denizen.adapters.store.migrator import HISTORY, MigrationHistory, run_migrations
from denizen.adapters.store.postgres import PostgresDialect, lift_deadlines
from denizen.adapters.store.postgres_copy import choose_copy_name, enter_copy, find_copy_revision
from denizen.adapters.store.snapshot import list_tables
from denizen.adapters.store.sqlite import SqliteDialect, explain
from denizen.domain.errors import Conflict, NeedsAttention, NotFound
from denizen.domain.record import record

_IN_USE_TIMEOUT_S = 1.0
_LEFTOVERS = ("comparison*", "rehearsal*", "before-*.partial*")
"""Files that are there only while an upgrade or a comparison runs, unless its process was killed."""
_OF_PROGRAMS = {REVISION_TABLE, "config_generations"}
"""Tables in which each start of the program writes by itself. What is configured is in a file, which an undo leaves."""


@record(kw_only=True)
class UpgradeCopy:
    """The copy that an upgrade has left: a file or the name of a schema, and the revisions before and after it."""

    place: str
    revision: str
    upgraded_to: str


@record(kw_only=True)
class TableChange:
    """A table with rows that the copy has not, which are new or changed, and rows that only the copy has."""

    table: str
    written: int
    gone: int


def find_upgrade_copy(dialect: SqlDialect) -> UpgradeCopy | None:
    """Returns the copy that the upgrade to the stored schema has left; None where there is none (any more). Raises what
    opening the database raises.
    """
    return _open(dialect).find_copy()


def list_changes(
    dialect: SqlDialect, report: Callable[[int, int], None], history: MigrationHistory = HISTORY
) -> Sequence[TableChange]:
    """Returns the tables that hold other rows than the upgrade has left, for which it is repeated on the copy. It
    reports how many tables it has compared, of how many. Raises NotFound without a copy.

    A program that is older than the upgrade cannot repeat it: it compares with the copy itself, in columns that both
    have, and counts rows that the upgrade has changed, too.
    """
    undo = _open(dialect)
    copy = _check_there(undo.find_copy())
    report(0, 1)
    if copy.upgraded_to != history.head:
        return undo.list_changes(copy, report, None)
    return undo.list_changes(
        copy, report, lambda connection: run_migrations(connection, dialect, history, copy.upgraded_to)
    )


def undo_upgrade(dialect: SqlDialect) -> str:
    """Takes the copy into use, and returns where the newer tables are now. Raises NotFound without a copy, and Conflict
    while a Denizen uses the database.
    """
    return _open(dialect).undo()


def remove_copies(dialect: SqlDialect) -> Sequence[str]:
    """Removes what upgrades and their undoing have left beside the tables in use, and returns where it was. The way
    back is gone then.
    """
    return _open(dialect).remove_copies()


def find_leftovers(dialect: SqlDialect) -> Sequence[Path]:
    """Returns the files beside a SQLite database that a killed upgrade or comparison has left, which are of no use.
    Postgres rolls back what a killed one has begun.
    """
    return _SqliteUndo(dialect).find_files(_LEFTOVERS) if isinstance(dialect, SqliteDialect) else ()


def _open(dialect: SqlDialect) -> _SqliteUndo | _PostgresUndo:
    if isinstance(dialect, SqliteDialect):
        return _SqliteUndo(dialect)
    assert isinstance(dialect, PostgresDialect)
    return _PostgresUndo(dialect)


class _SqliteUndo:
    def __init__(self, dialect: SqliteDialect) -> None:
        self._dialect = dialect
        self._path = dialect.path

    def find_copy(self) -> UpgradeCopy | None:
        if not self._path.exists():
            return None
        with closing(self._connect()) as database:
            stored = _read_revision(database, "main")
        kept = self._sibling(f"before-{stored}")
        if not kept.exists():
            return None
        with closing(sqlite3.connect(_read_only(kept), uri=True)) as copy:
            return UpgradeCopy(place=str(kept), revision=_read_revision(copy, "main"), upgraded_to=stored)

    def list_changes(
        self, copy: UpgradeCopy, report: Callable[[int, int], None], upgrade: Callable[[sa.Connection], None] | None
    ) -> Sequence[TableChange]:
        kept = Path(copy.place)
        if upgrade is None:
            return self._compare(kept, report)
        trial = self._sibling("comparison")
        with self._dialect.open_upgraded(kept, trial, upgrade):
            return self._compare(trial, report)

    def _compare(self, other: Path, report: Callable[[int, int], None]) -> Sequence[TableChange]:
        try:
            with closing(self._connect()) as database:
                database.execute("ATTACH DATABASE ? AS before", (_read_only(other),))
                database.execute("BEGIN")
                now, before = _describe_sqlite(database, "main"), _describe_sqlite(database, "before")

                def ask(query: str) -> int:
                    return int(database.execute(query).fetchone()[0])

                return _compare(now, before, ("main", "before"), ask, report)
        except sqlite3.Error as error:
            raise explain(error, self._path) or error from error

    def undo(self) -> str:
        copy = _check_there(self.find_copy())
        kept, undone = Path(copy.place), self._choose_undone(copy)
        try:
            with closing(self._connect()) as database:
                # Only whoever is alone can leave WAL mode, and nobody can come in while the transaction is open.
                database.execute("PRAGMA journal_mode=DELETE")
                database.execute("BEGIN EXCLUSIVE")
                os.link(self._path, undone)
                kept.replace(self._path)  # at every moment there is a whole database under that name
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
                raise _refuse_in_use() from error
            raise explain(error, self._path) or error from error
        except OSError as error:
            raise NeedsAttention(
                "The copy cannot be put in the place of the database; nothing has changed.",
                code="upgrade_undo",
                why=error.strerror or type(error).__name__,
                fix=f"Check that this user may write to {self._path.parent}.",
            ) from error
        return str(undone)

    def _choose_undone(self, copy: UpgradeCopy) -> Path:
        """Returns a free name: what an earlier undo has kept stays."""
        first = f"undone-{copy.upgraded_to}"
        names = (self._sibling(first if number == 1 else f"{first}-{number}") for number in count(1))
        return next(each for each in names if not each.exists())

    def remove_copies(self) -> Sequence[str]:
        files = self.find_files(("before-*", "undone-*", *_LEFTOVERS))
        for each in files:
            each.unlink(missing_ok=True)
        return [str(each) for each in files]

    def find_files(self, kinds: Sequence[str]) -> Sequence[Path]:
        """Returns the files beside the database whose names go on like one of these patterns."""
        name = glob.escape(self._path.name)
        return sorted({each for kind in kinds for each in self._path.parent.glob(f"{name}.{kind}")})

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{self._path.resolve().as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=_IN_USE_TIMEOUT_S
        )

    def _sibling(self, suffix: str) -> Path:
        return self._path.with_name(f"{self._path.name}.{suffix}")


def _read_only(file: Path) -> str:
    """The copy is in WAL mode, but nobody writes it: so it needs no files beside it."""
    return f"{file.resolve().as_uri()}?mode=ro&immutable=1"


def _read_revision(database: sqlite3.Connection, schema: str) -> str:
    return str(database.execute(f"SELECT version_num FROM {schema}.{REVISION_TABLE}").fetchone()[0])  # noqa: S608


def _describe_sqlite(database: sqlite3.Connection, schema: str) -> dict[str, list[str]]:
    return {
        table: [row[1] for row in database.execute(f'PRAGMA {schema}.table_info("{table}")')]
        for table in list_tables(database, schema)
    }


class _PostgresUndo:
    def __init__(self, dialect: PostgresDialect) -> None:
        self._dialect = dialect
        self._engine = dialect.engine

    def find_copy(self) -> UpgradeCopy | None:
        with self._engine.connect() as connection:
            return self._find_copy(connection)

    def list_changes(
        self, copy: UpgradeCopy, report: Callable[[int, int], None], upgrade: Callable[[sa.Connection], None] | None
    ) -> Sequence[TableChange]:
        with self._engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
            lift_deadlines(connection)
            current = _current_schema(connection)
            if upgrade is not None:  # and it is rolled back at the end
                enter_copy(connection, copy.place)
                upgrade(connection)
            now, before = (_describe_postgres(connection, schema) for schema in (current, copy.place))

            def ask(query: str) -> int:
                return int(connection.exec_driver_sql(query).scalar_one())

            return _compare(now, before, (current, copy.place), ask, report)

    def undo(self) -> str:
        with self._engine.connect() as connection:
            self._dialect.begin_upgrade(connection)
            copy = _check_there(self._find_copy(connection))
            current = _current_schema(connection)
            others = connection.scalar(_OTHERS)
            if others:
                raise _refuse_in_use()
            name = connection.dialect.identifier_preparer.quote(str(connection.scalar(_DATABASE)))
            path = f'"{copy.place}", public'
            connection.exec_driver_sql(f"ALTER ROLE CURRENT_USER IN DATABASE {name} SET search_path = {path}")
            connection.commit()
        return current

    def remove_copies(self) -> Sequence[str]:
        with self._engine.connect() as connection:
            self._dialect.begin_upgrade(connection)
            schemas = connection.execute(_COPIES).scalars().all()
            for schema in schemas:
                connection.exec_driver_sql(f'DROP SCHEMA "{schema}" CASCADE')
            connection.commit()
        return schemas

    def _find_copy(self, connection: sa.Connection) -> UpgradeCopy | None:
        stored = self._dialect.find_revision(connection)
        if stored is None:
            return None
        name = choose_copy_name(connection, stored)
        revision = find_copy_revision(connection, name)
        if revision in {None, stored}:  # what an undone upgrade has left is no copy to go back to
            return None
        return UpgradeCopy(place=name, revision=str(revision), upgraded_to=stored)


_DATABASE = sa.select(sa.func.current_database())
_OTHERS = sa.text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    " AND usename = current_user AND application_name LIKE 'denizen%'"
)
_COPIES = sa.text(
    "SELECT nspname FROM pg_namespace WHERE nspname ~ '^(before|undone)_[0-9]+(_again)?$'"
    " AND nspname <> current_schema() AND nspowner = (SELECT oid FROM pg_roles WHERE rolname = current_user)"
    " ORDER BY nspname"
)
_COLUMNS = sa.text(
    """
    SELECT table_name, column_name FROM information_schema.columns
    WHERE table_schema = :schema AND is_generated = 'NEVER' ORDER BY table_name, ordinal_position
    """
)


def _current_schema(connection: sa.Connection) -> str:
    return str(connection.scalar(sa.select(sa.func.current_schema())))


def _describe_postgres(connection: sa.Connection, schema: str) -> dict[str, list[str]]:
    tables: dict[str, list[str]] = {}
    for row in connection.execute(_COLUMNS, {"schema": schema}):
        tables.setdefault(row.table_name, []).append(row.column_name)
    return tables


def _compare(
    now: dict[str, list[str]],
    before: dict[str, list[str]],
    schemas: tuple[str, str],
    ask: Callable[[str], int],
    report: Callable[[int, int], None],
) -> Sequence[TableChange]:
    """Rows of a table that is not there before are written since: upgrades make empty ones."""
    changes: list[TableChange] = []
    tables = sorted({*now} - _OF_PROGRAMS)
    for done, table in enumerate(tables):
        report(done, len(tables))
        names = ", ".join(f'CAST("{each}" AS TEXT)' for each in before.get(table, ()) if each in now[table])
        new, old = (f'SELECT {names or "1"} FROM "{schema}"."{table}"' for schema in schemas)  # noqa: S608 - names of tables
        written, gone = (f"{new} EXCEPT {old}", f"{old} EXCEPT {new}") if names else (new, "SELECT 1 WHERE 1 = 0")
        change = TableChange(
            table=table,
            written=ask(f"SELECT count(*) FROM ({written}) AS rows"),  # noqa: S608
            gone=ask(f"SELECT count(*) FROM ({gone}) AS rows"),  # noqa: S608
        )
        if change.written or change.gone:
            changes.append(change)
    return changes


def _check_there(copy: UpgradeCopy | None) -> UpgradeCopy:
    if copy is not None:
        return copy
    raise NotFound(
        "There is no copy from before an upgrade.",
        code="upgrade_no_copy",
        why="The tables were never upgraded, or the copy was removed.",
        fix="`denizen backup list` shows the backups; `denizen restore` makes a home folder of one.",
    )


def _refuse_in_use() -> Conflict:
    return Conflict(
        "Denizen uses the database.",
        code="upgrade_in_use",
        why="What it writes now would be lost.",
        fix="Stop every process of Denizen on this database, and try again.",
    )
