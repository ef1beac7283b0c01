"""Postgres: several processes side by side, on one machine or many.

Every wait has a limit: units of work are shielded against cancellation, so the server has to give up for us.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.dialects.postgresql import ARRAY, insert
from sqlalchemy.exc import DBAPIError

from denizen.adapters.store.columns import EscapedText
from denizen.adapters.store.dialect import (
    MOVED,
    REVISION_TABLE,
    SECRET_PARAMETERS,
    IndexedTable,
    InsertInto,
    describe_url,
    refuse_moved,
)
from denizen.adapters.store.documents import passages
from denizen.adapters.store.messages import MESSAGE_COLUMNS, messages
from denizen.adapters.store.postgres_copy import choose_copy_name, copy_tables, enter_copy
from denizen.adapters.store.postgres_vectors import PgvectorIndex
from denizen.adapters.store.posts import NOT_DELETED, posts
from denizen.adapters.store.word_cache import StemCache, is_near
from denizen.domain.errors import DenizenError, NeedsAttention, NotFound, Unavailable

if TYPE_CHECKING:
    import psycopg

CONNECT_TIMEOUT_S = 10
STATEMENT_TIMEOUT_MS = 30_000
LOCK_TIMEOUT_MS = 10_000
IDLE_TIMEOUT_MS = 60_000
"""Ends the transaction of a process that hangs, so that its locks are released."""

_CLIENT = {
    "connect_timeout": CONNECT_TIMEOUT_S,
    "application_name": "denizen",
    "tcp_user_timeout": STATEMENT_TIMEOUT_MS,
}
_DEADLINES = (
    f"SET statement_timeout = {STATEMENT_TIMEOUT_MS}; SET lock_timeout = {LOCK_TIMEOUT_MS};"
    f" SET idle_in_transaction_session_timeout = {IDLE_TIMEOUT_MS}"
).encode()

MIGRATION_LOCK = 4_403_914_762_231_553
"""The advisory lock for migrations. Any number will do, as long as every process uses the same."""

_QUERY = sa.func.plainto_tsquery(
    sa.literal_column("'denizen_words'::regconfig"), sa.bindparam("query", type_=sa.Text())
)


def _among(column: sa.ColumnElement[Any], name: str) -> sa.ColumnElement[bool]:
    kind = sa.BigInteger() if isinstance(column.type, sa.Integer) else sa.Text()
    return column == sa.any_(sa.bindparam(name, type_=ARRAY(kind)))


_SEARCH = (
    sa.select(*MESSAGE_COLUMNS)
    .where(sa.literal_column("messages.lexemes").op("@@")(_QUERY))
    .where(_among(messages.c.conversation_id, "conversations"))
    .order_by(messages.c.created_at.desc(), messages.c.position.desc())
    .limit(sa.bindparam("limit"))
)

_AUTHOR = sa.bindparam("author", type_=EscapedText())
_ASKED = sa.func.unnest(sa.bindparam("queries", type_=ARRAY(sa.Text()))).table_valued("query", with_ordinality="number")
_asked = _ASKED.render_derived(name="asked")
_ANY = sa.func.to_tsquery(sa.literal_column("'denizen_words'::regconfig"), _asked.c.query)


def _find_each(found: sa.Select[Any]) -> sa.Executable:
    """Returns the search for an array of positions for each of the `queries`. The planner does not see them, and takes
    the index of words; where it saw a common one it would read the words of every row, which takes a hundred times as
    long.
    """
    positions = sa.func.array(found.correlate(_asked).scalar_subquery(), type_=ARRAY(sa.BigInteger()))
    return sa.select(positions).select_from(_asked).order_by(_asked.c.number)


_FIND_POSTS = _find_each(
    sa.select(posts.c.position)
    .where(sa.literal_column("posts.lexemes").op("@@")(_ANY))
    .where(posts.c.platform == sa.bindparam("platform"), _among(posts.c.room, "rooms"), NOT_DELETED)
    .where(sa.or_(_AUTHOR == "", posts.c.author_id == _AUTHOR))
    .where(posts.c.created_at >= sa.bindparam("since"), posts.c.created_at < sa.bindparam("until"))
    .order_by(posts.c.id.desc())
    .limit(sa.bindparam("limit"))
)

_HAS_ANY = sa.literal_column("passages.lexemes").op("@@")(_ANY)
_FIND = sa.select(passages.c.position).where(_HAS_ANY).limit(sa.bindparam("limit"))
_IN_SOURCES = _among(passages.c.source_id, "sources")


def _rank(found: sa.Select[Any]) -> sa.Select[Any]:
    """Ranks what is found up to the limit: ranking all of 40,000 passages with a common word takes half a second."""
    some = (
        found.add_columns(sa.literal_column("passages.lexemes", sa.Text()).label("lexemes"))
        .correlate(_asked)
        .lateral("some")
    )
    # 33 = 1 + 32: divides by the logarithm of the length and scales to 0..1, which comes close to bm25.
    return sa.select(some.c.position).order_by(sa.func.ts_rank(some.c.lexemes, _ANY, 33).desc(), some.c.position)


_FIND_PASSAGES = {
    (False, False): _find_each(_FIND),
    (False, True): _find_each(_FIND.where(_IN_SOURCES)),
    (True, False): _find_each(_rank(_FIND)),
    (True, True): _find_each(_rank(_FIND.where(_IN_SOURCES))),
}
# Counting takes 20 ms for each word; the planner's statistics know the common ones, by their stems.
_SHARES = sa.text(
    """
    SELECT unnest(most_common_elems::text::text[]) AS stem, unnest(most_common_elem_freqs) AS share
    FROM pg_stats WHERE schemaname = current_schema() AND tablename = :table AND attname = 'lexemes'
    """
)
_STEMS = sa.text(
    """
    SELECT asked.word, coalesce(
        (SELECT min(each.lexeme) FROM unnest(to_tsvector('denizen_words'::regconfig, asked.word)) AS each), asked.word
    ) AS stem
    FROM unnest(CAST(:words AS text[])) AS asked(word)
    """
)
_TOTAL = sa.text("SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = to_regclass(:table)")

_RETRY = {"40001", "40P01", "53300", "55P03", "57014"}
"""Serialization failure, deadlock, too many connections, lock timeout and statement timeout."""

_REFUSED = ("authentication failed", "pg_hba.conf", "does not exist", "permission denied")


class PostgresDialect:
    """The database behind a `postgresql://` URL."""

    locks_rows = True
    search = _SEARCH
    find_posts = _FIND_POSTS

    def __init__(self, url: sa.URL, max_connections: int = 10) -> None:
        self._url = url
        self.writers = max_connections * 6 // 10
        self.readers = max_connections - self.writers
        self.insert: InsertInto = insert
        # Settings in the URL win over ours, and its `options` may set other deadlines.
        self.engine = sa.create_engine(
            url.set(drivername="postgresql+psycopg"),
            poolclass=sa.NullPool,
            connect_args={name: value for name, value in _CLIENT.items() if name not in url.query},
            use_native_hstore=False,
            hide_parameters=True,
        )
        if "options" not in url.query:
            event.listen(self.engine, "connect", _set_deadlines)
        self.vector_index = PgvectorIndex()
        self._stems = StemCache()
        self._shares: dict[IndexedTable, tuple[int, Mapping[str, float]]] = {}

    def prepare(self) -> None:
        self.vector_index.prepare(self.engine)

    def begin(self, connection: sa.Connection, *, write: bool) -> None:
        """Prepares the transaction, which the driver begins with the first statement.

        A unit of work that only reads sees one state of the database throughout.
        """
        if not write:
            from psycopg import IsolationLevel

            driver = connection.connection.driver_connection
            if driver is not None and driver.read_only is None:
                driver.read_only = True
                driver.isolation_level = IsolationLevel.REPEATABLE_READ

    def match_all(self, words: Sequence[str]) -> str:
        return " ".join(words)

    def match_any(self, words: Sequence[str]) -> str:
        return " | ".join(words)

    def match_both(self, one: str, other: str) -> str:
        return f"({one}) & ({other})"

    def match_either(self, queries: Sequence[str]) -> str:
        return " | ".join(f"({query})" for query in queries)

    def find_passages(self, *, is_ranked: bool, in_sources: bool) -> sa.Executable:
        return _FIND_PASSAGES[is_ranked, in_sources]

    def list_holders(
        self, connection: sa.Connection, find: sa.Executable, queries: Sequence[str], bounds: Mapping[str, Any]
    ) -> Sequence[Sequence[int]]:
        return connection.execute(find, {**bounds, "queries": list(queries)}).scalars().all() if queries else []

    def count_holders(
        self, connection: sa.Connection, table: IndexedTable, words: Sequence[str]
    ) -> tuple[Mapping[str, int], int]:
        """Estimates from the statistics of the planner, which are read when the number of rows has changed."""
        total: int = connection.execute(_TOTAL, {"table": table}).scalar_one()
        counted, shares = self._shares.get(table, (-1, {}))
        if counted < 0 or not is_near(total, counted):
            rows = connection.execute(_SHARES, {"table": table})
            shares = {row.stem: row.share for row in rows}
            self._shares[table] = total, shares
        stems = self.stem_words(connection, words)
        return {word: round(shares.get(stems[word], 0) * total) for word in words}, total

    def stem_words(self, connection: sa.Connection, words: Sequence[str]) -> Mapping[str, str]:
        def find(new: Sequence[str]) -> Mapping[str, str]:
            return {row.word: row.stem for row in connection.execute(_STEMS, {"words": list(new)})}

        return self._stems.get(words, find)

    def refresh_word_counts(self, connection: sa.Connection) -> None:
        connection.execute(sa.text("ANALYZE passages"))
        self._shares.pop("passages", None)

    def among(self, column: sa.ColumnElement[Any], name: str) -> sa.ColumnElement[bool]:
        return _among(column, name)

    def bind_list(self, values: Sequence[str] | Sequence[int]) -> object:
        return list(values)

    def utc_day_text(self, time: sa.ColumnElement[datetime]) -> sa.ColumnElement[str]:
        in_utc = sa.func.timezone(sa.literal_column("'UTC'"), time)
        return sa.func.to_char(in_utc, sa.literal_column("'YYYY-MM-DD'"), type_=sa.Text())

    def utc_hour_text(self, time: sa.ColumnElement[datetime]) -> sa.ColumnElement[str]:
        in_utc = sa.func.timezone(sa.literal_column("'UTC'"), time)
        return sa.func.to_char(in_utc, sa.literal_column("'HH24'"), type_=sa.Text())

    def explain(self, error: DBAPIError) -> DenizenError | None:
        return explain(error.orig, self._url)

    def find_revision(self, connection: sa.Connection) -> str | None:
        if connection.scalar(sa.select(sa.func.to_regclass(REVISION_TABLE))) is None:
            return None
        return connection.exec_driver_sql(f"SELECT version_num FROM {REVISION_TABLE}").scalar()  # noqa: S608

    def begin_upgrade(self, connection: sa.Connection) -> None:
        """Takes the migration lock and lifts the time limits: a migration may take long."""
        lift_deadlines(connection)
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(MIGRATION_LOCK)))

    def rehearse(self, stored: str, head: str, upgrade: Callable[[sa.Connection, str], None]) -> None:
        """Leaves a copy in the schema `before_REVISION` beside the tables. The trial is rolled back."""
        with self.engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
            lift_deadlines(connection)
            copy = choose_copy_name(connection, head)
            copy_tables(connection, copy, lambda: upgrade(connection, stored))
            connection.commit()
            lift_deadlines(connection)
            enter_copy(connection, copy)
            upgrade(connection, head)
            connection.exec_driver_sql("SET CONSTRAINTS ALL IMMEDIATE")
            connection.rollback()

    def find_disorder(self, connection: sa.Connection) -> str | None:
        """Finds nothing: the server checks its own integrity."""
        return None


def lift_deadlines(connection: sa.Connection) -> None:
    """For the transaction that begins with it."""
    for deadline in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"):
        connection.exec_driver_sql(f"SET LOCAL {deadline} = 0")


def explain(error: BaseException | None, url: sa.URL) -> DenizenError | None:
    """Translates a fault of Postgres, or of the way to it, to an error; None when only a bug can cause it."""
    import psycopg

    if not isinstance(error, psycopg.Error):
        return None
    where = describe_url(url)
    why = _without_password(str(error).strip(), url)
    state = error.sqlstate or ""
    if MOVED in why:
        return refuse_moved(where)
    if state == "23503":
        return NotFound("The record that this refers to does not exist.", code="store_reference", why=why)
    if state == "53100":
        return NeedsAttention(
            "The disk of the database server is full.",
            code="store_full",
            why=why,
            fix=f"Free space on the server of {where}. Nothing was written in part.",
        )
    is_connecting = not state and isinstance(error, psycopg.OperationalError)
    if state.startswith("28") or state in {"3D000", "42501", "25006"} or (is_connecting and _is_refused(why)):
        return NeedsAttention(
            "The database server refuses Denizen.",
            code="store_refused",
            why=why,
            fix=f"Check the user, the password, the database and the rights of {where}.",
        )
    if is_connecting or state in _RETRY or state[:3] == "57P" or state[:2] == "08":
        return Unavailable(
            "The database does not answer." if is_connecting else "The database could not finish in time.",
            code="store_unavailable",
            why=why,
            fix=f"Check that the server of {where} runs and can be reached, then try again.",
            retry_after_s=1.0,
        )
    if not state and isinstance(error, psycopg.ProgrammingError):
        return NeedsAttention("The database URL is wrong.", code="store_url", why=why, fix=f"Correct {where}.")
    return None


def _set_deadlines(connection: psycopg.Connection, _record: object) -> None:
    # Not among the connection's arguments: poolers such as PgBouncer refuse them there.
    connection.execute(_DEADLINES)
    connection.commit()


def _is_refused(why: str) -> bool:
    return any(words in why for words in _REFUSED)


def _without_password(text: str, url: sa.URL) -> str:
    hidden = [str(value) for name, value in url.query.items() if name.lower() in SECRET_PARAMETERS]
    plain = {str(url.password or ""), *hidden}
    for secret in (plain | {quote(each, safe="") for each in plain}) - {""}:
        text = text.replace(secret, "***")
    return text
