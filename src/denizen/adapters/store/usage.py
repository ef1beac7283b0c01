"""The columns of tokens and money, which several tables share, and their way to and from `Usage`; and what adding a
record does to the sums of its day.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import Usd, UtcTime, metadata
from denizen.domain.usage import Usage


def usage_columns() -> list[sa.Column[int] | sa.Column[object]]:
    """Tokens and money."""
    counts = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "requests")
    return [*(sa.Column(name, sa.BigInteger(), nullable=False) for name in counts), sa.Column("cost_usd", Usd())]


usage_computed = sa.Table(
    "usage_computed",
    metadata,
    sa.Column("day", sa.Text(), primary_key=True),
    sa.Column("computed_at", UtcTime(), nullable=False),
)
"""The days whose sums hold. What is in the two tables above for any other day does not count."""

_REOPEN = sa.delete(usage_computed).where(usage_computed.c.day == sa.bindparam("which"))


def usage_values(usage: Usage) -> dict[str, Any]:
    """As parameters for a statement."""
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "cost_usd": usage.cost_usd,
        "requests": usage.requests,
    }


def parse_usage(row: sa.Row[Any]) -> Usage:
    """From a row that has the columns; Postgres gives sums as decimals."""
    return Usage(
        int(row.input_tokens),
        int(row.output_tokens),
        int(row.cache_read_tokens),
        int(row.cache_write_tokens),
        row.cost_usd,
        int(row.requests),
    )


def reopen_day(connection: sa.Connection, day: str) -> None:
    """Its sums do not hold any more: a record came late."""
    connection.execute(_REOPEN, {"which": day})
