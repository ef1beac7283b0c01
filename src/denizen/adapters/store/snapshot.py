"""Consistent copies of SQLite databases that are in use, and what is counted in such a copy."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from denizen.adapters.store.dialect import REVISION_TABLE
from denizen.adapters.store.sqlite import BUSY_TIMEOUT_MS, explain
from denizen.domain.errors import NeedsAttention

PAGES_PER_STEP = 2000
"""About 8 MB: how much is copied between two reports of progress."""

ReportCopy = Callable[[int, int], None]
"""It is told the pages that are copied, and all pages."""


def copy_databases(copies: Mapping[Path, Path], report: ReportCopy) -> None:
    """Copies databases to new files, all of them as they are at one moment, while others read and write.

    The writers of all of them wait for the few milliseconds in which the moment is fixed, and not for the copying.
    Raises Unavailable when a database stays locked, NeedsAttention when one is damaged or the disk is full.
    """
    source = next(iter(copies))
    try:
        with ExitStack() as open_files:
            readers = {each: open_files.enter_context(closing(_connect(each))) for each in copies}
            with ExitStack() as writers_wait:
                for each in copies:
                    source = each
                    lock = writers_wait.enter_context(closing(_connect(each)))
                    lock.execute("BEGIN IMMEDIATE")
                for reader in readers.values():
                    reader.execute("BEGIN")
                    reader.execute("SELECT count(*) FROM sqlite_master").fetchone()  # only now it sees one state
            pages = {each: _count_pages(reader) for each, reader in readers.items()}
            done = 0
            for each, target in copies.items():
                source = each
                target.touch(mode=0o600)
                with _named(target), closing(sqlite3.connect(target)) as new:
                    _copy(readers[each], new, lambda copied, before=done: report(before + copied, sum(pages.values())))
                    new.execute("PRAGMA journal_mode=DELETE")  # one file, without the log beside it
                done += pages[each]
    except sqlite3.Error as error:
        raise explain(error, source) or error from error


@contextmanager
def _named(target: Path) -> Generator[None]:
    """A disk that is full is that of the copy; other faults are those of the original."""
    try:
        yield
    except sqlite3.Error as error:
        if error.sqlite_errorcode & 0xFF in {sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN}:
            raise explain(error, target) or error from error
        raise


def count_rows(file: Path) -> dict[str, int]:
    """Returns the number of rows of each table of a copy. The tables of an index of words do not count."""
    with closing(sqlite3.connect(file)) as database:
        return {
            name: database.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]  # noqa: S608 - names of tables
            for name in list_tables(database)
        }


def find_copy_revision(file: Path) -> str:
    """Returns the revision of the schema of a copy; empty for a database that is not the store."""
    with closing(sqlite3.connect(file)) as database:
        if database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (REVISION_TABLE,)).fetchone() is None:
            return ""
        return str(database.execute(f"SELECT version_num FROM {REVISION_TABLE}").fetchone()[0])  # noqa: S608


def check_copy(file: Path, expected: Mapping[str, int]) -> None:
    """Looks through every page, reference and row count of a copy, and reads rows of each table. Raises
    NeedsAttention for the first thing that is wrong.
    """
    try:
        with closing(sqlite3.connect(file)) as database:
            faults = [row[0] for row in database.execute("PRAGMA integrity_check(1)")]
            if faults != ["ok"]:
                raise _refuse(file, str(faults[0]))
            orphan = database.execute("PRAGMA foreign_key_check").fetchone()
            if orphan is not None:
                raise _refuse(file, f"row {orphan[1]} of {orphan[0]} refers to a row of {orphan[2]} that is gone")
            for name in list_tables(database):
                database.execute(f'SELECT * FROM "{name}" ORDER BY random() LIMIT 3').fetchall()  # noqa: S608
        found = count_rows(file)
    except sqlite3.Error as error:
        raise _refuse(file, str(error)) from error
    if found != expected:
        wrong = min(name for name in {*found, *expected} if found.get(name) != expected.get(name))
        raise _refuse(file, f"{wrong} has {found.get(wrong, 0)} rows and should have {expected.get(wrong, 0)}")


def _connect(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(file, isolation_level=None, timeout=BUSY_TIMEOUT_MS / 1000)


def _count_pages(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA page_count").fetchone()[0])


def _copy(reader: sqlite3.Connection, new: sqlite3.Connection, report: Callable[[int], None]) -> None:
    reader.backup(new, pages=PAGES_PER_STEP, progress=lambda _status, left, total: report(total - left))


def list_tables(database: sqlite3.Connection, schema: str = "main") -> Sequence[str]:
    """Returns the names of all tables but those of an index of words."""
    rows = database.execute(f"SELECT name, sql FROM {schema}.sqlite_master WHERE type = 'table' ORDER BY name")  # noqa: S608
    rows = rows.fetchall()
    virtual = [name for name, sql in rows if str(sql).upper().startswith("CREATE VIRTUAL")]
    own = [
        *virtual,
        *(f"{name}_{part}" for name in virtual for part in ("data", "idx", "config", "docsize", "content")),
    ]
    return [name for name, _ in rows if name not in own and not name.startswith("sqlite_")]


def _refuse(file: Path, why: str) -> NeedsAttention:
    return NeedsAttention(
        f"The copy {file.name} of a database is not whole.",
        code="backup_damaged",
        why=why,
        fix="Use another backup. If this one was made just now, run `denizen doctor`.",
    )
