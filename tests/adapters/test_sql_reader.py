"""SQL of administrators: what they may read, and that nothing else comes out, on both databases."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import AsyncIterator, Iterable
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from denizen.adapters.store import open_sql_reader, open_store
from denizen.adapters.store.columns import EnumValue, EscapedText, JsonText, JsonTuple, PlatformId, Usd, UtcTime
from denizen.adapters.store.database import metadata
from denizen.adapters.store.sql_reader import SqliteReader, run_checked_on_postgres
from denizen.adapters.store.sql_views import MAX_ROWS, VIEWS, CheckedQuery
from denizen.domain.clock import SystemClock
from denizen.domain.errors import DenizenError, InvalidInput, LimitExceeded
from denizen.ports.sql import SqlReader, SqlRows
from tests.adapters.sql_attacks import ATTACKS

pytest_plugins = ["tests.postgres"]
pytestmark = pytest.mark.anyio

_PUBLIC_TEXTS = """
    users.name chats.owner chats.agent conversations.platform turns.agent turns.principal_kind turns.principal_name
    turns.model turns.failure_code steps.model steps.purpose steps.agent steps.principal steps.day tool_calls.tool
    usage_days.day usage_days.principal usage_days.source usage_days.model sources.label source_states.error_code
    approvals.agent approvals.requester approvals.platform approvals.tool gaps.agent gaps.platform
"""
PUBLIC = frozenset(_PUBLIC_TEXTS.split())
"""The texts that administrators may read."""


def fill(connection: sa.Connection) -> None:
    """Puts one row into each table, whose texts say where they stand; ids fit each other."""
    for table in metadata.sorted_tables:
        connection.execute(table.delete())
        row = {column.name: _value(table, column) for column in table.columns}
        connection.execute(table.insert().values(row))


def _value(table: sa.Table, column: sa.Column[Any]) -> object:
    kind = column.type
    if isinstance(kind, EnumValue):
        return next(iter(kind.kind))
    if isinstance(kind, UtcTime):
        return datetime(2026, 11, 20, 12, tzinfo=UTC)
    if isinstance(kind, JsonTuple):
        return [f"canary {table.name}.{column.name}"]
    if isinstance(kind, JsonText):
        return {"x": f"canary {table.name}.{column.name}"}
    if isinstance(kind, sa.Boolean):
        return False
    if isinstance(kind, sa.LargeBinary):
        return b"canary"
    if isinstance(kind, sa.Text | EscapedText | PlatformId):
        return "id1" if column.name == "id" or column.name.endswith("_id") else f"canary {table.name}.{column.name}"
    return Decimal(1) if isinstance(kind, Usd) else 1


def find_canaries(text: str) -> set[str]:
    return set(re.findall(r"canary (\w+\.\w+)", text))


def dump(path: Path) -> list[object]:
    with closing(sqlite3.connect(path)) as connection:
        names = sorted(row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'"))
        return [[name, connection.execute(f'SELECT * FROM "{name}"').fetchall()] for name in names]


def show(rows: SqlRows) -> str:
    return repr((list(rows.columns), [list(row) for row in rows.rows]))


@pytest.fixture(scope="module")
def sqlite_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sql") / "store.db"


@pytest.fixture
async def sqlite_reader(sqlite_path: Path) -> SqliteReader:
    if not sqlite_path.exists():
        store = await open_store(f"sqlite:///{sqlite_path}", clock=SystemClock())
        await store.aclose()
        with sa.create_engine(f"sqlite:///{sqlite_path}").begin() as connection:
            fill(connection)
    return SqliteReader(sqlite_path)


@pytest.fixture
async def postgres_reader(postgres_kept_url: str) -> AsyncIterator[SqlReader]:
    store = await open_store(postgres_kept_url, clock=SystemClock())
    await store.aclose()
    engine = sa.create_engine(postgres_kept_url.replace("postgresql://", "postgresql+psycopg://"))
    names = ", ".join(metadata.tables)
    with engine.begin() as connection:
        connection.exec_driver_sql("SET session_replication_role = replica")
        connection.exec_driver_sql(f"TRUNCATE {names} RESTART IDENTITY")
        fill(connection)
    yield open_sql_reader(postgres_kept_url)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"TRUNCATE {names} RESTART IDENTITY")
    engine.dispose()


async def attack(reader: SqlReader, queries: Iterable[str]) -> list[str]:
    """Returns those that were not refused, or whose refusal tells what it must not."""
    through: list[str] = []
    for query in queries:
        try:
            rows = await reader.select(query)
        except (InvalidInput, LimitExceeded) as error:
            if "canary" in error.explain() or len(error.explain()) > 1000:
                through.append(f"{query} -> {error.explain()}")
        else:
            through.append(f"{query} -> {show(rows)}")
    return through


@pytest.mark.proves("SW8", "S-admin-tool-run-sql")
async def test_every_attack_is_refused_on_sqlite(sqlite_reader: SqliteReader, sqlite_path: Path) -> None:
    assert len(ATTACKS) >= 200
    before = dump(sqlite_path)
    assert await attack(sqlite_reader, ATTACKS) == []
    assert dump(sqlite_path) == before


@pytest.mark.proves("SW8", "S-admin-tool-run-sql")
@pytest.mark.xdist_group("postgres")
async def test_every_attack_is_refused_on_postgres(postgres_reader: SqlReader) -> None:
    assert await attack(postgres_reader, ATTACKS) == []
    rows = await postgres_reader.select("SELECT count(*) FROM people")
    assert list(rows.rows[0]) == [1]


@pytest.mark.proves("SW8")
async def test_the_views_show_public_texts_only_on_sqlite(sqlite_reader: SqliteReader) -> None:
    shown = [show(await sqlite_reader.select(f"SELECT * FROM {view}")) for view in VIEWS]
    assert all("id1" in each or "canary" in each or view == "votes" for view, each in zip(VIEWS, shown, strict=True))
    assert find_canaries(" ".join(shown)) <= PUBLIC


@pytest.mark.proves("SW8")
@pytest.mark.xdist_group("postgres")
async def test_the_views_show_public_texts_only_on_postgres(postgres_reader: SqlReader) -> None:
    shown = [show(await postgres_reader.select(f"SELECT * FROM {view}")) for view in VIEWS]
    assert find_canaries(" ".join(shown)) <= PUBLIC


async def test_no_view_has_the_name_of_a_table() -> None:
    assert not VIEWS.keys() & metadata.tables.keys()


GOOD = (
    "SELECT agent, count(*) AS turns FROM all_turns GROUP BY agent ORDER BY turns DESC LIMIT 5",
    "SELECT p.name, sum(d.messages) FROM people p LEFT JOIN daily_usage d ON d.principal = p.principal GROUP BY p.name",
    "WITH busy AS (SELECT principal, count(*) AS n FROM all_turns GROUP BY principal) SELECT * FROM busy WHERE n > 0",
    "SELECT tool, round(avg(duration_ms), 1), count(*) FILTER (WHERE is_error) FROM tool_uses GROUP BY tool",
    "SELECT name, role FROM people WHERE name LIKE '%a%' AND role IN ('member', 'owner') OR NOT is_verified",
    "SELECT name FROM people UNION SELECT label FROM all_sources ORDER BY 1",
    "SELECT model, row_number() OVER (PARTITION BY agent ORDER BY created_at) FROM model_requests",
    "SELECT CASE WHEN status = 'done' THEN 'ok' ELSE coalesce(failure_code, '?') END, lower(model) FROM all_turns;",
    "SELECT count(*) FROM all_chats WHERE owner IN (SELECT principal FROM people)",
)


async def test_ordinary_questions_are_answered_on_sqlite(sqlite_reader: SqliteReader) -> None:
    for query in (
        *GOOD,
        "SELECT date(opened_at), strftime('%H', opened_at) FROM all_turns WHERE opened_at > date('now', '-9 days')",
    ):
        assert (await sqlite_reader.select(query)).columns


@pytest.mark.xdist_group("postgres")
async def test_ordinary_questions_are_answered_on_postgres(postgres_reader: SqlReader) -> None:
    week = "SELECT date_trunc('week', opened_at), extract(hour FROM opened_at) FROM all_turns"
    for query in (*GOOD, week, f"{week} WHERE opened_at > now() - interval '30 days'"):
        assert (await postgres_reader.select(query)).columns


class TestWithoutTheCheck:
    """What the databases refuse themselves, should the check of a query let it through."""

    @pytest.mark.proves("SW8")
    async def test_sqlite_gives_away_nothing(self, sqlite_reader: SqliteReader, sqlite_path: Path) -> None:
        before, unchecked = dump(sqlite_path), frozenset({"people"})
        for query in ATTACKS:
            with closing(sqlite_reader._connect()) as connection:
                try:
                    shown = show(sqlite_reader.run_checked(connection, CheckedQuery(query, unchecked)))
                except (sqlite3.Error, TypeError, ValueError):
                    continue
            assert find_canaries(shown) <= PUBLIC, query
        assert dump(sqlite_path) == before

    @pytest.mark.proves("SW8")
    @pytest.mark.xdist_group("postgres")
    async def test_postgres_reads_no_other_table_and_writes_nothing(
        self, postgres_reader: SqlReader, postgres_kept_url: str
    ) -> None:
        del postgres_reader
        queries = [each for each in ATTACKS if ("pg_sleep" not in each and "users" in each) or "pg_" in each]
        for query in (each for each in queries if each.lstrip("(").upper().startswith(("SELECT", "WITH", "TABLE"))):
            if "pg_sleep" in query or "(SELECT 1" in query[:20]:
                continue
            with psycopg.connect(postgres_kept_url) as driver:
                driver.read_only = True
                try:
                    shown = show(run_checked_on_postgres(driver, CheckedQuery(query, frozenset({"votes"})), "public"))
                except DenizenError as error:
                    assert "canary" not in error.explain()
                    continue
            assert not find_canaries(shown), query

    @pytest.mark.proves("SW8")
    @pytest.mark.xdist_group("postgres")
    async def test_postgres_calls_no_function_that_is_not_known(
        self, postgres_reader: SqlReader, postgres_kept_url: str
    ) -> None:
        del postgres_reader
        through: list[str] = []
        with psycopg.connect(postgres_kept_url) as driver:
            # All of this is rolled back. The functions stand for those of extensions that an operator installed.
            driver.execute("CREATE SEQUENCE public.own_numbers")
            for name in ("dblink(text, text)", '"Sneaky"(int)', "lower(text)"):
                body = "LANGUAGE plpgsql AS $$ BEGIN RETURN now()::text; END $$"
                driver.execute(f"CREATE FUNCTION public.{name} RETURNS text {body}".encode())
            for text in (query.replace("{}", call) for call in CALLS for query in QUERIES):
                try:
                    with driver.transaction():
                        run_checked_on_postgres(driver, CheckedQuery(text, frozenset({"votes"})), "public")
                except InvalidInput as error:
                    assert (error.code, "may not be used here" in error.why) == ("sql_refused", True), text
                else:
                    through.append(text)
            driver.rollback()
        assert through == []

    @pytest.mark.proves("SW8")
    @pytest.mark.xdist_group("postgres")
    @pytest.mark.parametrize("kind", ["VIEW", "MATERIALIZED VIEW"])
    async def test_postgres_reads_no_view_of_somebody_else(
        self, postgres_reader: SqlReader, postgres_kept_url: str, kind: str
    ) -> None:
        del postgres_reader
        peek = CheckedQuery("SELECT * FROM public.peek", frozenset({"votes"}))
        with psycopg.connect(postgres_kept_url) as driver:
            driver.execute(f"CREATE {kind} public.peek AS SELECT * FROM public.users".encode())
            with pytest.raises(InvalidInput, match="may not run"):
                run_checked_on_postgres(driver, peek, "public")
            driver.rollback()

    @pytest.mark.xdist_group("postgres")
    async def test_texts_and_names_that_look_like_calls_are_none_on_postgres(self, postgres_reader: SqlReader) -> None:
        query = (
            "SELECT name AS \"pg_sleep(1)\" FROM people AS \"f(\" WHERE name <> 'it''s pg_read_file(1)' OR name = '('"
        )
        assert (await postgres_reader.select(query)).columns == ["pg_sleep(1)"]


CALLS = (
    "pg_read_file('/etc/passwd')",
    "\"pg_read_file\"('/etc/passwd')",
    "pg_catalog.pg_read_binary_file('/etc/passwd')",
    "pg_sleep(0)",
    "set_config('transaction_read_only', 'off', false)",
    "current_setting('data_directory')",
    "lo_export(1, '/tmp/x')",
    "lo_import('/etc/passwd')",
    "query_to_xml('SELECT * FROM users', true, true, '')",
    "pg_terminate_backend(1)",
    "pg_advisory_lock(1)",
    "pg_reload_conf()",
    "nextval('public.own_numbers')",
    "public.dblink('host=x', 'SELECT 1')",
    'public."Sneaky"(1)',
    "public.lower('x')",
    "version()",
    "has_table_privilege('public.users', 'select')",
)
QUERIES = (
    "SELECT {}",
    "SELECT count(*) FROM public.message_votes WHERE ({})::text IS NULL",
    "SELECT vote FROM public.message_votes ORDER BY ({})::text",
    "SELECT max((SELECT ({})::text)), count(*) FROM public.message_votes GROUP BY ({})::text",
)


async def test_a_query_that_takes_too_long_is_stopped_on_sqlite(sqlite_path: Path, sqlite_reader: SqliteReader) -> None:
    del sqlite_reader
    seconds = count()
    reader = SqliteReader(sqlite_path, timeout_s=2.0, monotonic_s=lambda: float(next(seconds)))
    many = "(SELECT 1 AS x" + " UNION ALL SELECT 1" * 30 + ")"
    query = f"SELECT count(*) FROM {', '.join(f'{many} AS t{n}' for n in range(5))}"
    with pytest.raises(LimitExceeded, match="too long"):
        await reader.select(query)


@pytest.mark.xdist_group("postgres")
async def test_a_query_that_takes_too_long_is_stopped_on_postgres(
    postgres_reader: SqlReader, postgres_kept_url: str
) -> None:
    del postgres_reader
    from sqlalchemy import make_url

    from denizen.adapters.store.sql_reader import PostgresReader

    reader = PostgresReader(make_url(postgres_kept_url), timeout_s=0.2)
    many = "(SELECT 1 AS x" + " UNION ALL SELECT 1" * 30 + ")"
    query = f"SELECT count(*) FROM {', '.join(f'{many} AS t{n}' for n in range(6))}"
    with pytest.raises(LimitExceeded, match="too long"):
        await reader.select(query)


async def test_results_are_cut_to_200_rows_and_20000_characters(sqlite_reader: SqliteReader) -> None:
    twenty = "(SELECT 1 AS x" + " UNION ALL SELECT 1" * 19 + ")"
    rows = await sqlite_reader.select(f"SELECT 1 FROM {twenty} AS a, {twenty} AS b")
    assert (len(rows.rows), rows.is_cut) == (MAX_ROWS, True)
    long = await sqlite_reader.select(f"SELECT '{'x' * 600}' FROM {twenty} AS a, {twenty} AS b")
    assert long.is_cut
    assert len(str(long.rows[0][0])) == 501
    assert len(show(long)) < 21_000
