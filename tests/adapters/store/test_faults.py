"""What goes wrong with a database is told by who has to act, and never tells a password."""

import sqlite3
import traceback
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import cast

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.exc import StatementError

from denizen.adapters.store import open_store
from denizen.adapters.store.database import SqlStore, SqlUnitOfWork
from denizen.adapters.store.migrator import migrate
from denizen.adapters.store.postgres import PostgresDialect, explain
from denizen.adapters.store.sqlite import SqliteDialect
from denizen.domain.clock import SystemClock
from denizen.domain.errors import DenizenError, InvalidInput, NeedsAttention, Unavailable
from denizen.ports.store import UnitOfWork
from tests.adapters.store.store_fixture import open_store_on
from tests.contracts.store.records import NOON, PLACE, make_message, open_conversation

pytest_plugins = ["tests.postgres"]

SECRET = "s3cr%2Fet"
SPELT = ("s3cr%2Fet", "s3cr/et")

on_postgres = pytest.mark.xdist_group("postgres")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
async def impatient_store(path: Path) -> AsyncIterator[SqlStore]:
    """A store that does not wait for another process."""
    async with open_store_on(SqliteDialect(path, busy_timeout_ms=1)) as store:
        yield store


async def run(work: UnitOfWork, statement: str) -> None:
    await cast("SqlUnitOfWork", work).transaction.write(lambda connection: connection.exec_driver_sql(statement))


@pytest.mark.anyio
async def test_a_database_that_another_process_writes_to_is_unavailable_for_a_moment(
    impatient_store: SqlStore, path: Path
) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unavailable) as refusal:
            await open_conversation(impatient_store)
        assert refusal.value.code == "store_busy"
        assert refusal.value.retry_after_s == 1.0
        async with impatient_store.work(write=False) as work:
            assert await work.conversations.list_recent() == []
        other.execute("ROLLBACK")
    await open_conversation(impatient_store)


@pytest.mark.anyio
async def test_a_full_disk_needs_attention_and_nothing_is_half_written(impatient_store: SqlStore, path: Path) -> None:
    _, session = await open_conversation(impatient_store)
    async with impatient_store.work() as work:
        await run(work, "PRAGMA max_page_count = 1")  # no page more than there are

    async def fill() -> None:
        async with impatient_store.work() as work:
            await work.messages.add(make_message(session, "small", "needle"))
            await work.messages.add(make_message(session, "large", "x" * 1_000_000))

    with pytest.raises(NeedsAttention) as refusal:
        await fill()
    assert refusal.value.code == "store_full"
    assert str(path) in refusal.value.message
    assert str(path.parent) in refusal.value.fix
    async with impatient_store.work() as work:
        assert await work.messages.list_tail(session.id, limit=9) == []
        await run(work, "PRAGMA max_page_count = 1000000")
    await fill()


@pytest.mark.anyio
async def test_a_database_that_cannot_be_opened_needs_attention(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("This is no database, but a text of more than a hundred bytes. " * 10)
    (tmp_path / "folder.db").mkdir()
    for name, code in (
        ("missing/store.db", "store_unusable"),
        ("folder.db", "store_unusable"),
        ("text.db", "store_damaged"),
    ):
        with pytest.raises(NeedsAttention) as refusal:
            await open_store(f"sqlite:///{tmp_path}/{name}", clock=SystemClock())
        assert refusal.value.code == code
        assert str(tmp_path / name) in refusal.value.message
        assert refusal.value.fix


@pytest.mark.anyio
@pytest.mark.parametrize(
    "url", ["", "nonsense", "sqlite://", "sqlite:///:memory:", f"mysql://ana:{SECRET}@host/db", f"x://{SECRET}:@:/:"]
)
async def test_a_url_of_another_kind_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        await open_store(url, clock=SystemClock())
    tells_no_password(refusal.value)


def tells_no_password(error: DenizenError) -> None:
    told = "".join(traceback.format_exception(error)) + error.explain() + repr(error.context)
    assert not [spelling for spelling in SPELT if spelling in told]


@pytest.mark.anyio
async def test_a_postgres_that_does_not_answer_is_unavailable() -> None:
    with pytest.raises(Unavailable) as refusal:
        await open_store(f"postgresql://ana:{SECRET}@127.0.0.1:1/store", clock=SystemClock())
    assert refusal.value.code == "store_unavailable"
    assert "ana:***@127.0.0.1" in refusal.value.fix
    tells_no_password(refusal.value)


@on_postgres
@pytest.mark.anyio
async def test_a_postgres_database_that_does_not_exist_needs_attention(postgres_url: str) -> None:
    wrong = sa.make_url(postgres_url).set(database="nowhere", password="s3cr/et")
    with pytest.raises(NeedsAttention) as refusal:
        await open_store(wrong.render_as_string(hide_password=False), clock=SystemClock())
    assert refusal.value.code == "store_refused"
    tells_no_password(refusal.value)


@pytest.mark.anyio
@pytest.mark.parametrize("url", [f"ana:{SECRET}@127.0.0.1/store?no_such=1", f"/store?password={SECRET}&no_such=1"])
async def test_a_postgres_url_with_an_unknown_setting_needs_attention(url: str) -> None:
    with pytest.raises(NeedsAttention) as refusal:
        await open_store(f"postgresql://{url}", clock=SystemClock())
    assert refusal.value.code == "store_url"
    tells_no_password(refusal.value)


def test_a_password_in_the_servers_message_is_masked() -> None:
    url = sa.make_url(f"postgresql://ana:{SECRET}@127.0.0.1/store")
    refusal = explain(psycopg.OperationalError("bad conninfo: password=s3cr/et or s3cr%2Fet"), url)
    assert refusal is not None
    tells_no_password(refusal)
    assert "***" in refusal.why


@pytest.mark.parametrize(
    ("fault", "family"),
    [
        (psycopg.errors.DiskFull, NeedsAttention),
        (psycopg.errors.DeadlockDetected, Unavailable),
        (psycopg.errors.QueryCanceled, Unavailable),
        (psycopg.errors.AdminShutdown, Unavailable),
        (psycopg.errors.InsufficientPrivilege, NeedsAttention),
        (psycopg.errors.SyntaxError, type(None)),
    ],
)
def test_a_postgres_fault_becomes_an_error_of_the_right_family(
    fault: type[psycopg.Error], family: type[DenizenError]
) -> None:
    assert isinstance(explain(fault("so it says"), sa.make_url("postgresql://h/db")), family)


@on_postgres
@pytest.mark.anyio
async def test_a_restarted_postgres_is_found_again(postgres_url: str) -> None:
    store = SqlStore(PostgresDialect(sa.make_url(postgres_url)), SystemClock())
    migrate(store._dialect)

    def end_all_connections() -> None:
        with psycopg.connect(postgres_url, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )

    _, session = await open_conversation(store)
    async with store.work(write=False) as work:
        await work.conversations.list_recent()
    end_all_connections()
    async with store.work(write=False) as work:
        assert len(await work.conversations.list_recent()) == 1
    async with store.work() as work:
        await work.messages.add(make_message(session, "kept"))

    async def write() -> None:
        async with store.work() as work:
            await work.messages.add(make_message(session, "lost"))
            end_all_connections()
            await work.messages.add(make_message(session, "lost too"))

    with pytest.raises(Unavailable):
        await write()
    async with store.work(write=False) as work:
        assert [row.id for row in await work.messages.list_tail(session.id, limit=9)] == ["kept"]
    await store.aclose()


@pytest.mark.anyio
async def test_a_unit_that_goes_on_after_a_database_fault_writes_nothing(impatient_store: SqlStore) -> None:
    _, session = await open_conversation(impatient_store)
    with pytest.raises(DenizenError):  # noqa: PT012 - the unit is what fails
        async with impatient_store.work() as work:
            await work.messages.add(make_message(session, "lost"))
            with pytest.raises(DenizenError):
                await work.sessions.current(type(session.conversation_id)("none"), session.agent, now=NOON)
    async with impatient_store.work(write=False) as work:
        assert await work.messages.list_tail(session.id, limit=9) == []


@pytest.mark.anyio
async def test_a_time_without_a_zone_is_refused(impatient_store: SqlStore) -> None:
    with pytest.raises(StatementError, match="without a time zone"):
        async with impatient_store.work() as work:
            await work.conversations.put(PLACE, now=NOON.replace(tzinfo=None))
