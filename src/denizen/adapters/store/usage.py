"""The columns of tokens and money that several tables share, their conversion to and from `Usage`, and the days whose
sums are computed.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import Usd, UtcTime, metadata
from denizen.domain.usage import Usage


def usage_columns() -> list[sa.Column[int] | sa.Column[object]]:
    """Returns the columns of tokens and money."""
    counts = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "requests")
    return [*(sa.Column(name, sa.BigInteger(), nullable=False) for name in counts), sa.Column("cost_usd", Usd())]


usage_computed = sa.Table(
    "usage_computed",
    metadata,
    sa.Column("day", sa.Text(), primary_key=True),
    sa.Column("computed_at", UtcTime(), nullable=False),
)
"""The days whose sums are valid. Sums of any other day do not count."""

_REOPEN = sa.delete(usage_computed).where(usage_computed.c.day == sa.bindparam("which"))


def usage_values(usage: Usage) -> dict[str, Any]:
    """Returns the usage as parameters for a statement."""
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "cost_usd": usage.cost_usd,
        "requests": usage.requests,
    }


def parse_usage(row: sa.Row[Any]) -> Usage:
    """Returns the usage of a row. Postgres returns sums of integers as decimals."""
    return Usage(
        input_tokens=int(row.input_tokens),
        output_tokens=int(row.output_tokens),
        cache_read_tokens=int(row.cache_read_tokens),
        cache_write_tokens=int(row.cache_write_tokens),
        cost_usd=row.cost_usd,
        requests=int(row.requests),
    )


def reopen_day(connection: sa.Connection, day: str) -> None:
    """Marks the sums of a day as invalid, since a record came late."""
    connection.execute(_REOPEN, {"which": day})
