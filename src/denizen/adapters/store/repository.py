"""The base of repositories: statements in a unit of work, rows as records by name, and the usual inserts.

A field of a record is stored in the column of its name. A field that is a record itself, such as a `Place`, is stored
in the columns that are named like its own fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, get_type_hints

import sqlalchemy as sa

from denizen.adapters.store.dialect import InsertInto
from denizen.adapters.store.transaction import Transaction

T = TypeVar("T")
Row = sa.Row[Any]
Bounds = Mapping[str, Any]


class SqlRepository:
    """The base of all repositories. Rows are turned into records in the thread of the connection."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._dialect = transaction.dialect

    async def _list(self, parse: Callable[[Row], T], statement: sa.Executable, bounds: Bounds | None = None) -> list[T]:
        return await self._transaction.read(
            lambda connection: [parse(row) for row in connection.execute(statement, bounds)]
        )

    async def _find(self, parse: Callable[[Row], T], statement: sa.Executable, bounds: Bounds) -> T | None:
        def job(connection: sa.Connection) -> T | None:
            row = connection.execute(statement, bounds).first()
            return None if row is None else parse(row)

        return await self._transaction.read(job)

    async def _add(self, table: sa.Table, row: Bounds) -> bool:
        """Adds a row. False when it is there already."""
        add = insert_row(self._dialect.insert, table)
        return await self._transaction.write(lambda connection: connection.execute(add, row).first() is not None)

    async def _change(self, statement: sa.Executable, bounds: Bounds) -> int:
        """Runs an update or a delete. Returns the number of rows."""
        return await self._transaction.write(lambda connection: connection.execute(statement, bounds).rowcount)

    async def _execute(self, statement: sa.Executable, rows: Bounds | Sequence[Bounds]) -> None:
        """Runs a statement that writes, once for each row."""
        await self._transaction.write(lambda connection: connection.execute(statement, rows) if rows else None)


def read_record(kind: type[T], row: Row, **others: object) -> T:
    """Returns the record of a row. `others` are the fields that have no columns of their own."""
    return kind(
        **others,
        **{
            name: read_record(part, row) if part else getattr(row, name)
            for name, part in _list_fields(kind)
            if name not in others
        },
    )


def write_record(record: object, *left_out: str) -> dict[str, Any]:
    """Returns the columns of a record, without the fields that are named. `read_record` is the inverse."""
    row: dict[str, Any] = {}
    for name, part in _list_fields(type(record)):
        if name not in left_out:
            row |= write_record(getattr(record, name)) if part else {name: getattr(record, name)}
    return row


@cache
def _list_fields(kind: type[Any]) -> Sequence[tuple[str, type[Any] | None]]:
    """Returns the fields, each with its type when that is a record."""
    hints = get_type_hints(kind)
    return [(field.name, hints[field.name] if is_dataclass(hints[field.name]) else None) for field in fields(kind)]


@cache
def insert_row(insert: InsertInto, table: sa.Table) -> sa.Executable:
    """The insert of one row. It returns its key, or nothing when the row is there already, by whichever key."""
    return insert(table).on_conflict_do_nothing().returning(*table.primary_key)


@cache
def insert_rows(insert: InsertInto, table: sa.Table) -> sa.Executable:
    """The insert of any number of rows. Those that are there already stay as they are."""
    return insert(table).on_conflict_do_nothing().inline()


@cache
def upsert(insert: InsertInto, table: sa.Table, *columns: str) -> sa.Executable:
    """The insert of rows that overwrites these columns, or all but the key, where a row is there already."""
    key = [table.c.id] if "position" in table.primary_key.columns else list(table.primary_key)
    statement = insert(table)
    names = columns or [column.name for column in table.c if column not in {*key, *table.primary_key}]
    changed = {name: statement.excluded[name] for name in names}
    return statement.on_conflict_do_update(index_elements=key, set_=changed).inline()
