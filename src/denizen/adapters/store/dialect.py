"""What the store asks of a kind of database. `sqlite` and `postgres` are the two; all differences are there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from denizen.domain.errors import DenizenError
from denizen.domain.vector import Near


@dataclass(frozen=True, slots=True)
class VectorQuery:
    """`shelves` are as the column keeps them, `bounds` the parameters `within`, `of_model` and `shelves`."""

    collection: str
    model: str
    shelves: frozenset[str]
    query: bytes
    limit: int
    bounds: dict[str, Any]


class VectorIndex(Protocol):
    """One for a database."""

    def learn(self, connection: sa.Connection, rows: Sequence[dict[str, Any]]) -> None:
        """These rows of `vectors` were written in this transaction."""
        ...

    def find(self, connection: sa.Connection, wanted: VectorQuery) -> list[Near] | None:
        """The nearest, nearest first, of what is committed; None to look at them one by one."""
        ...


if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite

    Insert: TypeAlias = sqlite.Insert | postgresql.Insert

InsertInto: TypeAlias = Callable[[sa.Table], "Insert"]
"""An insert that knows `on_conflict_do_nothing`; also the key under which a prepared statement is kept."""

REVISION_TABLE = "denizen_revision"
"""Where Alembic notes the state of the schema; named so that another program's notes in the same database are safe."""


class SqlDialect(Protocol):
    """One database: how to reach it, and what it does in its own way."""

    @property
    def engine(self) -> sa.Engine: ...

    @property
    def insert(self) -> InsertInto: ...

    @property
    def writers(self) -> int:
        """How many units of work may write at a time; as many lanes are opened at most."""
        ...

    @property
    def readers(self) -> int: ...

    @property
    def locks_rows(self) -> bool:
        """Whether writers run side by side, so that a row has to be locked before a decision is taken on it."""
        ...

    @property
    def search(self) -> sa.Select[Any]:
        """Messages that contain all words, newest first; parameters `query` (see `match_all`), `conversations` (see
        `bind_list`) and `limit`.
        """
        ...

    @property
    def search_posts(self) -> sa.Select[Any]:
        """Posts that contain all words, newest first; parameters `query`, `platform`, `rooms` (see `bind_list`), `author`
        (empty for anybody), `since`, `until` and `limit`.
        """
        ...

    @property
    def find_passages(self) -> sa.Executable:
        """Keys of passages, the best first; parameters `query` (see `match_any`) and `limit`."""
        ...

    @property
    def find_passages_in_sources(self) -> sa.Executable:
        """Likewise, of the sources in the parameter `sources` (see `bind_list`)."""
        ...

    @property
    def vector_index(self) -> VectorIndex: ...

    def prepare(self) -> None:
        """Makes use of what this server offers beyond the schema. Once, when that is up to date."""
        ...

    def begin(self, connection: sa.Connection, *, write: bool) -> None:
        """Begins a transaction; one that writes has what it takes to come to an end, or raises."""
        ...

    def match_all(self, words: Sequence[str]) -> str:
        """The search for all of these, in the database's own syntax. `words` are letters and digits only."""
        ...

    def match_any(self, words: Sequence[str]) -> str:
        """The search for any of these."""
        ...

    def estimate_word_shares(self, connection: sa.Connection, words: Sequence[str]) -> tuple[Mapping[str, float], int]:
        """The share of all passages that has each word, about, and how many passages there are, about. What is rare
        may be said to be rarer than it is.
        """
        ...

    def refresh_word_counts(self, connection: sa.Connection) -> None:
        """The passages have changed: makes `estimate_word_shares` true again."""
        ...

    def among(self, column: sa.ColumnElement[str], name: str) -> sa.ColumnElement[bool]:
        """Whether the column is one of any number of values, the parameter of that name (see `bind_list`)."""
        ...

    def bind_list(self, values: Sequence[str]) -> object:
        """The parameter for `among`. The values are as the column keeps them."""
        ...

    def utc_day_text(self, time: sa.ColumnElement[datetime]) -> sa.ColumnElement[str]:
        """The UTC day, as `2026-11-21`."""
        ...

    def utc_hour_text(self, time: sa.ColumnElement[datetime]) -> sa.ColumnElement[str]:
        """The hour of the UTC day, as `09`."""
        ...

    def explain(self, error: DBAPIError) -> DenizenError | None:
        """What `Store` promises for this fault of the database; None when it is a bug. Never tells a password."""
        ...

    def find_revision(self, connection: sa.Connection) -> str | None:
        """The stored revision of the schema; None for an empty database. Raises NeedsAttention for a foreign one."""
        ...

    def begin_upgrade(self, connection: sa.Connection) -> None:
        """Begins a transaction that may change the schema, while no other process does."""
        ...

    def rehearse(self, head: str, upgrade: Callable[[sa.Connection], None]) -> None:
        """Makes a copy to go back to, and tries the upgrade on another (promise 8), when the database has files."""
        ...

    def find_disorder(self, connection: sa.Connection) -> str | None:
        """What an upgrade has left damaged or without what it refers to."""
        ...
