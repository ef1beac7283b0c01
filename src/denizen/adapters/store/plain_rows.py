"""Rows of any table as both databases store them, to copy them from one to the other and to compare them.

The types of the store are passed over where both databases store the same: a text stays as it was escaped, JSON stays
the text that it is. Only times and flags differ between them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from denizen.adapters.store.columns import UtcTime
from denizen.adapters.store.database import metadata
from denizen.domain.record import record

BATCH_ROWS = 1000

Row = Mapping[str, Any]


@record
class TableDigest:
    """The number of rows and a sum over the hashes of all rows, in any order."""

    rows: int
    digest: str


def list_plain_tables() -> Sequence[sa.Table]:
    """Returns all tables, each behind those that it refers to."""
    plain = sa.MetaData()
    return [
        sa.Table(table.name, plain, *(_plain_column(column) for column in table.columns))
        for table in metadata.sorted_tables
    ]


def read_batch(connection: sa.Connection, table: sa.Table, after: Sequence[Any] | None) -> Sequence[Row]:
    """Returns the next rows in the order of the key."""
    keys = _keys(table)
    query = sa.select(table).order_by(*keys).limit(BATCH_ROWS)
    if after is not None:
        query = query.where(
            sa.tuple_(*keys) > sa.tuple_(*(sa.literal(value, key.type) for value, key in _pair(after, keys)))
        )
    return [dict(row) for row in connection.execute(query).mappings()]


def find_rows(connection: sa.Connection, table: sa.Table, keys: Sequence[Sequence[Any]]) -> Sequence[Row]:
    """Returns the rows with these keys, in the order of the key. A key without a row is passed over."""
    query = sa.select(table).where(_among(table, keys)).order_by(*_keys(table))
    return [dict(row) for row in connection.execute(query).mappings()]


def delete_rows(connection: sa.Connection, table: sa.Table, keys: Sequence[Sequence[Any]]) -> None:
    connection.execute(sa.delete(table).where(_among(table, keys)))


def insert_rows(connection: sa.Connection, table: sa.Table, rows: Sequence[Row], *, replaced: bool = False) -> None:
    """Adds rows. Those that are there already stay, unless `replaced` says that their keys were removed before."""
    if not rows:
        return
    statement = sa.insert(table)
    if not replaced:
        if connection.dialect.name == "sqlite":
            statement = sqlite.insert(table).on_conflict_do_nothing()
        else:
            from sqlalchemy.dialects import postgresql

            statement = postgresql.insert(table).on_conflict_do_nothing()
    connection.execute(statement, [dict(row) for row in rows])


def read_key(table: sa.Table, row: Row) -> list[Any]:
    return [row[key.name] for key in _keys(table)]


def count(connection: sa.Connection, table: sa.Table) -> int:
    return int(connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())


def digest_table(
    connection: sa.Connection, table: sa.Table, on_batch: Callable[[], None] = lambda: None
) -> TableDigest:
    """Reads all rows. `on_batch` is called after each batch, and may end it by raising."""
    rows, total = 0, 0
    for batch in iterate(connection, table):
        on_batch()
        for row in batch:
            rows += 1
            text = json.dumps(list(row.values()), default=_to_text)
            total += int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")
    return TableDigest(rows, f"{total % (1 << 256):064x}")


def iterate(connection: sa.Connection, table: sa.Table, after: Sequence[Any] | None = None) -> Iterator[Sequence[Row]]:
    """Yields all rows behind that key, in batches."""
    while batch := read_batch(connection, table, after):
        yield batch
        after = read_key(table, batch[-1])


def _to_text(value: object) -> str:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is in no column")


def _plain_column(column: sa.Column[Any]) -> sa.Column[Any]:
    kind = column.type
    if not isinstance(kind, UtcTime | sa.Boolean | sa.LargeBinary):
        stored = kind.dialect_impl(sqlite.dialect())
        stored = getattr(stored, "impl_instance", stored)
        kind = sa.BigInteger() if isinstance(stored, sa.Integer) else sa.Text()
    return sa.Column(column.name, kind, primary_key=column.primary_key, autoincrement=False)


def _keys(table: sa.Table) -> list[sa.Column[Any]]:
    return list(table.primary_key)


def _pair(values: Sequence[Any], keys: Sequence[sa.Column[Any]]) -> Iterator[tuple[Any, sa.Column[Any]]]:
    return zip(values, keys, strict=True)


def _among(table: sa.Table, keys: Sequence[Sequence[Any]]) -> sa.ColumnElement[bool]:
    columns = _keys(table)
    if len(columns) == 1:
        return columns[0].in_([key[0] for key in keys])
    return sa.tuple_(*columns).in_([tuple(key) for key in keys])
