"""The move of a store from one database to another, under writes, through kill -9, and back."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from denizen.adapters.store.dialect import SqlDialect
from denizen.adapters.store.migrator import migrate
from denizen.adapters.store.mover import StoreMover, forget_move
from denizen.adapters.store.plain_rows import TableDigest, digest_table, list_plain_tables
from denizen.adapters.store.postgres import PostgresDialect
from denizen.adapters.store.sqlite import SqliteDialect
from denizen.domain.clock import SystemClock
from denizen.domain.errors import Conflict, DenizenError, NeedsAttention, Unavailable
from denizen.domain.store_move import MoveProgress, MoveStage
from tests.adapters.store.store_fixture import open_store_on
from tests.e2e.limited_disk import open_limited_disk
from tests.timing import HANG_LIMIT_S

pytest_plugins = ["tests.postgres"]
pytestmark = pytest.mark.xdist_group("postgres")

ROWS = 20_000
_MOVER = """
import sys
from pathlib import Path
import sqlalchemy as sa
from denizen.adapters.store.mover import StoreMover
from denizen.adapters.store.postgres import PostgresDialect
from denizen.adapters.store.sqlite import SqliteDialect
from denizen.domain.store_move import MoveStage
def tell(progress):
    if progress.stage is MoveStage.COPYING and progress.table == "posts" and progress.done >= int(sys.argv[3]):
        print("far enough", flush=True)
        sys.stdin.read()
target = PostgresDialect(sa.make_url(sys.argv[2]))
StoreMover(SqliteDialect(Path(sys.argv[1])), target, "it", tell).run(lambda: None)
"""


@dataclass
class Told:
    progress: list[MoveProgress] = field(default_factory=list[MoveProgress])
    switched: int = 0

    def __call__(self, progress: MoveProgress) -> None:
        self.progress.append(progress)

    def switch(self) -> None:
        self.switched += 1


def open_postgres(url: str) -> PostgresDialect:
    return PostgresDialect(sa.make_url(url))


def fill(file: Path, rows: int) -> None:
    migrate(SqliteDialect(file))
    with closing(sqlite3.connect(file)) as database:
        columns = {row[1]: row for row in database.execute("PRAGMA table_info(posts)")}
        needed = [name for name, row in columns.items() if row[3] and row[4] is None]
        values = {name: f"{name}" for name in needed}
        assert values
        database.execute("BEGIN")
        for number in range(1, rows + 1):
            database.execute(
                f"INSERT INTO posts ({', '.join(needed)}) VALUES ({', '.join('?' for _ in needed)})",
                [make_value(name, str(columns[name][2]), number) for name in needed],
            )
        database.commit()


def make_value(name: str, kind: str, number: int) -> object:
    if name.endswith("_at"):
        return "2026-11-29 06:00:00.000000"
    if name == "id":
        return f"019{number:019d}"
    if kind in {"INTEGER", "BIGINT", "BOOLEAN"}:
        return number if name == "position" else 0
    return "{}" if name in {"extra", "content"} else f"text {number} of \ufdd0000 {name}"


def digest(dialect: SqlDialect) -> dict[str, TableDigest]:
    with dialect.engine.connect() as connection:
        return {table.name: digest_table(connection, table) for table in list_plain_tables()}


@contextmanager
def writes(file: Path) -> Generator[list[int]]:
    """Somebody adds, changes and deletes posts until the block ends or writing is refused."""
    stop, done = threading.Event(), list[int]()

    def write() -> None:
        with closing(sqlite3.connect(file, timeout=HANG_LIMIT_S)) as database:
            (columns,) = [
                ", ".join(
                    row[1] for row in database.execute("PRAGMA table_info(posts)") if row[1] not in {"position", "id"}
                )
            ]
            number = 0
            while not stop.is_set():
                number += 1
                try:
                    database.execute(
                        f"INSERT INTO posts (position, id, {columns})"
                        f" SELECT (SELECT max(position) + 1 FROM posts), 'new{number}', {columns} FROM posts LIMIT 1"
                    )
                    database.execute("UPDATE posts SET words = ? WHERE position = ?", (f"changed {number}", number * 7))
                    database.execute("DELETE FROM posts WHERE position = ?", (number * 11,))
                    database.commit()
                except sqlite3.IntegrityError as error:
                    assert "denizen_moved" in str(error)
                    return
                done.append(number)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield done
    finally:
        stop.set()
        writer.join()


@pytest.mark.proves("V25")
def test_a_store_moves_under_writes_after_it_was_killed_on_the_way(tmp_path: Path, postgres_url: str) -> None:
    file = tmp_path / "denizen.db"
    fill(file, ROWS)
    source, target, told = SqliteDialect(file), open_postgres(postgres_url), Told()
    with writes(file) as written:
        command = [sys.executable, "-c", _MOVER, str(file), postgres_url, str(ROWS // 3)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path.cwd()) as killed:
            assert killed.stdout is not None
            assert killed.stdout.readline() == b"far enough\n"
            killed.send_signal(signal.SIGKILL)
        assert written
        done = StoreMover(source, target, "postgresql://it", told).run(told.switch)
    copied = [each.done for each in told.progress if each.stage is MoveStage.COPYING and each.table == "posts"]
    assert copied[0] > ROWS // 3  # it went on where it was
    assert (done.stage, told.switched) == (MoveStage.DONE, 1)
    assert digest(source) == digest(target)
    with target.engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT count(*) FROM posts WHERE id = :id"), {"id": f"new{written[-1]}"}) == 1
        assert (
            connection.scalar(sa.text("SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND NOT convalidated"))
            == 0
        )
        assert connection.scalar(sa.text("SELECT count(*) FROM pg_constraint WHERE contype = 'f'")) > 10


@pytest.mark.anyio
async def test_what_was_moved_is_used_there_and_comes_back(tmp_path: Path, postgres_url: str) -> None:
    first, second = SqliteDialect(tmp_path / "first.db"), SqliteDialect(tmp_path / "second.db")
    middle, told = open_postgres(postgres_url), Told()
    now = SystemClock().now()
    async with open_store_on(first) as store:
        async with store.work() as work:
            await work.generations.add(digest="one", source="test", now=now)
        StoreMover(first, middle, "middle", told).run(told.switch)
        with pytest.raises(Unavailable) as refused:
            async with store.work() as work:
                await work.generations.add(digest="lost", source="test", now=now)
        assert refused.value.code == "store_moved"
    async with open_store_on(middle) as store:
        async with store.work() as work:
            await work.generations.add(digest="two", source="test", now=now)
        StoreMover(middle, second, "second", told).run(told.switch)
        with pytest.raises(Unavailable) as refused:
            async with store.work() as work:
                await work.generations.add(digest="lost", source="test", now=now)
        assert refused.value.code == "store_moved"
    async with open_store_on(second) as store:
        async with store.work() as work:
            await work.generations.add(digest="three", source="test", now=now)
        async with store.work(write=False) as work:
            assert [each.digest for each in await work.generations.list_generations()] == ["three", "two", "one"]


def test_a_move_that_was_killed_before_the_configuration_was_written_writes_it(
    tmp_path: Path, postgres_url: str
) -> None:
    file = tmp_path / "denizen.db"
    fill(file, 10)
    source, target, told = SqliteDialect(file), open_postgres(postgres_url), Told()

    def die() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        StoreMover(source, target, "it", told).run(die)
    StoreMover(source, target, "it", told).run(told.switch)
    assert told.switched == 1
    assert digest(source) == digest(target)


def test_other_data_is_never_overwritten_and_a_move_can_be_given_up(tmp_path: Path, postgres_url: str) -> None:
    fill(tmp_path / "one.db", 10)
    fill(tmp_path / "other.db", 20)
    one, other = SqliteDialect(tmp_path / "one.db"), SqliteDialect(tmp_path / "other.db")
    before = digest(one)
    with pytest.raises(Conflict) as caught:
        StoreMover(one, other, "other", Told()).run(lambda: None)
    assert caught.value.code == "move_not_empty"
    forget_move(one)
    with closing(sqlite3.connect(tmp_path / "one.db")) as database:
        left = database.execute("SELECT name FROM sqlite_master WHERE name LIKE 'move%'").fetchall()
    assert (left, digest(one)) == ([], before)


def refuse(mover: StoreMover, switch: Callable[[], None] = lambda: None) -> DenizenError:
    with pytest.raises(DenizenError) as caught:
        mover.run(switch)
    return caught.value


def is_writable(file: Path) -> bool:
    """Whether the store in this file is in use."""
    with closing(sqlite3.connect(file)) as database:
        try:
            database.execute("UPDATE posts SET words = words")
        except sqlite3.IntegrityError:
            return False
    return True


def test_a_store_that_is_gone_or_was_emptied_is_not_moved(tmp_path: Path) -> None:
    file, told = tmp_path / "one.db", Told()
    target = SqliteDialect(tmp_path / "other.db")
    assert refuse(StoreMover(SqliteDialect(file), target, "other", told), told.switch).code == "store_missing"
    assert not file.exists()
    file.touch()
    assert refuse(StoreMover(SqliteDialect(file), target, "other", told), told.switch).code == "store_empty"
    file.unlink()

    fill(file, 10)

    def lose(progress: MoveProgress) -> None:
        if progress.stage is MoveStage.FOLLOWING:
            file.rename(tmp_path / "elsewhere.db")

    def switch() -> None:
        raise AssertionError("it must not come to that")

    assert refuse(StoreMover(SqliteDialect(file), target, "other", lose), switch).code == "store_missing"


@pytest.mark.parametrize("stage", [MoveStage.COPYING, MoveStage.VERIFYING, MoveStage.SWITCHING])
def test_a_move_that_was_stopped_goes_on_to_the_same_place_only(tmp_path: Path, stage: MoveStage) -> None:
    file, told = tmp_path / "one.db", Told()
    fill(file, 2_500)
    one, other = SqliteDialect(file), SqliteDialect(tmp_path / "other.db")

    def stop(progress: MoveProgress) -> None:
        if progress.stage is stage:
            assert mover.cancel()

    mover = StoreMover(one, other, "other", stop)
    assert refuse(mover, told.switch).code == "move_cancelled"
    assert is_writable(file)
    elsewhere = refuse(StoreMover(one, SqliteDialect(tmp_path / "third.db"), "third", told), told.switch)
    assert elsewhere.code == "move_elsewhere"
    assert "other" in elsewhere.message
    assert told.switched == 0

    def switch() -> None:
        assert not again.cancel()  # it is too late
        told.switch()

    again = StoreMover(one, other, "other", told)
    again.run(switch)
    assert told.switched == 1
    assert digest(one) == digest(other)
    assert not is_writable(file)
    for target, name in ((other, "other"), (SqliteDialect(tmp_path / "fourth.db"), "fourth")):
        done = refuse(StoreMover(one, target, name, told), told.switch)
        assert (done.code, "other" in done.message) == ("move_done", True)
    with pytest.raises(Conflict) as caught:
        forget_move(one)
    assert caught.value.code == "move_done"


def test_a_configuration_that_cannot_be_written_at_the_end_leaves_the_old_store_in_use(
    tmp_path: Path, postgres_url: str
) -> None:
    file, told = tmp_path / "one.db", Told()
    fill(file, 10)
    one, other = SqliteDialect(file), open_postgres(postgres_url)

    def fail() -> None:
        raise NeedsAttention("No room.", code="config_not_writable")

    assert refuse(StoreMover(one, other, "it", told), fail).code == "config_not_writable"
    with closing(sqlite3.connect(file)) as database:
        database.execute("UPDATE posts SET words = 'later' WHERE position = 3")
        database.commit()
    StoreMover(one, other, "it", told).run(told.switch)
    assert digest(one) == digest(other)
    back = SqliteDialect(tmp_path / "back.db")
    assert refuse(StoreMover(other, back, "back", told), fail).code == "config_not_writable"
    with other.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE posts SET words = 'last' WHERE position = 4")
    StoreMover(other, back, "back", told).run(told.switch)
    assert digest(other) == digest(back)


def test_a_target_that_goes_away_leaves_the_old_store_in_use_and_the_move_goes_on_later(
    tmp_path: Path, postgres_url: str
) -> None:
    file, told = tmp_path / "one.db", Told()
    fill(file, 2_500)
    one = SqliteDialect(file)

    def lose(progress: MoveProgress) -> None:
        if progress.stage is MoveStage.COPYING and progress.done >= 2_000:
            with open_postgres(postgres_url).engine.connect() as connection:
                connection.exec_driver_sql(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )

    assert refuse(StoreMover(one, open_postgres(postgres_url), "it", lose), told.switch).code == "store_unavailable"
    assert is_writable(file)
    StoreMover(one, open_postgres(postgres_url), "it", told).run(told.switch)
    assert digest(one) == digest(open_postgres(postgres_url))


def test_a_full_disk_leaves_the_old_store_in_use_and_is_named(tmp_path: Path) -> None:
    file, told = tmp_path / "one.db", Told()
    fill(file, 5_000)
    with open_limited_disk(tmp_path / "small", "1m") as disk:
        if not disk.is_mounted:
            pytest.skip("only root may mount a small disk")
        target = SqliteDialect(disk.folder / "other.db")
        problem = refuse(StoreMover(SqliteDialect(file), target, "other", told), told.switch)
        assert problem.code == "store_full"
        assert str(disk.folder) in problem.message
    assert told.switched == 0
    assert is_writable(file)


def test_nothing_is_counted_in_the_pause(tmp_path: Path) -> None:
    file = tmp_path / "one.db"
    fill(file, 1_500)
    one, other = SqliteDialect(file), SqliteDialect(tmp_path / "other.db")
    stages, read = [MoveStage.IDLE], list[tuple[MoveStage, str]]()
    for dialect in (one, other):

        @event.listens_for(dialect.engine, "before_cursor_execute")
        def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
            read.append((stages[-1], statement))

    def tell(progress: MoveProgress) -> None:
        stages.append(progress.stage)

    StoreMover(one, other, "other", tell).run(lambda: None)
    counted = {stage for stage, statement in read if "count(" in statement.lower()}
    assert counted == {MoveStage.IDLE}
    assert [statement for stage, statement in read if stage is MoveStage.SWITCHING]
    assert not [
        text for stage, text in read if stage is MoveStage.SWITCHING and "FROM posts" in text and "ORDER" in text
    ]
