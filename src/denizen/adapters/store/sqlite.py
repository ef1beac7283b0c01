"""SQLite: one file, one writer and a few readers side by side (WAL).

A commit survives the death of the process. When the machine loses power, the last commits may be lost
(`synchronous=NORMAL`), but never the file.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.util import LRUCache

from denizen.adapters.store.columns import EscapedText, UtcTime
from denizen.adapters.store.dialect import MOVED, REVISION_TABLE, IndexedTable, InsertInto, refuse_moved
from denizen.adapters.store.documents import passages
from denizen.adapters.store.messages import MESSAGE_COLUMNS, messages
from denizen.adapters.store.posts import posts
from denizen.adapters.store.sqlite_vectors import SqliteVectorIndex
from denizen.adapters.store.word_cache import CountCache, StemCache
from denizen.domain.errors import DenizenError, NeedsAttention, NotFound, Unavailable

_log = logging.getLogger("denizen.store")

BUSY_TIMEOUT_MS = 5000
"""The longest time that a write waits for another process that writes."""

COMPILED_STATEMENTS = 1000
"""How many compiled statements are kept; about twice as many as the store has."""

_PRAGMAS = ("synchronous=NORMAL", "foreign_keys=ON", "temp_store=MEMORY")


def _among(column: sa.ColumnElement[Any], name: str) -> sa.ColumnElement[bool]:
    values = sa.func.json_each(sa.bindparam(name, type_=sa.Text())).table_valued("value")
    return column.in_(sa.select(values.c.value))


_words = sa.table("message_words", sa.column("rowid", sa.Integer()), sa.column("words", sa.Text()))
_newest = (messages.c.created_at.desc(), messages.c.position.desc())
_found = (
    sa.select(messages.c.position)
    .join(_words, _words.c.rowid == messages.c.position)
    .where(_words.c.words.op("MATCH")(sa.bindparam("query", type_=sa.Text())))
    .where(_among(messages.c.conversation_id, "conversations"))
    .order_by(*_newest)
    .limit(sa.bindparam("limit"))
)
# The messages are read after the positions are known: sorting whole rows would carry every text along.
_SEARCH = sa.select(*MESSAGE_COLUMNS).where(messages.c.position.in_(_found)).order_by(*_newest)

# Plain SQL for its CROSS JOIN, which SQLite executes in the given order. Otherwise SQLite walks through the posts from
# the newest and looks for the words in each. A rare word among 100,000 posts then takes seconds instead of less than a
# millisecond; a word that all posts contain takes 50 ms this way.
# Positions come as one array, which takes half the time of as many rows.
_FIND_POSTS = sa.text(
    """
    SELECT json_group_array(position) FROM (
        SELECT posts.position FROM post_words CROSS JOIN posts ON posts.position = post_words.rowid
        WHERE post_words.words MATCH :query
          AND posts.platform = :platform AND posts.room IN (SELECT value FROM json_each(:rooms))
          AND posts.deleted_at IS NULL AND (:author = '' OR posts.author_id = :author)
          AND posts.created_at >= :since AND posts.created_at < :until
        ORDER BY posts.id DESC LIMIT :limit
    )
    """
).bindparams(
    sa.bindparam("platform", type_=EscapedText()),
    sa.bindparam("author", type_=EscapedText()),
    sa.bindparam("since", type_=UtcTime()),
    sa.bindparam("until", type_=UtcTime()),
)

_HAS_WORDS = "FROM passage_words WHERE words MATCH :query"
_HAS_WORDS_IN_SOURCES = (
    "FROM passage_words CROSS JOIN passages ON passages.position = passage_words.rowid"
    " WHERE passage_words.words MATCH :query AND passages.source_id IN (SELECT value FROM json_each(:sources))"
)
_FIND_PASSAGES = {
    (is_ranked, in_sources): sa.text(
        f"SELECT json_group_array(place) FROM (SELECT passage_words.rowid AS place {found} {order} LIMIT :limit)"  # noqa: S608 - texts of ours
    )
    for is_ranked, order in ((False, ""), (True, "ORDER BY rank"))
    for in_sources, found in ((False, _HAS_WORDS), (True, _HAS_WORDS_IN_SOURCES))
}
_MANY = 0.5
"""The share of all rows at which counting the matches of a word stops."""
_COUNT: Mapping[IndexedTable, sa.TextClause] = {
    "passages": sa.text("SELECT count(*) FROM (SELECT 1 FROM passage_words WHERE words MATCH :query LIMIT :most)"),
    "posts": sa.text("SELECT count(*) FROM (SELECT 1 FROM post_words WHERE words MATCH :query LIMIT :most)"),
}
_TOTAL: Mapping[IndexedTable, sa.Select[int]] = {
    "passages": sa.select(sa.func.coalesce(sa.func.max(passages.c.position), 0)),
    "posts": sa.select(sa.func.coalesce(sa.func.max(posts.c.position), 0)),
}

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


class SqliteDialect:
    """The database in the file `path`."""

    writers = 1
    readers = 3
    locks_rows = False
    search = _SEARCH
    find_posts = _FIND_POSTS

    def __init__(self, path: Path, *, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> None:
        self.path = path
        self.insert: InsertInto = insert
        self.engine = _make_engine(path, busy_timeout_ms)
        self.vector_index = SqliteVectorIndex()
        self._stems = StemCache()
        self._counts: Mapping[IndexedTable, CountCache] = {"passages": CountCache(), "posts": CountCache()}

    def prepare(self) -> None:
        """Does nothing: SQLite offers nothing beyond the schema."""

    def begin(self, connection: sa.Connection, *, write: bool) -> None:
        """Takes the write lock at once: a transaction that asks for it later can be refused at any time."""
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    def match_all(self, words: Sequence[str]) -> str:
        return " ".join(f'"{word}"' for word in words)

    def match_any(self, words: Sequence[str]) -> str:
        return " OR ".join(f'"{word}"' for word in words)

    def match_both(self, one: str, other: str) -> str:
        return f"({one}) AND ({other})"

    def match_either(self, queries: Sequence[str]) -> str:
        return " OR ".join(f"({query})" for query in queries)

    def find_passages(self, *, is_ranked: bool, in_sources: bool) -> sa.Executable:
        return _FIND_PASSAGES[is_ranked, in_sources]

    def list_holders(
        self, connection: sa.Connection, find: sa.Executable, queries: Sequence[str], bounds: Mapping[str, Any]
    ) -> Sequence[Sequence[int]]:
        return [json.loads(connection.execute(find, {**bounds, "query": query}).scalar_one()) for query in queries]

    def count_holders(
        self, connection: sa.Connection, table: IndexedTable, words: Sequence[str]
    ) -> tuple[Mapping[str, int], int]:
        total = connection.execute(_TOTAL[table]).scalar_one()
        most = max(round(total * _MANY), 1000)

        def count(new: Sequence[str]) -> Mapping[str, int]:
            asked = {word: {"query": self.match_all([word]), "most": most} for word in new}
            return {word: connection.execute(_COUNT[table], bounds).scalar_one() for word, bounds in asked.items()}

        return self._counts[table].get(words, total, count), total

    def stem_words(self, connection: sa.Connection, words: Sequence[str]) -> Mapping[str, str]:
        del connection
        return self._stems.get(words, _find_stems)

    def refresh_word_counts(self, connection: sa.Connection) -> None:
        self._counts["passages"].clear()

    def among(self, column: sa.ColumnElement[Any], name: str) -> sa.ColumnElement[bool]:
        return _among(column, name)

    def bind_list(self, values: Sequence[str] | Sequence[int]) -> object:
        return json.dumps(list(values))

    def utc_day_text(self, time: sa.ColumnElement[datetime]) -> sa.ColumnElement[str]:
        return sa.func.substr(sa.type_coerce(time, sa.Text()), 1, 10)

    def utc_hour_text(self, time: sa.ColumnElement[datetime]) -> sa.ColumnElement[str]:
        return sa.func.substr(sa.type_coerce(time, sa.Text()), 12, 2)

    def explain(self, error: DBAPIError) -> DenizenError | None:
        return explain(error.orig, self.path)

    def find_revision(self, connection: sa.Connection) -> str | None:
        names = set(connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'table'").scalars())
        if REVISION_TABLE in names:
            return connection.exec_driver_sql(f"SELECT version_num FROM {REVISION_TABLE}").scalar()  # noqa: S608
        if names:
            raise NeedsAttention(
                f"{self.path} is not a database of Denizen.",
                code="store_foreign",
                why=f"It holds other tables, such as {min(names)}.",
                fix="Set the store to another file; a new one is made when it does not exist.",
            )
        return None

    def begin_upgrade(self, connection: sa.Connection) -> None:
        """Begins without foreign keys, as SQLite requires for rebuilding a table; `find_disorder` checks them later."""
        connection.exec_driver_sql("PRAGMA foreign_keys=OFF")
        self.begin(connection, write=True)

    def rehearse(self, stored: str, head: str, upgrade: Callable[[sa.Connection, str], None]) -> None:
        """Leaves a copy named `NAME.before-REVISION` beside the file."""
        kept = self._sibling(f"before-{head}")
        partial = self._sibling(f"before-{head}.partial")
        try:
            _copy(self.path, partial)
            partial.replace(kept)
            _log.info("database copied before its upgrade", extra={"copy": str(kept)})
        except sqlite3.Error as error:
            raise explain(error, kept) or error from error
        finally:
            _remove(partial)
        with self.open_upgraded(kept, self._sibling("rehearsal"), lambda connection: upgrade(connection, head)):
            pass

    @contextmanager
    def open_upgraded(self, kept: Path, trial: Path, upgrade: Callable[[sa.Connection], None]) -> Generator[None]:
        """Makes `trial` of the copy `kept`, and upgrades it. It is removed at the end of the block."""
        try:
            _copy(kept, trial)
            with _make_engine(trial).connect() as connection:
                self.begin_upgrade(connection)
                upgrade(connection)
                connection.commit()
            yield
        except sqlite3.Error as error:
            raise explain(error, trial) or error from error
        finally:
            _remove(trial)

    def find_disorder(self, connection: sa.Connection) -> str | None:
        faults = connection.exec_driver_sql("PRAGMA quick_check(1)").scalars().all()
        if faults != ["ok"]:
            return str(faults[0])
        orphan = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
        return None if orphan is None else f"row {orphan[1]} of {orphan[0]} refers to a row of {orphan[2]} that is gone"

    def _sibling(self, suffix: str) -> Path:
        return self.path.with_name(f"{self.path.name}.{suffix}")


def _find_stems(words: Sequence[str]) -> Mapping[str, str]:
    """Finds the stems of words as FTS5 does, by having it index them in a database in memory."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE VIRTUAL TABLE stems USING fts5(word, tokenize='porter unicode61')")
        database.execute("CREATE VIRTUAL TABLE terms USING fts5vocab(stems, 'instance')")
        database.executemany("INSERT INTO stems(rowid, word) VALUES (?, ?)", enumerate(words))
        found = dict(database.execute("SELECT doc, term FROM terms").fetchall())
    return {word: found.get(place, word) for place, word in enumerate(words)}


def explain(error: BaseException | None, path: Path) -> DenizenError | None:
    """Translates a fault of SQLite to an error; None when only a bug can cause it."""
    if not isinstance(error, sqlite3.Error):
        return None
    why = str(error)
    primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if primary in _BUSY:
        return Unavailable(
            "The database is busy.", code="store_busy", why=f"{why} ({path})", fix="Try again.", retry_after_s=1.0
        )
    if MOVED in why:
        return refuse_moved(str(path))
    if primary == sqlite3.SQLITE_FULL:
        return NeedsAttention(
            f"The disk is full: the database {path} could not be written.",
            code="store_full",
            why=why,
            fix=f"Free space on the disk of {path.parent}. Nothing was written in part.",
        )
    if primary == sqlite3.SQLITE_CONSTRAINT and "FOREIGN KEY" in why:
        return NotFound("The record that this refers to does not exist.", code="store_reference", why=why)
    if primary in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM}:
        return NeedsAttention(
            f"The database {path} cannot be opened or written.",
            code="store_unusable",
            why=why,
            fix=f"Check that {path.parent} exists and has room, and that this user may write there and to the file.",
        )
    if primary in _DAMAGED:
        return NeedsAttention(
            f"The file {path} is damaged, or is not a database.",
            code="store_damaged",
            why=why,
            fix="Put back a copy of the file, or set the store to another one.",
        )
    return None


def check_file(path: Path, *, most_bytes: int | None = None) -> None:
    """Looks through the whole database for damage; not at all where it is larger than `most_bytes`, since that takes
    about a second for each 500 MB. Raises NeedsAttention that names the file; a database that is busy or not there yet
    passes.
    """
    if not path.exists() or (most_bytes is not None and path.stat().st_size > most_bytes):
        return
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DAMAGED:
            return
        found = str(error)
    if found != "ok":
        raise NeedsAttention(
            f"The database {path} is damaged.",
            code="store_damaged",
            why=" ".join(str(found).split())[:200],
            fix=f"Stop Denizen and put back a copy of the file. Without one, save what can be read: "
            f"sqlite3 {path} .recover | sqlite3 {path.with_name('recovered.db')}",
        )


def _enter_wal(connection: sqlite3.Connection, patience_s: float) -> None:
    """Switches the file to WAL mode and waits for other processes.

    SQLite does not wait by itself here: without this, two processes that open a new file at once would fail.
    """
    until_s = time.monotonic() + patience_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= until_s:
                raise
            time.sleep(0.01)
        else:
            return


def _make_engine(path: Path, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> sa.Engine:
    def connect() -> DBAPIConnection:
        # Readable by its owner only. If this fails, SQLite fails next and says why.
        with suppress(OSError):
            path.touch(mode=0o600)
        # `begin` starts transactions, not the driver. Only the worker's thread uses the connection.
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            connection.execute(f"PRAGMA busy_timeout={busy_timeout_ms}")
            _enter_wal(connection, busy_timeout_ms / 1000)
            for pragma in _PRAGMAS:
                connection.execute(f"PRAGMA {pragma}")
        except sqlite3.Error:
            connection.close()
            raise
        return cast("DBAPIConnection", connection)

    url = sa.URL.create("sqlite", database=str(path))
    dialect = _shared_engine().dialect
    pool = sa.NullPool(connect, dialect=dialect)
    return sa.Engine(pool, dialect, url, hide_parameters=True, execution_options={"compiled_cache": _compiled})


_compiled: LRUCache[Any, Any] = LRUCache(COMPILED_STATEMENTS)


@cache
def _shared_engine() -> sa.Engine:
    """Its dialect is that of every engine here, so that a process that opens many stores compiles a statement once:
    SQLAlchemy keeps what it compiled by dialect, and compiling costs more than most statements take.
    """
    engine = sa.create_engine("sqlite://", poolclass=sa.NullPool)
    engine.connect().close()  # the dialect reads the version of SQLite with the first connection
    return engine


def _copy(source: Path, target: Path) -> None:
    """Copies a database that may be in use; the copy is readable by its owner only."""
    _remove(target)
    target.touch(mode=0o600)
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
