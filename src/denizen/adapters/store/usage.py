"""The columns of tokens and money that several tables share, reading sums of them, and the days that are computed."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import Usd, metadata, times
from denizen.domain.usage import Usage

COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "requests")


def usage_columns() -> list[sa.Column[Any]]:
    """Returns the columns of tokens and money."""
    return [*(sa.Column(name, sa.BigInteger(), nullable=False) for name in COUNTS), sa.Column("cost_usd", Usd())]


usage_computed = sa.Table(
    "usage_computed", metadata, sa.Column("day", sa.Text(), primary_key=True), *times("computed_at")
)
"""The days whose sums are valid. Sums of any other day do not count."""

_REOPEN = sa.delete(usage_computed).where(usage_computed.c.day == sa.bindparam("which"))


def parse_usage(row: sa.Row[Any]) -> Usage:
    """Returns the usage of a row. Postgres returns sums of integers as decimals."""
    return Usage(cost_usd=row.cost_usd, **{name: int(getattr(row, name)) for name in COUNTS})


def reopen_day(connection: sa.Connection, day: str) -> None:
    """Marks the sums of a day as invalid, since a record came late."""
    connection.execute(_REOPEN, {"which": day})
