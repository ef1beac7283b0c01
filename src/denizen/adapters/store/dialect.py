"""The interface of a kind of database. `sqlite` and `postgres` implement it; all differences are there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias
from urllib.parse import unquote

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from denizen.domain.errors import DenizenError, Unavailable
from denizen.domain.record import record
from denizen.domain.store_move import STORE_MOVED
from denizen.domain.vector import VectorMatch


@record
class VectorQuery:
    """A search for the nearest vectors.

    `namespaces` are as the column stores them, `bounds` the parameters `within`, `of_model` and `namespaces`.
    """

    collection: str
    model: str
    namespaces: frozenset[str]
    query: bytes
    limit: int
    bounds: dict[str, Any]


class VectorIndex(Protocol):
    """A faster search for vectors than comparing them one by one; one instance for a database."""

    def learn(self, connection: sa.Connection, rows: Sequence[dict[str, Any]]) -> None:
        """Adds rows of `vectors` that this transaction has written."""
        ...

    def find(self, connection: sa.Connection, wanted: VectorQuery) -> list[VectorMatch] | None:
        """Returns the nearest committed vectors, nearest first; None when they must be compared one by one."""
        ...


if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite

    Insert: TypeAlias = sqlite.Insert | postgresql.Insert

InsertInto: TypeAlias = Callable[[sa.Table], "Insert"]
"""An insert that knows `on_conflict_do_nothing`; also the key under which a prepared statement is cached."""

IndexedTable: TypeAlias = Literal["passages", "posts"]
"""A table whose words are searched for any of several."""

MOVED = "denizen_moved"
"""The text of a trigger that refuses a write, because the data has moved to another database."""

REVISION_TABLE = "denizen_revision"
"""The table of Alembic's revision. Its own name keeps another program's revisions in the same database safe."""

SECRET_PARAMETERS = frozenset({"password", "sslpassword", "passfile"})
"""The parameters in a URL of Postgres that nobody is to see."""


class SqlDialect(Protocol):
    """One database: how to reach it, and what it does in its own way."""

    @property
    def engine(self) -> sa.Engine: ...

    @property
    def insert(self) -> InsertInto: ...

    @property
    def writers(self) -> int:
        """The number of units of work that may write at a time; the pool has at most as many workers."""
        ...

    @property
    def readers(self) -> int: ...

    @property
    def locks_rows(self) -> bool:
        """True when writers run side by side, so that a row must be locked before a decision about it."""
        ...

    @property
    def search(self) -> sa.Select[Any]:
        """The search for messages that contain all words, newest first.

        Parameters: `query` (see `match_all`), `conversations` (see `bind_list`) and `limit`.
        """
        ...

    @property
    def find_posts(self) -> sa.Executable:
        """The search for positions of posts, newest first; see `list_holders`.

        Parameters: `platform`, `rooms` (see `bind_list`), `author` (empty for anybody), `since`, `until` and `limit`.
        """
        ...

    def find_passages(self, *, is_ranked: bool, in_sources: bool) -> sa.Executable:
        """Returns the search for positions of passages; see `list_holders`. Parameters: `limit`, and `sources` (see
        `bind_list`) when it is within sources. The best come first when it is ranked, else any.
        """
        ...

    @property
    def vector_index(self) -> VectorIndex: ...

    def prepare(self) -> None:
        """Uses what this server offers beyond the schema. Called once, when the schema is up to date."""
        ...

    def begin(self, connection: sa.Connection, *, write: bool) -> None:
        """Begins a transaction. One that writes takes its lock now, or raises."""
        ...

    def match_all(self, words: Sequence[str]) -> str:
        """Returns a query for all of these words, in the database's own syntax. Words are letters and digits only."""
        ...

    def match_any(self, words: Sequence[str]) -> str:
        """Returns a query for any of these words."""
        ...

    def match_both(self, one: str, other: str) -> str:
        """Returns a query for what both queries find."""
        ...

    def match_either(self, queries: Sequence[str]) -> str:
        """Returns a query for what any of the queries finds."""
        ...

    def list_holders(
        self, connection: sa.Connection, find: sa.Executable, queries: Sequence[str], bounds: Mapping[str, Any]
    ) -> Sequence[Sequence[int]]:
        """Returns the positions of the rows that `find_posts` or `find_passages` finds for each query."""
        ...

    def count_holders(
        self, connection: sa.Connection, table: IndexedTable, words: Sequence[str]
    ) -> tuple[Mapping[str, int], int]:
        """Counts the rows that contain each word, and all rows.

        A rare word may be reported as rarer than it is, one in more than half of them as in half. The counts of common
        words may be those of a while ago, when the table had up to a twentieth more or fewer rows.
        """
        ...

    def stem_words(self, connection: sa.Connection, words: Sequence[str]) -> Mapping[str, str]:
        """Returns each word as the index has it: words with the same stem are found for one another."""
        ...

    def refresh_word_counts(self, connection: sa.Connection) -> None:
        """Updates the statistics behind `count_holders`, after the passages have changed."""
        ...

    def among(self, column: sa.ColumnElement[Any], name: str) -> sa.ColumnElement[bool]:
        """Returns the condition that the column is in the list parameter of that name (see `bind_list`)."""
        ...

    def bind_list(self, values: Sequence[str] | Sequence[int]) -> object:
        """Returns the parameter for `among`. The values must be in the form that the column stores."""
        ...

    def utc_day_text(self, time: sa.ColumnElement[datetime]) -> sa.ColumnElement[str]:
        """Returns the UTC day as text, like `2026-11-21`."""
        ...

    def utc_hour_text(self, time: sa.ColumnElement[datetime]) -> sa.ColumnElement[str]:
        """Returns the hour of the UTC day as text, like `09`."""
        ...

    def explain(self, error: DBAPIError) -> DenizenError | None:
        """Translates a fault of the database to an error that `Store` promises; None when the fault is a bug.

        The error never contains a password.
        """
        ...

    def find_revision(self, connection: sa.Connection) -> str | None:
        """Returns the stored revision of the schema; None for an empty database.

        Raises NeedsAttention for a database of another program.
        """
        ...

    def begin_upgrade(self, connection: sa.Connection) -> None:
        """Begins a transaction that may change the schema, while no other process does."""
        ...

    def rehearse(self, stored: str, head: str, upgrade: Callable[[sa.Connection, str], None]) -> None:
        """Makes a copy to go back to, and tries the upgrade from `stored` to `head` on one. `upgrade` migrates what the
        connection leads to as far as the given revision, within its transaction.
        """
        ...

    def find_disorder(self, connection: sa.Connection) -> str | None:
        """Returns the damage that an upgrade has left, such as a reference to a missing row; None when all is well."""
        ...


def refuse_moved(where: str) -> Unavailable:
    """Returns the error of a write to a database whose data is elsewhere now."""
    return Unavailable(
        "The data has moved to another database.",
        code=STORE_MOVED,
        why=f"`denizen db move` has closed {where} for writing.",
        fix="Restart Denizen. The home folder that was moved names the new database (`denizen db status` shows it); in "
        "another home folder, write that address as store.url into denizen.yaml first.",
        retry_after_s=5.0,
    )


def describe_url(url: sa.URL) -> str:
    """Returns a URL as people may see it. With an `@` in a password one cannot tell where that ends: then it is only
    the kind of database.
    """
    kind = url.get_backend_name()
    if "@" in (url.host or "") or (kind != "sqlite" and "@" in (url.database or "")):
        return kind
    hidden = {name: "***" for name in url.query if name.lower() in SECRET_PARAMETERS}
    return unquote(url.update_query_dict(hidden).render_as_string(hide_password=True))
