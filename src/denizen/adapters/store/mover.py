"""Moves the whole store to another database while it is in use, from SQLite to Postgres or back.

1. Triggers note the key of every row that changes from now on (`change_log`).
2. All rows are copied in batches. The place in each table is committed with the batch, so a move that was killed goes
   on from there. References are not checked meanwhile, since rows of one moment come from several.
3. Changed rows are copied again until few are left; then, against one state of the source, every table of both
   databases is counted and hashed.
4. In one short pause, in which nobody writes, the last changes are copied and compared, and the source is closed for
   writing. All rows were compared before, so nothing is counted now: the pause is as short with many rows as with few.

Whatever fails, or is cancelled, before the end of the pause leaves the source in use. If the configuration cannot be
written after it, the source is opened again.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from os import stat_result
from os.path import samestat
from pathlib import Path
from secrets import token_hex
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError

from denizen.adapters.store.change_log import (
    Change,
    allow_writes,
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
from denizen.domain.errors import Conflict, DenizenError, NeedsAttention, NotFound
from denizen.domain.store_move import MoveProgress, MoveStage

FEW_CHANGES = 200
"""With no more changes than these left, the pause is short."""
KEYS_PER_STATEMENT = 500
LOCK_PATIENCE_MS = 5000
"""How long the pause waits for others to end what they write; later ones wait behind it."""
STEPS_PER_LOOK = 100_000
"""After how many steps of SQLite a statement that takes long notices that the move was cancelled."""
_WORD_TABLES = ("message_words", "post_words", "passage_words")

_log = logging.getLogger("denizen.store")

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
        self._is_final = False
        self._final_lock = threading.Lock()
        self._file: stat_result | None = None
        """The file of the source when the move began."""
        self._failed: sa.Engine | None = None
        """The database whose statement failed last."""
        for dialect in (source, target):
            event.listen(dialect.engine, "handle_error", self._note_failure)

    def cancel(self) -> bool:
        """Ends the move within seconds; the source is used as before, and what was copied stays for another try. False
        when it is too late: the pause ends right now.
        """
        with self._final_lock:
            if not self._is_final:
                self._cancelled.set()
            return not self._is_final

    def run(self, switch: Callable[[], None]) -> MoveProgress:
        """Moves everything. `switch` is called at the end, when the target is what is to be used; when it raises,
        the source is opened again. After a move that was killed right there, a second one calls it.

        Raises NotFound and NeedsAttention for a source that is gone or has no tables, Conflict for a target with other
        data, for a move that has begun to another target, was cancelled or is done, NeedsAttention when the two
        databases differ, and what the databases raise.
        """
        try:
            return self._run(switch)
        except DBAPIError as error:
            if self._cancelled.is_set():
                raise _cancelled() from error
            raise self._explain(error) from error

    def _run(self, switch: Callable[[], None]) -> MoveProgress:
        with self._open_source() as source:
            moved_to, place = read_state(source, "moved_to"), read_state(source, "target")
        if moved_to:
            with self._open(self._target) as target:
                if read_state(target, "id") != moved_to:
                    raise _done(place)
                target.rollback()
                switch()
                return self._finish(target, 0.0)
        migrate(self._source)
        migrate(self._target)
        self._target.prepare()
        with self._open_source() as source, self._open(self._target) as target:
            self._prepare(source, target)
            self._copy(source, target)
            self._follow(source, target)
            self._verify(source, target)
            pause_s = self._switch(source, target)
            try:
                switch()
            except BaseException:
                self._reopen(source)
                raise
            return self._finish(target, pause_s)

    def _note_failure(self, context: sa.ExceptionContext) -> None:
        self._failed = context.engine

    def _explain(self, error: DBAPIError) -> DenizenError:
        dialect = self._target if self._failed is self._target.engine else self._source
        return dialect.explain(error) or NeedsAttention(
            f"The move to {self._name} failed.",
            code="move_failed",
            why=str(error.orig).partition("\n")[0],
            fix="The old database stays in use. Move again; into an empty database, if this comes again.",
        )

    @contextmanager
    def _open_source(self) -> Generator[sa.Connection]:
        """Raises NotFound for a file that is not the one at the beginning, NeedsAttention for one without tables: what
        was lost must not be taken for what there is.
        """
        if isinstance(self._source, SqliteDialect):
            file = self._source.path
            found = file.stat() if file.exists() else None
            self._file = self._file or found
            if found is None or self._file is None or not samestat(found, self._file):
                raise NotFound(
                    f"The database {file} is gone.",
                    code="store_missing",
                    why="It was removed, moved away or replaced." if self._file else "There is no such file.",
                    fix="Put it back, then move again. Nothing has changed.",
                )
        with self._open(self._source) as source:
            if self._source.find_revision(source) is None:
                raise NeedsAttention(
                    "The database to move has no tables.",
                    code="store_empty",
                    why="It is new, or was emptied.",
                    fix="Check that the configuration names the right one. Nothing was moved.",
                )
            source.rollback()
            yield source

    @contextmanager
    def _open(self, dialect: SqlDialect) -> Generator[sa.Connection]:
        with dialect.engine.connect() as connection:
            if connection.dialect.name == "postgresql":
                for deadline in ("statement_timeout", "idle_in_transaction_session_timeout"):
                    connection.exec_driver_sql(f"SET {deadline} = 0")
                connection.exec_driver_sql(f"SET lock_timeout = {LOCK_PATIENCE_MS}")
                connection.commit()
            else:
                connection.exec_driver_sql("PRAGMA foreign_keys=OFF")
                driver: Any = connection.connection.driver_connection
                driver.set_progress_handler(self._cancelled.is_set, STEPS_PER_LOOK)
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
        is_begun = sa.inspect(source).has_table("move_changes")
        begun, place = (read_state(source, "id"), read_state(source, "target")) if is_begun else ("", "")
        source.rollback()
        _check_complete(source, self._tables)
        found = read_state(target, "id")
        if found and found == begun:
            target.rollback()
            with self._writing(target):  # they are there when an earlier try ended right before or after its pause
                for name, constraint, _ in json.loads(read_state(target, "references")):
                    target.exec_driver_sql(f'ALTER TABLE {name} DROP CONSTRAINT IF EXISTS "{constraint}"')
            return
        if found or any(self._count(target, table) for table in self._tables):
            raise Conflict(
                f"The database {self._name} holds other data.",
                code="move_not_empty",
                why="A move never overwrites anything.",
                fix="Make an empty database and move there.",
            )
        target.rollback()
        if begun and place not in {"", self._name}:
            raise Conflict(
                f"A move to {place} has begun.",
                code="move_elsewhere",
                why="It goes on there only.",
                fix=f"Move to {place} to go on, or give that move up with `denizen db forget`, then move here.",
            )
        if not begun:
            begun = token_hex(16)
            with self._writing(source):
                create_state(source)
                start_noting(source, self._tables)
                write_state(source, "id", begun)
                write_state(source, "target", self._name)
        with self._writing(target):
            create_state(target)
            write_state(target, "id", begun)
            write_state(target, "references", json.dumps(_drop_references(target)))

    def _copy(self, source: sa.Connection, target: sa.Connection) -> None:
        total = sum(self._count(source, table) for table in self._tables)
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
        """Compares all rows of one state of the source. From there on changed rows are compared as they are copied, so
        both databases stay the same.
        """
        self._take_over(source, target, is_thorough=True)
        self._follow(source, target)

    def _take_over(
        self, source: sa.Connection, target: sa.Connection, *, is_thorough: bool = False
    ) -> Sequence[Change]:
        """Copies the rows that changed, as one state of the source has them, and compares them; with `is_thorough` all
        of that state.
        """
        with ExitStack() as reading:
            state = reading.enter_context(self._open_source())
            if state.dialect.name == "sqlite":
                state.exec_driver_sql("BEGIN")
            else:
                state.execution_options(isolation_level="REPEATABLE READ")
            changes = read_changes(state)
            with self._writing(target):
                self._apply(state, target, changes)
            if is_thorough:
                self._compare_all(state, target)
            target.rollback()
            state.rollback()
        with self._writing(source):
            drop_changes(source, changes)
        return changes

    def _compare_all(self, state: sa.Connection, target: sa.Connection) -> None:
        for number, table in enumerate(self._tables, start=1):
            self._tell(MoveStage.VERIFYING, table.name, number, len(self._tables))
            expected = digest_table(state, table, self._check_wanted)
            found = digest_table(target, table, self._check_wanted)
            if expected != found:
                raise _differ(table.name, f"{expected.rows} rows became {found.rows}")
        for dialect, connection in ((self._source, state), (self._target, target)):
            disorder = dialect.find_disorder(connection)
            if disorder is not None:
                raise NeedsAttention(
                    f"The {'old' if dialect is self._source else 'new'} database is damaged.",
                    code="move_damaged",
                    why=disorder,
                    fix="Nothing has changed. Repair it first; a new database is better made anew.",
                )

    def _apply(self, source: sa.Connection, target: sa.Connection, changes: Sequence[Change]) -> None:
        parts = list(self._split(changes))
        for table, keys in parts:
            delete_rows(target, table, keys)
        for table, keys in parts:
            self._check_wanted()
            rows = find_rows(source, table, keys)
            self._insert(target, table, rows, replaced=True)
            if sorted(map(repr, rows)) != sorted(map(repr, find_rows(target, table, keys))):
                raise _differ(table.name, "changed rows arrived differently")

    def _split(self, changes: Sequence[Change]) -> Iterator[tuple[sa.Table, Sequence[Sequence[Any]]]]:
        """Yields the changed keys of each table, in parts that fit into a statement."""
        for table in self._tables:
            keys = list(dict.fromkeys(each.key for each in changes if each.table == table.name))
            for start in range(0, len(keys), KEYS_PER_STATEMENT):
                yield table, keys[start : start + KEYS_PER_STATEMENT]

    def _switch(self, source: sa.Connection, target: sa.Connection) -> float:
        self._tell(MoveStage.SWITCHING, "", 0, 0)
        with self._open_source():  # the last look whether it is still there
            pass
        began_s = time.monotonic()
        with self._writing(source):
            if source.dialect.name == "postgresql":
                names = ", ".join(f'"{table.name}"' for table in self._tables)
                source.exec_driver_sql(f"LOCK TABLE {names} IN SHARE ROW EXCLUSIVE MODE")
            changes = read_changes(source)
            with self._writing(target):
                self._apply(source, target, changes)
                _take_numbering(source, target, self._tables)
                _restore_references(target, json.loads(read_state(target, "references")))
            stop_noting(source, self._tables)
            refuse_writes(source, self._tables)
            write_state(source, "moved_to", read_state(target, "id"))
            target.rollback()
            with self._final_lock:
                self._check_wanted()
                self._is_final = True
        return time.monotonic() - began_s

    def _reopen(self, source: sa.Connection) -> None:
        """Takes the pause back. Nobody could write since, so a later try goes on from here."""
        with self._writing(source):
            allow_writes(source, self._tables)
            start_noting(source, self._tables)
            write_state(source, "moved_to", "")

    def _finish(self, target: sa.Connection, pause_s: float) -> MoveProgress:
        """Reports the end, checks what takes long and can wait, and forgets what the move needed. The store has moved
        by now: a fault is no reason to say otherwise, and whoever follows the move is about to be restarted.
        """
        done = MoveProgress(stage=MoveStage.DONE, target=self._name, pause_s=pause_s)
        self._report(done)
        try:
            if target.dialect.name == "postgresql":
                for name, constraint, _ in json.loads(read_state(target, "references") or "[]"):
                    target.exec_driver_sql(f'ALTER TABLE {name} VALIDATE CONSTRAINT "{constraint}"')
            target.commit()
            with self._writing(target):
                target.exec_driver_sql("DROP TABLE move_state")
        except DBAPIError as error:
            _log.warning("the store has moved, but was not tidied up", extra={"why": type(error.orig).__name__})
        return done

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

    def _count(self, connection: sa.Connection, table: sa.Table) -> int:
        self._check_wanted()
        return count(connection, table)

    def _check_wanted(self) -> None:
        if self._cancelled.is_set():
            raise _cancelled()

    def _tell(self, stage: MoveStage, table: str, done: int, total: int) -> None:
        self._check_wanted()
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


def find_begun_move(connection: sa.Connection) -> str:
    """Returns the target of a move that has begun and has not ended, without a password; empty without one."""
    if read_state(connection, "moved_to") or not sa.inspect(connection).has_table("move_changes"):
        return ""
    return read_state(connection, "target") or "another database"


def forget_move(source: SqlDialect) -> None:
    """Ends a move for good: nothing is noted any more. What was copied stays where it is.

    Raises Conflict when the data has moved already.
    """
    with source.engine.connect() as connection:
        source.begin(connection, write=True)
        if read_state(connection, "moved_to"):
            raise _done(read_state(connection, "target"))
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


def _cancelled() -> Conflict:
    return Conflict(
        "The move was cancelled.",
        code="move_cancelled",
        why="The old database stays in use.",
        fix="Move to the same database again to go on, or give it up with `denizen db forget`.",
    )


def _done(place: str) -> Conflict:
    return Conflict(
        f"The data has moved to {place or 'another database'} already.",
        code="move_done",
        why="The old database is closed for writing.",
        fix="Restart Denizen, with `store.url` naming the new one.",
    )


def _differ(table: str, why: str) -> NeedsAttention:
    return NeedsAttention(
        f"The copy differs from the original: {table}.",
        code="move_differs",
        why=why,
        fix="Nothing has changed. Move into a new empty database, and report what happened if it comes again.",
    )
