"""The connections and transactions of the store, and the cost of reading a page of history."""

import logging
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import anyio
import psycopg
import pytest
import sqlalchemy as sa

from denizen.adapters.store import open_store
from denizen.adapters.store.answers import _for_posts
from denizen.adapters.store.database import SqlStore, SqlUnitOfWork
from denizen.adapters.store.messages import _TAIL
from denizen.adapters.store.postgres import PostgresDialect
from denizen.adapters.store.sqlite import SqliteDialect
from denizen.domain.clock import SystemClock
from denizen.domain.conversation import Session
from denizen.domain.ids import AgentName
from denizen.domain.memory import CORE
from denizen.domain.vector import pack_vector
from denizen.ports.memory import MEMORY_VECTORS
from tests.adapters.store.store_fixture import open_store_on
from tests.clock import ManualClock
from tests.contracts.store.knowledge import make_proposal
from tests.contracts.store.memories import add_memories, make_memory, make_vector
from tests.contracts.store.records import AGENT, NOON, make_message, make_post, open_conversation

pytest_plugins = ["tests.postgres"]

LONG = 20_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def store(tmp_path: Path, clock: ManualClock) -> AsyncIterator[SqlStore]:
    async with open_store_on(SqliteDialect(tmp_path / "store.db"), clock) as store:
        yield store


@pytest.fixture
async def on_server(postgres_url: str) -> AsyncIterator[SqlStore]:
    async with open_store_on(PostgresDialect(sa.make_url(postgres_url))) as store:
        yield store


@pytest.mark.anyio
@pytest.mark.proves("V5")
async def test_sqlite_is_set_up_for_one_writer_and_readers_beside_it(store: SqlStore, tmp_path: Path) -> None:
    wanted = {"journal_mode": "wal", "synchronous": 1, "busy_timeout": 5000, "foreign_keys": 1}

    def look(connection: sa.Connection) -> dict[str, object]:
        return {name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in wanted}

    for write in (True, False):
        async with store.work(write=write) as work:
            assert await cast("SqlUnitOfWork", work).transaction.read(look) == wanted
    assert (tmp_path / "store.db").stat().st_mode & 0o077 == 0


@pytest.mark.anyio
@pytest.mark.xdist_group("postgres")
async def test_every_wait_for_postgres_has_a_time_limit(on_server: SqlStore, postgres_url: str) -> None:
    def look(connection: sa.Connection) -> list[object]:
        names = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
        return [connection.exec_driver_sql(f"SHOW {name}").scalar() for name in names]

    async with on_server.work() as work:
        assert await cast("SqlUnitOfWork", work).transaction.read(look) == ["30s", "10s", "1min"]
    own = SqlStore(PostgresDialect(sa.make_url(f"{postgres_url}&options=-c%20statement_timeout%3D7s")), SystemClock())
    async with own.work() as work:
        assert (await cast("SqlUnitOfWork", work).transaction.read(look))[0] == "7s"
    await own.aclose()


@pytest.mark.anyio
async def test_a_reader_sees_what_was_committed_before_it_began_while_another_writes(store: SqlStore) -> None:
    _, session = await open_conversation(store)
    async with store.work(write=False) as reading:
        assert await reading.messages.list_tail(session.id, limit=9) == []
        async with store.work() as writing:
            await writing.messages.add(make_message(session, "m1"))
        assert await reading.messages.list_tail(session.id, limit=9) == []
    async with store.work(write=False) as reading:
        assert len(await reading.messages.list_tail(session.id, limit=9)) == 1


@pytest.mark.anyio
@pytest.mark.xdist_group("postgres")
async def test_a_reader_on_postgres_sees_one_state_throughout(on_server: SqlStore) -> None:
    await test_a_reader_sees_what_was_committed_before_it_began_while_another_writes(on_server)


@pytest.mark.anyio
async def test_a_task_that_opens_a_second_unit_within_the_first_gets_an_error(store: SqlStore) -> None:
    for write in (True, False):
        async with store.work(write=write):
            with pytest.raises(RuntimeError):
                async with store.work(write=write):
                    pass
    await open_conversation(store)


@pytest.mark.anyio
@pytest.mark.xdist_group("postgres")
@pytest.mark.proves("V5")
async def test_many_units_share_few_connections(on_server: SqlStore, postgres_url: str) -> None:
    _, session = await open_conversation(on_server)
    most = 0

    async def say(number: int) -> None:
        nonlocal most
        async with on_server.work() as work:
            await work.messages.add(make_message(session, f"m{number}"))
            most = max(most, on_server.in_use)

    async with anyio.create_task_group() as tasks:
        for number in range(40):
            tasks.start_soon(say, number)
    assert most == 6
    assert on_server.in_use == 0
    with psycopg.connect(postgres_url) as other:
        row = other.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'denizen'").fetchone()
        assert row is not None
        assert 1 <= row[0] <= 6


@pytest.mark.anyio
@pytest.mark.xdist_group("postgres")
@pytest.mark.proves("V5")
@pytest.mark.parametrize(("chosen", "most"), [({}, 10), ({"max_connections": 2}, 2), ({"max_connections": 5}, 5)])
async def test_postgres_has_ten_connections_by_default_or_as_many_as_are_configured(
    postgres_url: str, chosen: dict[str, int], most: int
) -> None:
    from tests.postgres import count_connections

    store = await open_store(postgres_url, clock=SystemClock(), **chosen)
    assert await count_connections(store, postgres_url, most) == most
    await store.aclose()


@pytest.mark.anyio
@pytest.mark.proves("V27")
async def test_a_store_that_is_opened_again_has_talk_memories_posts_and_vectors(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    core, own = make_memory("core", owner=CORE), make_memory("own")
    post, vector = make_post("1", "the archive has it"), make_vector("own", 1, 0)
    store = await open_store(url, clock=SystemClock())
    _, session = await open_conversation(store)
    async with store.work() as work:
        for number in range(300):
            await work.messages.add(make_message(session, f"m{number}"))
        await work.archive.put([post])
    await add_memories(store, core, own)
    async with store.work() as work:
        await work.vectors.put([vector])
    await store.aclose()

    store = await open_store(url, clock=SystemClock())
    async with store.work(write=False) as work:
        newest = await work.messages.list_tail(session.id, limit=100)
        older = await work.messages.list_tail(session.id, limit=1000, before=newest[0].sequence)
        assert [message.id for message in (*older, *newest)] == [f"m{number}" for number in range(300)]
        assert await work.memories.list_memories(owner=CORE) == [core]
        assert await work.memories.list_memories(owner=own.owner) == [own]
        assert await work.archive.find(post.platform, post.id) == post
        [near] = await work.vectors.find_nearest(MEMORY_VECTORS, ["s"], "m", pack_vector([1, 0]), limit=9)
        assert near.key == "own"
    await store.aclose()


@pytest.mark.anyio
async def test_closing_waits_for_the_running_unit_of_work(store: SqlStore) -> None:
    _, session = await open_conversation(store)
    begun = anyio.Event()

    async def write() -> None:
        async with store.work() as work:
            begun.set()
            for number in range(20):
                await work.messages.add(make_message(session, f"m{number}"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        await begun.wait()
        await store.aclose()
    with closing(sqlite3.connect(cast("SqliteDialect", store._dialect).path)) as connection:
        assert connection.execute("SELECT count(*) FROM messages").fetchone() == (20,)


@pytest.mark.anyio
async def test_a_slow_unit_of_work_is_logged(
    store: SqlStore, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with store.work():
        clock.advance(0.9)
    assert caplog.records == []
    with caplog.at_level(logging.WARNING):
        async with store.work():
            clock.advance(2.5)
    assert [record.getMessage() for record in caplog.records] == ["a unit of work took 2.5 s"]


def fill(path: Path, session: Session, count: int) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executemany(
            "INSERT INTO messages (id, conversation_id, session_id, sequence, created_at, role, author_id, author_name,"
            " author_is_bot, platform_id, parts, meta, words)"
            " VALUES (?, ?, ?, ?, ?, 'user', '', '', 0, '', '[]', '{}', '')",
            [
                (f"{session.id}-{number}", session.conversation_id, session.id, number, NOON.isoformat(" ")[:19])
                for number in range(1, count + 1)
            ],
        )
        connection.commit()


async def count_instructions(store: SqlStore, statement: sa.Executable, bounds: dict[str, Any], *, rows: int) -> int:
    """How many instructions SQLite takes for it."""
    taken = 0

    def count() -> int:
        nonlocal taken
        taken += 1
        return 0

    def job(connection: sa.Connection) -> None:
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        driver.set_progress_handler(count, 1)
        found = connection.execute(statement, bounds).all()
        driver.set_progress_handler(None, 1)
        assert len(found) == rows

    async with store.work(write=False) as work:
        await cast("SqlUnitOfWork", work).transaction.read(job)
    return taken


@pytest.mark.anyio
async def test_the_tail_of_a_long_session_costs_the_same_as_that_of_a_short_one(store: SqlStore) -> None:
    conversation, short = await open_conversation(store)
    async with store.work() as work:
        long = await work.sessions.current(conversation.id, AgentName("scribe"), now=NOON)
    assert long.agent != AGENT
    fill(cast("SqliteDialect", store._dialect).path, short, 10)
    fill(cast("SqliteDialect", store._dialect).path, long, LONG)

    async def cost_of_tail(session: Session, before: int) -> int:
        return await count_instructions(store, _TAIL, {"session": session.id, "limit": 5, "before": before}, rows=5)

    at_the_end = await cost_of_tail(short, 2**62)
    assert await cost_of_tail(long, 2**62) == at_the_end
    assert await cost_of_tail(long, LONG // 2) == at_the_end


@pytest.mark.anyio
async def test_finding_a_proposal_by_its_message_costs_the_same_however_many_there_are(store: SqlStore) -> None:
    dialect = cast("SqliteDialect", store._dialect)
    wanted = {"of_platform": "discord", "chosen": dialect.bind_list(["p3"])}

    async def propose(numbers: range) -> int:
        async with store.work() as work:
            for number in numbers:
                assert await work.proposals.add(make_proposal(str(number)))
        return await count_instructions(store, _for_posts(dialect), wanted, rows=1)

    assert await propose(range(10)) == await propose(range(10, 1000))
