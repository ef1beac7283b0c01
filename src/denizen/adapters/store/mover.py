"""Moves the whole store to another database while it is in use, from SQLite to Postgres or back.

1. Triggers note the key of every row that changes from now on (`change_log`).
2. All rows are copied in batches. The place in each table is committed with the batch, so a move that was killed goes
   on from there. References are not checked meanwhile, since rows of one moment come from several.
3. Changed rows are copied again until few are left; then, against one state of the source, every table of both
   databases is counted and hashed.
4. In one short pause, in which nobody writes, the last changes are copied and compared, and the source is closed for
   writing for good. Whatever fails before that leaves the source as it was.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from denizen.adapters.store.change_log import (
    Change,
    create_state,
    drop_changes,
    read_changes,
    read_state,
    refuse_writes,
    start_noting,
    stop_noting,
    write_state,
)
from denizen.adapters.store.columns import unescape
from denizen.adapters.store.dialect import REVISION_TABLE, SqlDialect
from denizen.adapters.store.migrator import migrate
from denizen.adapters.store.plain_rows import (
    Row,
    count,
    delete_rows,
    digest_table,
    find_rows,
    insert_rows,
    iterate,
    list_plain_tables,
    read_key,
)
from denizen.adapters.store.sqlite import SqliteDialect
from denizen.domain.errors import Conflict, NeedsAttention
from denizen.domain.store_move import MoveProgress, MoveStage

FEW_CHANGES = 200
"""With no more changes than these left, the pause is short."""
KEYS_PER_STATEMENT = 500
_WORD_TABLES = ("message_words", "post_words", "passage_words")

ReportMove = Callable[[MoveProgress], None]

_FOREIGN_KEYS = sa.text(
    "SELECT conrelid::regclass::text AS name, conname, pg_get_constraintdef(oid) AS definition FROM pg_constraint"
    " WHERE contype = 'f' AND connamespace = current_schema()::regnamespace"
)
_NUMBERED = sa.text(
    "SELECT table_name, column_name, pg_get_serial_sequence(format('%I.%I', table_schema, table_name), column_name) AS"
    " sequence FROM information_schema.columns WHERE table_schema = current_schema()"
)


class StoreMover:
    """One move from `source` to `target`. `target` names the latter without a password."""

    def __init__(self, source: SqlDialect, target: SqlDialect, name: str, report: ReportMove) -> None:
        self._source = source
        self._target = target
        self._name = name
        self._report = report
        self._tables = list_plain_tables()
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        """Ends the move before its pause; the source is used as before. What was copied stays for another try."""
        self._cancelled.set()

    def run(self, switch: Callable[[], None]) -> MoveProgress:
        """Moves everything. `switch` is called at the end, when the target is what is to be used; after a move that was
        killed right there, a second one calls it.

        Raises Conflict for a target with other data and for a move that was cancelled, NeedsAttention when the two
        databases differ, and what the databases raise.
        """
        try:
            migrate(self._source)
            migrate(self._target)
            self._target.prepare()
            with self._open(self._source) as source, self._open(self._target) as target:
                self._prepare(source, target)
                pause_s = 0.0
                if read_state(source, "moved_to") != read_state(target, "id"):
                    self._copy(source, target)
                    self._follow(source, target)
                    self._verify(source, target)
                    pause_s = self._switch(source, target)
                switch()
                self._finish(target)
        except DBAPIError as error:
            raise self._source.explain(error) or self._target.explain(error) or error from error
        done = MoveProgress(stage=MoveStage.DONE, target=self._name, pause_s=pause_s)
        self._report(done)
        return done

    @contextmanager
    def _open(self, dialect: SqlDialect) -> Generator[sa.Connection]:
        with dialect.engine.connect() as connection:
            if connection.dialect.name == "postgresql":
                for deadline in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"):
                    connection.exec_driver_sql(f"SET {deadline} = 0")
                connection.commit()
            else:
                connection.exec_driver_sql("PRAGMA foreign_keys=OFF")
            yield connection

    @contextmanager
    def _writing(self, connection: sa.Connection) -> Generator[None]:
        """One transaction that writes."""
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        try:
            yield
            connection.commit()
        except BaseException:
            connection.rollback()
            raise

    def _prepare(self, source: sa.Connection, target: sa.Connection) -> None:
        # What an earlier move into this database has left does not count.
        is_begun = sa.inspect(source).has_table("move_changes") or bool(read_state(source, "moved_to"))
        begun = read_state(source, "id") if is_begun else ""
        source.rollback()
        _check_complete(source, self._tables)
        if not begun:
            begun = token_hex(16)
            with self._writing(source):
                create_state(source)
                start_noting(source, self._tables)
                write_state(source, "id", begun)
        found = read_state(target, "id")
        target.rollback()
        if found == begun:
            return
        if found or any(count(target, table) for table in self._tables):
            raise Conflict(
                f"The database {self._name} holds other data.",
                code="move_not_empty",
                why="A move never overwrites anything.",
                fix="Make an empty database and move there.",
            )
        target.rollback()
        with self._writing(target):
            create_state(target)
            write_state(target, "id", begun)
            write_state(target, "references", json.dumps(_drop_references(target)))

    def _copy(self, source: sa.Connection, target: sa.Connection) -> None:
        total = sum(count(source, table) for table in self._tables)
        done = 0
        for table in self._tables:
            place: dict[str, Any] = json.loads(read_state(target, f"table {table.name}") or "{}")
            done += place.get("rows", 0)
            source.rollback()
            target.rollback()
            if place.get("is_done"):
                continue
            rows = place.get("rows", 0)
            for batch in iterate(source, table, place.get("key")):
                source.rollback()  # each batch sees a state of its own, so that no old one has to be kept
                rows, done = rows + len(batch), done + len(batch)
                with self._writing(target):
                    self._insert(target, table, batch)
                    place = {"key": read_key(table, batch[-1]), "rows": rows}
                    write_state(target, f"table {table.name}", json.dumps(place))
                self._tell(MoveStage.COPYING, table.name, done, max(total, done))
            with self._writing(target):
                write_state(target, f"table {table.name}", json.dumps({**place, "is_done": True}))

    def _follow(self, source: sa.Connection, target: sa.Connection) -> None:
        before = 0
        while True:
            changes = len(self._take_over(source, target))
            self._tell(MoveStage.FOLLOWING, "", changes, 0)
            if changes <= FEW_CHANGES or changes >= before > 0:  # it does not get fewer: they are written that quickly
                return
            before = changes

    def _verify(self, source: sa.Connection, target: sa.Connection) -> None:
        self._take_over(source, target, compare=True)
        self._follow(source, target)

    def _take_over(self, source: sa.Connection, target: sa.Connection, *, compare: bool = False) -> Sequence[Change]:
        """Copies the rows that changed, as one state of the source has them. With `compare` it then compares all of
        that state.
        """
        with ExitStack() as reading:
            state = reading.enter_context(self._open(self._source))
            if state.dialect.name == "sqlite":
                state.exec_driver_sql("BEGIN")
            else:
                state.execution_options(isolation_level="REPEATABLE READ")
            changes = read_changes(state)
            with self._writing(target):
                self._apply(state, target, changes)
            for number, table in enumerate(self._tables if compare else (), start=1):
                self._tell(MoveStage.VERIFYING, table.name, number, len(self._tables))
                expected, found = digest_table(state, table), digest_table(target, table)
                if expected != found:
                    raise _differ(table.name, f"{expected.rows} rows became {found.rows}")
            target.rollback()
            state.rollback()
        with self._writing(source):
            drop_changes(source, changes)
        return changes

    def _apply(self, source: sa.Connection, target: sa.Connection, changes: Sequence[Change]) -> None:
        parts = list(self._split(changes))
        for table, keys in parts:
            delete_rows(target, table, keys)
        for table, keys in parts:
            self._insert(target, table, find_rows(source, table, keys), replaced=True)

    def _split(self, changes: Sequence[Change]) -> Iterator[tuple[sa.Table, Sequence[Sequence[Any]]]]:
        """Yields the changed keys of each table, in parts that fit into a statement."""
        for table in self._tables:
            keys = list(dict.fromkeys(each.key for each in changes if each.table == table.name))
            for start in range(0, len(keys), KEYS_PER_STATEMENT):
                yield table, keys[start : start + KEYS_PER_STATEMENT]

    def _switch(self, source: sa.Connection, target: sa.Connection) -> float:
        self._tell(MoveStage.SWITCHING, "", 0, 0)
        began_s = time.monotonic()
        with self._writing(source):
            if source.dialect.name == "postgresql":
                names = ", ".join(f'"{table.name}"' for table in self._tables)
                source.exec_driver_sql(f"LOCK TABLE {names} IN SHARE ROW EXCLUSIVE MODE")
            changes = read_changes(source)
            with self._writing(target):
                self._apply(source, target, changes)
                self._compare(source, target, changes)
                _take_numbering(source, target, self._tables)
                _restore_references(target, json.loads(read_state(target, "references")))
            stop_noting(source, self._tables)
            refuse_writes(source, self._tables)
            write_state(source, "moved_to", read_state(target, "id"))
        return time.monotonic() - began_s

    def _compare(self, source: sa.Connection, target: sa.Connection, changes: Sequence[Change]) -> None:
        for table in self._tables:
            expected, found = count(source, table), count(target, table)
            if expected != found:
                raise _differ(table.name, f"{expected} rows became {found}")
        for table, keys in self._split(changes):
            if sorted(map(repr, find_rows(source, table, keys))) != sorted(map(repr, find_rows(target, table, keys))):
                raise _differ(table.name, "the last changes arrived differently")

    def _finish(self, target: sa.Connection) -> None:
        """Checks what may take long and can wait, and forgets what the move needed."""
        if target.dialect.name == "postgresql":
            for name, constraint, _ in json.loads(read_state(target, "references") or "[]"):
                target.exec_driver_sql(f'ALTER TABLE {name} VALIDATE CONSTRAINT "{constraint}"')
            target.exec_driver_sql("DROP TABLE move_state")
            target.commit()
            return
        disorder = self._target.find_disorder(target)
        if disorder is not None:
            raise _differ("the new database", disorder)
        with self._writing(target):
            target.exec_driver_sql("DROP TABLE move_state")

    def _insert(self, target: sa.Connection, table: sa.Table, rows: Sequence[Row], *, replaced: bool = False) -> None:
        insert_rows(target, table, rows, replaced=replaced)
        if table.name == "vectors":
            self._target.vector_index.learn(
                target,
                [
                    {name: unescape(value) if isinstance(value, str) else value for name, value in row.items()}
                    for row in rows
                ],
            )

    def _tell(self, stage: MoveStage, table: str, done: int, total: int) -> None:
        if self._cancelled.is_set():
            raise Conflict("The move was cancelled.", code="move_cancelled", fix="Start it again to go on.")
        self._report(MoveProgress(stage=stage, target=self._name, table=table, done=done, total=total))


def copy_to_file(source: SqlDialect, file: Path, report: Callable[[int, int], None]) -> None:
    """Copies a store, as it is at one moment, into a new SQLite file. `report` is told the rows done, and all rows."""
    target_dialect = SqliteDialect(file)
    migrate(source)
    migrate(target_dialect)
    tables = list_plain_tables()
    try:
        with source.engine.connect() as state, target_dialect.engine.connect() as target:
            state.execution_options(isolation_level="REPEATABLE READ")
            for deadline in ("statement_timeout", "idle_in_transaction_session_timeout"):
                state.exec_driver_sql(f"SET {deadline} = 0")
            _check_complete(state, tables, keep=True)
            total, done = sum(count(state, table) for table in tables), 0
            target.exec_driver_sql("PRAGMA foreign_keys=OFF")
            target.exec_driver_sql("BEGIN IMMEDIATE")
            for table in tables:
                for batch in iterate(state, table):
                    insert_rows(target, table, batch)
                    done += len(batch)
                    report(done, total)
                if count(target, table) != count(state, table):
                    raise _differ(table.name, "rows are missing")
            _take_numbering(state, target, tables)
            target.commit()
            target.exec_driver_sql("PRAGMA journal_mode=DELETE")
            state.rollback()
    except DBAPIError as error:
        raise source.explain(error) or target_dialect.explain(error) or error from error


def forget_move(source: SqlDialect) -> None:
    """Ends a move for good: nothing is noted any more. What was copied stays where it is.

    Raises Conflict when the data has moved already.
    """
    with source.engine.connect() as connection:
        source.begin(connection, write=True)
        if read_state(connection, "moved_to"):
            raise Conflict("The data has moved already.", code="move_done", fix="Restart Denizen to use it there.")
        if read_state(connection, "id"):
            stop_noting(connection, list_plain_tables())
            connection.exec_driver_sql("DROP TABLE move_state")
        connection.commit()


def _drop_references(target: sa.Connection) -> list[list[str]]:
    if target.dialect.name != "postgresql":
        return []
    found = [[row.name, row.conname, row.definition] for row in target.execute(_FOREIGN_KEYS)]
    for name, constraint, _ in found:
        target.exec_driver_sql(f'ALTER TABLE {name} DROP CONSTRAINT "{constraint}"')
    return found


def _restore_references(target: sa.Connection, references: Sequence[Sequence[str]]) -> None:
    """Every row is as the source had it, which checks references; so old rows are looked at after the pause."""
    for name, constraint, definition in references:
        target.exec_driver_sql(f'ALTER TABLE {name} ADD CONSTRAINT "{constraint}" {definition} NOT VALID')


def _take_numbering(source: sa.Connection, target: sa.Connection, tables: Sequence[sa.Table]) -> None:
    """Lets new rows be numbered behind all that ever were."""
    last: dict[str, int] = {}
    if source.dialect.name == "sqlite":
        last = {row.name: row.seq for row in source.exec_driver_sql("SELECT name, seq FROM sqlite_sequence")}
    else:
        for name, _, sequence in source.execute(_NUMBERED).all():
            if sequence:
                last[name] = source.exec_driver_sql(f"SELECT last_value FROM {sequence}").scalar_one()  # noqa: S608
    if target.dialect.name == "sqlite":
        for row in target.exec_driver_sql("SELECT name, seq FROM sqlite_sequence").all():
            if last.get(row.name, 0) > row.seq:
                target.exec_driver_sql("UPDATE sqlite_sequence SET seq = ? WHERE name = ?", (last[row.name], row.name))
        return
    names = {table.name for table in tables}
    for name, column, sequence in target.execute(_NUMBERED).all():
        if sequence and name in names:
            most = max(target.exec_driver_sql(f'SELECT max("{column}") FROM "{name}"').scalar() or 0, last.get(name, 0))  # noqa: S608
            if most:
                target.exec_driver_sql(f"SELECT setval('{sequence}', {most})")


def _check_complete(source: sa.Connection, tables: Sequence[sa.Table], *, keep: bool = False) -> None:
    """Raises NeedsAttention for a table that would be left behind. With `keep` the transaction goes on."""
    found = set(sa.inspect(source).get_table_names()) - {"move_changes", "move_state", REVISION_TABLE}
    # The tables behind an index of words are made by the database from the rows of others.
    left = sorted(
        name for name in found - {table.name for table in tables} if not any(part in name for part in _WORD_TABLES)
    )
    if not keep:
        source.rollback()
    if left:
        raise NeedsAttention(
            f"The database has tables that Denizen does not know: {', '.join(left)}.",
            code="move_foreign",
            why="They would be left behind.",
            fix="Move them away yourself, then move again.",
        )


def _differ(table: str, why: str) -> NeedsAttention:
    return NeedsAttention(
        f"The copy differs from the original: {table}.",
        code="move_differs",
        why=why,
        fix="Nothing has changed. Move into a new empty database, and report what happened if it comes again.",
    )
