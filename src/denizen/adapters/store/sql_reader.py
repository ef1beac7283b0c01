"""Runs the SQL of administrators: read-only, on a connection of its own, limited in time, rows and size.

`sql_views` decides what may run. Should something slip through there, the database refuses it: SQLite asks an
authorizer about each column and function, and reads a file that is opened for reading only; Postgres runs it in a
read-only transaction after its plan was looked at, in which no other tables, no functions as tables and no functions
but those of `sql_views` may stand. So what functions could do (read files, sleep, change settings, connect elsewhere)
does not depend on the rights of Denizen's role. A connection is opened for each query: they are rare.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from anyio import to_thread

from denizen.adapters.store.columns import unescape
from denizen.adapters.store.sql_views import MAX_ROWS, VIEWS, CheckedQuery, check_query, describe_views
from denizen.domain.errors import DenizenError, InvalidInput, LimitExceeded, Unavailable
from denizen.domain.json import Json
from denizen.ports.sql import SqlReader, SqlRows

if TYPE_CHECKING:
    import sqlalchemy as sa

TIMEOUT_S = 5.0
MAX_CELL_CHARS = 500
MAX_RESULT_CHARS = 20_000
_STEPS = 10_000
"""SQLite looks at the clock after so many of its instructions."""
_MAX_VALUE_BYTES = 1_000_000


def open_reader(url: str) -> SqlReader:
    """Returns a reader of the store at the URL (`open_store`). Opens nothing yet."""
    from sqlalchemy import make_url

    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        return SqliteReader(Path(str(parsed.database)))
    return PostgresReader(parsed)


class SqliteReader:
    """Implements `denizen.ports.sql.SqlReader` on a file."""

    def __init__(
        self, path: Path, *, timeout_s: float = TIMEOUT_S, monotonic_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = path
        self._timeout_s = timeout_s
        self._monotonic_s = monotonic_s

    def describe(self) -> str:
        return f"Dialect: SQLite. Times are texts in UTC (2026-01-31 12:00:00.000000).\n{describe_views()}"

    async def select(self, query: str) -> SqlRows:
        return await to_thread.run_sync(self._select, query)

    def _select(self, query: str) -> SqlRows:
        checked = check_query(query, "sqlite", "main.")
        try:
            with closing(self._connect()) as connection:
                return self.run_checked(connection, checked)
        except sqlite3.Error as error:
            raise _explain_sqlite(error) from None

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
        connection.execute("PRAGMA query_only=ON")
        for limit, value in (
            (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
            (sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES),
            (sqlite3.SQLITE_LIMIT_SQL_LENGTH, 50_000),
            (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 200),
            (sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0),
        ):
            connection.setlimit(limit, value)
        return connection

    def run_checked(self, connection: sqlite3.Connection, checked: CheckedQuery) -> SqlRows:
        """Runs a query of which the connection allows no more than what its views need."""
        authorizer = _Authorizer(row[0] for row in connection.execute("SELECT lower(name) FROM sqlite_master"))
        connection.set_authorizer(authorizer.learn)
        for name in checked.views:
            connection.execute(f"{VIEWS[name].write('main.')} LIMIT 0")
        connection.set_authorizer(authorizer.decide)
        until_s = self._monotonic_s() + self._timeout_s
        connection.set_progress_handler(lambda: self._monotonic_s() > until_s, _STEPS)
        cursor = connection.execute(checked.sql)
        return _shape([str(column[0]) for column in cursor.description], cursor)


_SQLITE_FUNCTION_NAMES = """
    count sum avg min max total round abs coalesce ifnull nullif lower upper length substr substring trim concat
    row_number rank dense_rank lag lead first_value last_value like instr iif floor ceil ceiling
    date time datetime strftime julianday unixepoch current_date current_time current_timestamp
"""
_SQLITE_FUNCTIONS = frozenset(_SQLITE_FUNCTION_NAMES.split())
"""Those that `sql_views` allows, as SQLite calls them."""


class _Authorizer:
    """Allows the columns that were read while it learned, and of other tables nothing."""

    def __init__(self, tables: Iterable[str]) -> None:
        self._others = set(tables) | {"sqlite_master", "sqlite_schema", "sqlite_temp_master"}
        self._columns: set[tuple[str, str]] = set()

    def learn(self, action: int, one: str | None, two: str | None, _database: str | None, _by: str | None) -> int:
        if action == sqlite3.SQLITE_READ:
            self._columns.add((str(one).lower(), str(two).lower()))
            self._others.discard(str(one).lower())
        return sqlite3.SQLITE_OK

    def decide(self, action: int, one: str | None, two: str | None, _database: str | None, _by: str | None) -> int:
        if action == sqlite3.SQLITE_SELECT:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_READ:
            table, column = str(one).lower(), str(two).lower()
            # Without a column rows are counted; subqueries that are read so have names of their own.
            is_known = (table, column) in self._columns or (not column and table not in self._others)
            return sqlite3.SQLITE_OK if is_known else sqlite3.SQLITE_DENY
        is_function = action == sqlite3.SQLITE_FUNCTION and str(two).lower() in _SQLITE_FUNCTIONS
        return sqlite3.SQLITE_OK if is_function else sqlite3.SQLITE_DENY


def _explain_sqlite(error: sqlite3.Error) -> DenizenError:
    text = str(error)
    primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if primary == sqlite3.SQLITE_INTERRUPT:
        return _too_slow()
    if primary == sqlite3.SQLITE_ERROR and text.startswith(
        ("no such column", "ambiguous column", "misuse of", "wrong")
    ):
        return _wrong(text)
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR):
        return Unavailable("The database cannot be read now.", code="sql_unavailable", fix="Try again.")
    return _wrong("the database cannot run it")


class PostgresReader:
    """Implements `denizen.ports.sql.SqlReader` on a server."""

    def __init__(self, url: sa.URL, *, timeout_s: float = TIMEOUT_S) -> None:
        self._url = url
        self._timeout_s = timeout_s

    def describe(self) -> str:
        return f"Dialect: PostgreSQL. Times are timestamptz.\n{describe_views()}"

    async def select(self, query: str) -> SqlRows:
        return await to_thread.run_sync(self._select, query)

    def _select(self, query: str) -> SqlRows:
        from sqlalchemy.exc import SQLAlchemyError

        from denizen.adapters.store.postgres import PostgresDialect

        engine = PostgresDialect(self._url, 2).engine
        try:
            with engine.connect() as connection:
                driver = cast("Any", connection.connection.driver_connection)
                driver.read_only = True
                schema = str(connection.exec_driver_sql("SELECT quote_ident(current_schema())").scalar())
                checked = check_query(query, "postgres", f"{schema}.")
                connection.exec_driver_sql(f"SET LOCAL statement_timeout = {round(self._timeout_s * 1000)}")
                connection.exec_driver_sql("SET LOCAL TIME ZONE 'UTC'")
                return run_checked_on_postgres(driver, checked, schema)
        except SQLAlchemyError:
            raise Unavailable("The database cannot be read now.", code="sql_unavailable", fix="Try again.") from None
        finally:
            engine.dispose()


def run_checked_on_postgres(driver: Any, checked: CheckedQuery, schema: str) -> SqlRows:  # noqa: ANN401 - of psycopg
    """Runs a query in the read-only transaction of the connection, if its plan reads the tables of its views only, with
    known functions.
    """
    import psycopg

    try:
        with driver.cursor() as cursor:
            # Functions of other schemas are found by no plain name, and stand in the plan with that of their schema.
            cursor.execute(b"SET LOCAL search_path = pg_catalog")
            cursor.execute(b"EXPLAIN (VERBOSE, FORMAT JSON) " + checked.sql.encode())
            _check_plan(cursor.fetchone()[0], _list_base_tables(checked.views), schema.strip('"'))
            cursor.execute(checked.sql.encode())
            return _shape([column.name for column in cursor.description], cursor)
    except psycopg.Error as error:
        state = error.sqlstate or ""
        if state == "57014":
            raise _too_slow() from None
        if state.startswith("42") and error.diag.message_primary:
            raise _wrong(error.diag.message_primary) from None
        if not state or state.startswith(("08", "53", "57")):
            raise Unavailable("The database cannot be read now.", code="sql_unavailable", fix="Try again.") from None
        raise _wrong("the database cannot run it") from None


def _list_base_tables(views: Iterable[str]) -> frozenset[str]:
    words = (word for name in views for word in VIEWS[name].of.split())
    return frozenset(word.removeprefix("{schema}") for word in words if word.startswith("{schema}"))


_POSTGRES_FUNCTION_NAMES = """
    count sum avg min max round abs floor ceil ceiling lower upper length char_length substr substring
    btrim ltrim rtrim concat row_number rank dense_rank lag lead first_value last_value percentile_cont
    date date_trunc date_part to_char to_date to_timestamp now age timezone strpos position
    varchar varying numeric bpchar character timestamp timestamptz time interval text
"""
_POSTGRES_FUNCTIONS = frozenset(_POSTGRES_FUNCTION_NAMES.split())
"""Those that `sql_views` allows, as a plan calls them, and types, which are written alike."""
_PLAN_NAMES = frozenset({"Alias", "Relation Name", "Schema", "CTE Name", "Index Name", "Subplan Name"})
"""Parts of a plan that name something; the others are expressions, or words of Postgres."""
_QUOTED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*\"""")
_CALLED = re.compile(r"([\w$.~]+)\s*\(")


def _list_functions(expression: str) -> Iterator[str]:
    """Yields the functions that an expression of a plan calls. A name in quotes, as none of the known ones has, is `~`.
    Capitals are syntax, since names with capitals are quoted.
    """
    plain = _QUOTED.sub(lambda found: "~" if found[0].startswith('"') else "", expression)
    yield from (name for name in _CALLED.findall(plain) if not name.isupper() and name not in ("SubPlan", "InitPlan"))


def _check_plan(plan: object, tables: frozenset[str], schema: str) -> None:
    """Raises InvalidInput for a plan that reads other relations, or functions as relations, or calls others than the
    known functions.
    """
    if isinstance(plan, list):
        for each in cast("list[object]", plan):
            _check_plan(each, tables, schema)
    elif isinstance(plan, dict):
        node = cast("dict[str, object]", plan)
        relation = node.get("Relation Name")
        is_foreign = relation is not None and (relation not in tables or node.get("Schema") != schema)
        if is_foreign or node.keys() & {"Function Name", "Table Function Name"}:
            raise InvalidInput("This query may not run.", code="sql_refused", why="it reads more than the views")
        for key, each in node.items():
            if key not in _PLAN_NAMES:
                _check_plan(each, tables, schema)
    elif isinstance(plan, str) and (unknown := set(_list_functions(plan)) - _POSTGRES_FUNCTIONS):
        why = f"the function {min(unknown)[:50]} may not be used here"
        raise InvalidInput("This query may not run.", code="sql_refused", why=why)


def _shape(columns: Sequence[str], found: Iterable[Sequence[object]]) -> SqlRows:
    """Returns the rows, cut to what may be returned."""
    rows: list[Sequence[Json]] = []
    chars = 0
    for row in found:
        shown = [_to_json(value) for value in row]
        chars += sum(len(str(value)) for value in shown)
        if len(rows) == MAX_ROWS or chars > MAX_RESULT_CHARS:
            return SqlRows(columns, rows, is_cut=True)
        rows.append(shown)
    return SqlRows(columns, rows)


def _to_json(value: object) -> Json:
    if isinstance(value, str):
        text = unescape(value) or ""
        return text if len(text) <= MAX_CELL_CHARS else f"{text[:MAX_CELL_CHARS]}…"
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float | Decimal):
        return round(float(value), 6)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(" ", "seconds") if value.tzinfo else value.isoformat(" ", "seconds")
    if isinstance(value, date | timedelta):
        return str(value)
    return f"({type(value).__name__})"


def _too_slow() -> LimitExceeded:
    return LimitExceeded(
        "The query took too long and was stopped.",
        code="sql_slow",
        fix="Narrow it: fewer joins, a shorter time, fewer rows.",
    )


def _wrong(why: str) -> InvalidInput:
    return InvalidInput("The query is wrong.", code="sql_wrong", why=why, fix="Correct it; the views are listed.")
