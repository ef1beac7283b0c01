"""The schema of a database: created by one history of migrations, upgraded after a rehearsal, or refused."""

import ast
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from denizen.adapters.store import open_store
from denizen.adapters.store.database import metadata
from denizen.adapters.store.dialect import REVISION_TABLE, SqlDialect
from denizen.adapters.store.migrator import HEAD, HISTORY, SUPERSEDED, MigrationHistory, migrate
from denizen.adapters.store.postgres import PostgresDialect
from denizen.adapters.store.sqlite import SqliteDialect
from denizen.adapters.store.upgrade_undo import undo_upgrade
from denizen.domain.chat import ChatMode
from denizen.domain.clock import SystemClock
from denizen.domain.errors import NeedsAttention
from denizen.domain.ids import ConversationId, MessageId
from denizen.domain.words import split_words
from denizen.ports.archive import PostQuery
from tests.adapters.store.migration_fixture import fill_store, make_next_history
from tests.contracts.store.records import make_message, open_conversation

pytest_plugins = ["tests.postgres"]

BROKEN = 'op.execute("UPDATE conversations SET nonsense = 1")'
FILE = """
    from pathlib import Path
    with Path({log!r}).open("a") as log:
        log.write(Path(op.get_bind().exec_driver_sql("PRAGMA database_list").one()[2]).name + " ")
"""
ORPHANS = "op.execute(\"UPDATE messages SET conversation_id = 'gone'\")"

on_postgres = pytest.mark.xdist_group("postgres")


@pytest.fixture
def history(tmp_path: Path) -> Callable[[str], MigrationHistory]:
    return lambda more: make_next_history(tmp_path / "migrations", more)


def columns(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [row[1] for row in connection.execute("PRAGMA table_info(conversations)")]


def dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


@pytest.mark.proves("V4")
def test_the_constant_is_the_head_of_one_linear_history() -> None:
    script = ScriptDirectory(str(HISTORY.folder))
    assert script.get_heads() == [HEAD]
    assert len(script.get_bases()) == 1
    assert not [each for each in script.walk_revisions() if each.is_branch_point or each.is_merge_point]


def compare(dialect: SqlDialect, history: MigrationHistory = HISTORY) -> list[object]:
    """What the tables of the program have and the database has not, or the other way round."""
    migrate(dialect, history)

    def is_ours(_object: object, name: str | None, kind: str, *_rest: object) -> bool:
        return (
            not (name or "").startswith(("message_words", "post_words", "passage_words"))
            and name not in {REVISION_TABLE, "lexemes", "embedding"}
            and not (kind == "index" and (name or "").endswith("_lexemes"))
        )

    with dialect.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"include_object": is_ours, "compare_type": False})
        return list(compare_metadata(context, metadata))


@pytest.mark.proves("V4", "C11")
def test_the_migrations_create_the_programs_tables_in_sqlite(tmp_path: Path) -> None:
    assert compare(SqliteDialect(tmp_path / "store.db")) == []


@on_postgres
@pytest.mark.proves("V4", "C11")
def test_the_migrations_create_the_programs_tables_in_postgres(postgres_url: str) -> None:
    assert compare(PostgresDialect(sa.make_url(postgres_url))) == []


@on_postgres
@pytest.mark.proves("V5-search")
def test_postgres_keeps_the_words_that_are_searched_as_indexed_tsvectors(postgres_url: str) -> None:
    migrate(PostgresDialect(sa.make_url(postgres_url)))
    with psycopg.connect(postgres_url) as connection:
        kept = connection.execute("SELECT table_name FROM information_schema.columns WHERE udt_name = 'tsvector'")
        tables = {table for (table,) in kept.fetchall()}
        indexed = connection.execute("SELECT tablename FROM pg_indexes WHERE indexdef LIKE '%USING gin (lexemes)'")
        assert {table for (table,) in indexed.fetchall()} == tables
    assert {"messages", "passages", "posts"} <= tables


@pytest.mark.anyio
@pytest.mark.proves("V4")
async def test_opening_a_second_time_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    await fill_store(f"sqlite:///{path}")  # no migration was asked for: a start runs them
    before = dump(path)
    for _ in range(2):
        store = await open_store(f"sqlite:///{path}", clock=SystemClock())
        await store.aclose()
    assert dump(path) == before
    assert [each.name for each in tmp_path.iterdir()] == ["store.db"]


def test_importing_the_store_and_opening_a_current_one_import_only_what_they_need(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    migrate(SqliteDialect(path))
    code = f"""
import sys, anyio
from denizen.domain.chat import ChatMode
from denizen.domain.clock import SystemClock
from denizen.adapters.store import open_store
vendors = {{"sqlalchemy", "alembic", "psycopg", "aiosqlite"}}
print(sorted(vendors & set(sys.modules)))
async def main():
    store = await open_store("sqlite:///{path}", clock=SystemClock())
    async with store.work() as work:
        await work.generations.list_generations()
    await store.aclose()
anyio.run(main)
print(sorted(vendors & set(sys.modules)))
"""
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert [ast.literal_eval(line) for line in printed.splitlines()] == [[], ["sqlalchemy"]]


def test_two_processes_may_open_a_new_database_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(migrate, [SqliteDialect(tmp_path / "store.db") for _ in range(4)]))
    assert "title" in columns(tmp_path / "store.db")


@on_postgres
@pytest.mark.anyio
@pytest.mark.proves("V4")
async def test_a_start_runs_what_is_pending_on_postgres_and_the_next_one_changes_nothing(postgres_url: str) -> None:
    def look() -> list[Any]:
        with psycopg.connect(postgres_url) as connection:
            tables = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'"
            rows = connection.execute(f"{tables} ORDER BY 1, 2").fetchall()
            return [*rows, *connection.execute("SELECT id, words FROM messages").fetchall()]

    await fill_store(postgres_url)
    before = look()
    assert ("messages", "words") in before and ("kept", "needle") in before
    store = await open_store(postgres_url, clock=SystemClock())
    await store.aclose()
    assert look() == before


@on_postgres
def test_two_processes_may_open_a_new_postgres_database_at_once(postgres_url: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(migrate, [PostgresDialect(sa.make_url(postgres_url)) for _ in range(4)]))
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT version_num FROM denizen_revision").fetchall() == [(HEAD,)]


@pytest.mark.anyio
@pytest.mark.proves("P8", "V4")
async def test_an_upgrade_leaves_a_copy_of_the_database_to_go_back_to(
    tmp_path: Path, history: Callable[[str], MigrationHistory], caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "store.db"
    await fill_store(f"sqlite:///{path}")
    before = dump(path)
    log = tmp_path / "log"
    with caplog.at_level("INFO", "denizen.store"):
        migrate(SqliteDialect(path), history(FILE.format(log=str(log))))
    assert log.read_text().split() == ["store.db.rehearsal", "store.db"]
    assert caplog.messages == ["database copied before its upgrade", "database upgraded"]
    kept = tmp_path / "store.db.before-9999"
    assert "topic" in columns(path)
    assert dump(kept) == before
    assert kept.stat().st_mode & 0o077 == 0
    assert not (tmp_path / "store.db.rehearsal").exists()

    with pytest.raises(NeedsAttention) as refusal:
        await open_store(f"sqlite:///{path}", clock=SystemClock())
    assert refusal.value.code == "store_newer"
    assert "denizen upgrade undo" in refusal.value.fix

    assert undo_upgrade(SqliteDialect(path)) == f"{path}.undone-9999"
    store = await open_store(f"sqlite:///{path}", clock=SystemClock())
    async with store.work(write=False) as work:
        assert (await work.messages.get(MessageId("kept"))).text == "needle"
    await store.aclose()


@pytest.mark.anyio
@pytest.mark.proves("P8")
@pytest.mark.parametrize(("more", "why"), [(BROKEN, "nonsense"), (ORPHANS, "refers to a row of conversations")])
async def test_an_upgrade_that_would_fail_fails_on_a_copy_first(
    tmp_path: Path, history: Callable[[str], MigrationHistory], more: str, why: str
) -> None:
    path = tmp_path / "store.db"
    await fill_store(f"sqlite:///{path}")
    content = path.read_bytes()
    with pytest.raises(NeedsAttention) as failure:
        migrate(SqliteDialect(path), history(more))
    assert failure.value.code == "store_upgrade"
    assert why in failure.value.why
    assert path.read_bytes() == content
    assert not list(tmp_path.glob("store.db.rehearsal*"))
    store = await open_store(f"sqlite:///{path}", clock=SystemClock())
    await store.aclose()


WHERE = """
    from pathlib import Path
    with Path({log!r}).open("a") as log:
        log.write(op.get_bind().scalar(sa.text("SELECT current_schema()")) + " ")
    {more}
"""


@on_postgres
@pytest.mark.anyio
@pytest.mark.proves("P8")
async def test_an_upgrade_on_postgres_is_tried_on_a_copy_first_which_is_the_way_back(
    postgres_url: str, tmp_path: Path, history: Callable[[str], MigrationHistory]
) -> None:
    await fill_store(postgres_url)
    dialect, log = PostgresDialect(sa.make_url(postgres_url)), tmp_path / "log"
    with pytest.raises(NeedsAttention):
        migrate(dialect, history(WHERE.format(log=str(log), more=BROKEN)))
    assert log.read_text().split() == ["before_9999"]

    migrate(dialect, history(WHERE.format(log=str(log), more="")))
    assert log.read_text().split() == ["before_9999", "before_9999", "public"]
    with pytest.raises(NeedsAttention) as refusal:
        await open_store(postgres_url, clock=SystemClock())
    assert refusal.value.code == "store_newer"

    assert undo_upgrade(dialect) == "public"
    store = await open_store(postgres_url, clock=SystemClock())
    _, session = await open_conversation(store)
    async with store.work() as work:
        assert (await work.messages.get(MessageId("kept"))).text == "needle"
        await work.messages.add(make_message(session, "new", "a needle more"))
    async with store.work(write=False) as work:
        found = await work.messages.search("needle", conversation_ids=[session.conversation_id])
    assert {hit.message.id for hit in found} == {"kept", "new"}
    await store.aclose()

    migrate(dialect, history(WHERE.format(log=str(log), more="")))
    assert log.read_text().split()[3:] == ["before_9999_again", "before_9999"]


@on_postgres
@pytest.mark.anyio
@pytest.mark.proves("P8")
@pytest.mark.filterwarnings("ignore:Did not recognize type 'vector'")  # of pgvector, beyond the schema
async def test_an_upgrade_that_fails_on_postgres_leaves_the_database_as_it_was(
    postgres_url: str, history: Callable[[str], MigrationHistory]
) -> None:
    await fill_store(postgres_url)
    dialect = PostgresDialect(sa.make_url(postgres_url))
    with pytest.raises(NeedsAttention) as failure:
        migrate(dialect, history(BROKEN))
    assert failure.value.code == "store_upgrade"
    assert compare(dialect) == []
    migrate(dialect, history("pass"))
    assert len(compare(dialect, history("pass"))) == 1
    with pytest.raises(NeedsAttention, match="newer"):
        await open_store(postgres_url, clock=SystemClock())


def test_a_file_of_another_program_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
    before = dump(path)
    with pytest.raises(NeedsAttention) as refusal:
        migrate(SqliteDialect(path))
    assert refusal.value.code == "store_foreign"
    assert "recipes" in refusal.value.why
    assert dump(path) == before


def pretend_old(dialect: SqlDialect, revision: str) -> None:
    """Marks the database as one that Denizen 0.1 has written."""
    with dialect.engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE {REVISION_TABLE} SET version_num = '{revision}'")


def check_superseded(refusal: NeedsAttention, revision: str) -> None:
    assert refusal.code == "store_superseded"
    assert "Denizen 0.1" in refusal.message
    assert revision in refusal.why
    for way in ("denizen.db", "durable.db", "DENIZEN_HOME"):
        assert way in refusal.fix


@pytest.mark.anyio
@pytest.mark.parametrize("revision", ["0001", "0019"])
async def test_a_database_of_the_dropped_migrations_is_refused_and_not_touched(tmp_path: Path, revision: str) -> None:
    path = tmp_path / "store.db"
    await fill_store(f"sqlite:///{path}")
    pretend_old(SqliteDialect(path), revision)
    before = dump(path)
    with pytest.raises(NeedsAttention) as refusal:
        await open_store(f"sqlite:///{path}", clock=SystemClock())
    check_superseded(refusal.value, revision)
    assert dump(path) == before
    assert not list(tmp_path.glob("store.db.before-*"))

    path.rename(tmp_path / "old.db")
    store = await open_store(f"sqlite:///{path}", clock=SystemClock())
    await store.aclose()


@on_postgres
@pytest.mark.anyio
async def test_a_postgres_database_of_the_dropped_migrations_is_refused(postgres_url: str) -> None:
    await fill_store(postgres_url)
    pretend_old(PostgresDialect(sa.make_url(postgres_url)), "0019")
    with pytest.raises(NeedsAttention) as refusal:
        await open_store(postgres_url, clock=SystemClock())
    check_superseded(refusal.value, "0019")


def test_no_migration_has_the_id_of_a_dropped_one() -> None:
    script = ScriptDirectory(str(HISTORY.folder))
    assert not SUPERSEDED & {each.revision for each in script.walk_revisions()}


# --- upgrades of what is there ---------------------------------------------------------------------------------------

OLD_MEMORY = """
    INSERT INTO memories
    (id, agent, owner, text, platform, room, private, told_by, turn_id, created_at, updated_at)
    VALUES ('mem_1', 'ada', 'u', 'Likes tea', 'discord', '10', {false}, 'u', 't', '{at}{zone}', '{changed}{zone}')
"""


def write_old_memory(dialect: SqlDialect) -> None:
    """A database of the first schema, with a memory that was changed two days after it was told."""
    is_sqlite = isinstance(dialect, SqliteDialect)
    migrate(dialect, MigrationHistory(HISTORY.folder, "1001"))
    times = {"at": "2026-11-01 12:00:00.000000", "changed": "2026-11-03 12:00:00.000000"}
    row = OLD_MEMORY.format(false="0" if is_sqlite else "false", zone="" if is_sqlite else "+00", **times)
    with dialect.engine.begin() as connection:
        connection.exec_driver_sql(row)


async def check_upgraded_memory(url: str) -> None:
    store = await open_store(url, clock=SystemClock())
    async with store.work() as work:
        (memory,) = await work.memories.list_memories()
        assert (memory.text, memory.created_at) == ("Likes tea", datetime(2026, 11, 3, 12, tzinfo=UTC))
        assert (memory.superseded_by, memory.superseded_at) == ("", None)
        assert await work.memories.supersede(["mem_1"], by="mem_2", at=memory.created_at) == 1
        assert await work.memories.list_memories() == []
    await store.aclose()


@pytest.mark.anyio
@pytest.mark.proves("P8", "V4")
async def test_memories_of_the_first_schema_are_there_after_the_upgrade_with_the_time_of_their_text(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store.db"
    write_old_memory(SqliteDialect(path))
    await check_upgraded_memory(f"sqlite:///{path}")
    assert (tmp_path / f"store.db.before-{HEAD}").exists()


@on_postgres
@pytest.mark.anyio
@pytest.mark.proves("P8", "V4")
async def test_memories_of_the_first_schema_are_there_after_the_upgrade_on_postgres(postgres_url: str) -> None:
    write_old_memory(PostgresDialect(sa.make_url(postgres_url)))
    await check_upgraded_memory(postgres_url)


# --- terms of an older index ------------------------------------------------------------------------------------------

TALK = "Членские взносы платят весной. 会员费每年五十欧元。"
OLD_TERMS = " ".join(split_words(TALK))


def write_old_terms(dialect: SqlDialect) -> None:
    """A database of the first schema, with the words of a message, of a forgotten one and of a post as they were."""
    migrate(dialect, MigrationHistory(HISTORY.folder, "1001"))
    is_sqlite = isinstance(dialect, SqliteDialect)
    false, at = ("0", "'2026-11-01 12:00:00.000000'") if is_sqlite else ("false", "'2026-11-01 12:00:00+00'")
    with dialect.engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO conversations (id, platform, channel, thread, title, created_at)"
            f" VALUES ('c', 'discord', '10', '', '', {at})"
        )
        for key, words in (("kept", OLD_TERMS), ("forgotten", "")):
            connection.exec_driver_sql(
                "INSERT INTO messages (id, conversation_id, sequence, created_at, role, author_id, author_name,"
                " author_is_bot, platform_id, parts, meta, words)"
                f" VALUES ('{key}', 'c', 0, {at}, 'user', '', '', {false}, '', '[]', '{{}}', '{words}')"
            )
        connection.exec_driver_sql(
            "INSERT INTO posts (platform, id, room, guild, parent, reply_to, author_id, author_name, author_is_bot,"
            " created_at, attachments, text, words)"
            f" VALUES ('discord', '00242', '10', '', '', '', '1', 'Ana', {false}, {at}, '[]', '{TALK}', '{OLD_TERMS}')"
        )
        connection.exec_driver_sql("INSERT INTO documents (path, source_id, digest) VALUES ('a.md', 'docs', 'd1')")
        connection.exec_driver_sql("INSERT INTO index_progress (collection, state) VALUES ('passage', 'snapshot')")


async def check_renewed_terms(url: str) -> None:
    store = await open_store(url, clock=SystemClock())
    async with store.work(write=False) as work:
        for asked in ("взнос", "会员"):
            found = await work.messages.search(asked, conversation_ids=[ConversationId("c")])
            assert [hit.message.id for hit in found] == ["kept"]
            (hit,) = await work.archive.search(PostQuery(asked, platform="discord", rooms=["10"]))
            assert hit.post.text == TALK
        assert await work.documents.find_indexed() == ""
        assert await work.documents.list_digests() == {"a.md": ""}
    await store.aclose()


@pytest.mark.anyio
async def test_words_of_an_older_index_are_found_in_any_form_after_the_upgrade(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    write_old_terms(SqliteDialect(path))
    await check_renewed_terms(f"sqlite:///{path}")


@on_postgres
@pytest.mark.anyio
async def test_words_of_an_older_index_are_found_in_any_form_after_the_upgrade_on_postgres(postgres_url: str) -> None:
    write_old_terms(PostgresDialect(sa.make_url(postgres_url)))
    await check_renewed_terms(postgres_url)


# --- chats of conversations that were there before --------------------------------------------------------------------


def write_old_talk(dialect: SqlDialect) -> None:
    """A database without chats: two conversations of the web with messages, one that stood alone, one of Discord."""
    migrate(dialect, MigrationHistory(HISTORY.folder, "1003"))
    is_sqlite = isinstance(dialect, SqliteDialect)
    false, zone = ("0", "") if is_sqlite else ("false", "+00")
    places = [("web", "default"), ("web", "b_2"), ("web", "once_a1"), ("discord", "default"), ("web", "empty")]
    with dialect.engine.begin() as connection:
        for number, (platform, thread) in enumerate(places):
            key, at = f"{platform}-{thread}", f"'2026-11-0{number + 1} 12:00:00.000000{zone}'"
            connection.exec_driver_sql(
                "INSERT INTO conversations (id, platform, channel, thread, title, created_at)"
                f" VALUES ('{key}', '{platform}', 'api_key:ann', '{thread}', '', {at})"
            )
            connection.exec_driver_sql(
                "INSERT INTO sessions (id, conversation_id, agent, created_at)"
                f" VALUES ('s-{key}', '{key}', 'ada', {at})"
            )
            for sequence, role in () if thread == "empty" else ((1, "user"), (2, "assistant")):
                said = '[{"kind":"text","text":"How tall is the\\ntower of Babel, really?"}]'.replace("\n", "\\n")
                connection.execute(
                    sa.text(
                        "INSERT INTO messages (id, conversation_id, session_id, sequence, created_at, role, author_id,"
                        " author_name, author_is_bot, platform_id, parts, meta, words)"
                        f" VALUES (:id, '{key}', 's-{key}', {sequence}, {at}, '{role}', '', '', {false}, '', :said, "
                        "'{}', '')"
                    ),
                    {"id": f"{key}-{sequence}", "said": said},
                )


async def check_old_talk(url: str) -> None:
    store = await open_store(url, clock=SystemClock())
    async with store.work() as work:
        found = await work.chats.list_chats("api_key:ann")
        assert [(each.id, each.title, each.agent) for each in found] == [
            ("b_2", "How tall is the tower of", "ada"),
            ("default", "How tall is the tower of", "ada"),
        ]
        assert (found[1].updated_at, found[1].mode, found[1].share_token) == (
            datetime(2026, 11, 1, 12, tzinfo=UTC),
            ChatMode.CHAT,
            "",
        )
        (session,) = await work.sessions.list_all(found[0].conversation_id)
        assert (session.parent_id, session.fork_sequence) == (None, 0)
    await store.aclose()


@pytest.mark.anyio
async def test_conversations_of_the_web_are_chats_after_the_upgrade(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    write_old_talk(SqliteDialect(path))
    await check_old_talk(f"sqlite:///{path}")


@on_postgres
@pytest.mark.anyio
async def test_conversations_of_the_web_are_chats_after_the_upgrade_on_postgres(postgres_url: str) -> None:
    write_old_talk(PostgresDialect(sa.make_url(postgres_url)))
    await check_old_talk(postgres_url)
