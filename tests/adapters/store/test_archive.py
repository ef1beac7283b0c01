"""What the archive costs in a database, and what is left there of what was forgotten: nothing."""

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from denizen.adapters.store.database import SqlStore, SqlUnitOfWork
from denizen.adapters.store.sqlite import SqliteDialect
from denizen.domain.delivery import DeliveryState, MessageContent, OutgoingFile
from denizen.domain.message import Author
from denizen.domain.room import Post, PostChanges
from denizen.ports.archive import ArchiveRepository, PostQuery
from tests.adapters.store.store_fixture import open_store_on
from tests.contracts.store.records import PLATFORM, at, make_delivery, make_post

PAGE = [make_post(str(number)) for number in range(1, 101)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqlStore]:
    async with open_store_on(SqliteDialect(path)) as store:
        yield store


@contextmanager
def statements(store: SqlStore) -> Generator[list[str]]:
    """Those that run within the block, but for the beginning of units."""
    seen: list[str] = []
    engine = cast("SqliteDialect", store._dialect).engine

    def note(*said: object) -> None:
        if not str(said[2]).startswith("BEGIN"):
            seen.append(str(said[2]))

    event.listen(engine, "before_cursor_execute", note)
    yield seen
    event.remove(engine, "before_cursor_execute", note)


async def put(store: SqlStore, posts: list[Post]) -> None:
    async with store.work() as work:
        await work.archive.put(posts)


@pytest.mark.anyio
async def test_a_page_of_posts_is_a_few_statements_whether_they_are_new_edited_or_known(store: SqlStore) -> None:
    edits = [replace(post, text="new", changes=PostChanges(edited_at=at(9))) for post in PAGE]
    await put(store, [make_post("1000")])  # with the first connection come statements of its own
    for posts, most in ((PAGE, 2), (PAGE, 1), (edits, 5), (edits, 1)):
        with statements(store) as seen:
            await put(store, posts)
        assert len(seen) <= most, seen


def get_driver(connection: sa.Connection) -> sqlite3.Connection:
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver


async def count_instructions(
    store: SqlStore, read: Callable[[ArchiveRepository], Awaitable[Sequence[object]]], found: int
) -> int:
    """How many instructions SQLite takes."""
    taken = 0

    def count() -> int:
        nonlocal taken
        taken += 1
        return 0

    async with store.work(write=False) as work:
        unit = cast("SqlUnitOfWork", work).transaction
        await unit.read(lambda connection: get_driver(connection).set_progress_handler(count, 1))
        rows = await read(work.archive)
        await unit.read(lambda connection: get_driver(connection).set_progress_handler(None, 1))
    assert len(rows) == found
    return taken


@pytest.mark.anyio
async def test_reading_posts_costs_the_same_however_many_are_archived(store: SqlStore) -> None:
    async def costs() -> list[int]:
        return [
            await count_instructions(
                store, lambda archive: archive.search(PostQuery("needle", platform=PLATFORM, rooms=["10"])), 1
            ),
            await count_instructions(
                store, lambda archive: archive.search(PostQuery("zebra", platform=PLATFORM, rooms=["10"])), 0
            ),
            await count_instructions(store, lambda archive: archive.list_authors(PLATFORM, rooms=["10"]), 1),
            await count_instructions(store, lambda archive: archive.list_posts(PLATFORM, "10", limit=5), 5),
            await count_instructions(store, lambda archive: archive.list_posts(PLATFORM, "10", after="50", limit=5), 5),
            await count_instructions(
                store, lambda archive: archive.list_posts(PLATFORM, "10", before="50", limit=5), 5
            ),
        ]

    await put(store, [*PAGE, make_post("101", "needle")])
    few = await costs()
    await put(store, [make_post(str(number)) for number in range(102, 5000)])
    for little, much in zip(few, await costs(), strict=True):
        assert much < little + 500  # where every post was looked at it would be thousands


@pytest.mark.anyio
async def test_the_word_index_is_intact_after_edits_and_holds_no_forgotten_posts(store: SqlStore, path: Path) -> None:
    secrets = [replace(post, text=f"secret{post.id} draft", author=Author("2", "Bo")) for post in PAGE[:50]]
    edits = [replace(post, text=f"hidden{post.id}", changes=PostChanges(edited_at=at(9))) for post in secrets]
    async with store.work() as work:
        await work.archive.put([*secrets, *PAGE[50:], *edits])
        await work.archive.mark_deleted(PLATFORM, [post.id for post in PAGE[40:60]], at=at(10))
        assert await work.archive.forget_author(PLATFORM, "2") == 50
    await store.aclose()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO post_words(post_words, rank) VALUES ('integrity-check', 1)")
        connection.execute("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, post_words, row)")
        terms = [row[0] for row in connection.execute("SELECT term FROM temp.vocabulary")]
        assert not [term for term in terms if term.startswith(("secret", "hidden", "draft"))]
        assert "post" in terms
        assert connection.execute("SELECT count(*) FROM post_versions").fetchone() == (0,)


@pytest.mark.anyio
async def test_the_bytes_of_files_are_gone_when_their_delivery_is_final(store: SqlStore, path: Path) -> None:
    delivery = make_delivery("t1", content=MessageContent(files=(OutgoingFile("a", "image/png", b"bytes"),)))
    counts: list[int] = []
    for state in (DeliveryState.SENDING, DeliveryState.SENT):
        async with store.work() as work:
            await work.outbox.add([delivery])
            await work.outbox.update(replace(delivery, state=state))
        with closing(sqlite3.connect(path)) as connection:
            counts.append(connection.execute("SELECT count(*) FROM delivery_files").fetchone()[0])
    assert counts == [1, 0]
