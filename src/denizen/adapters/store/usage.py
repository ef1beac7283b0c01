"""The columns of tokens and money, which turns and steps share, and their way to and from `Usage`."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from denizen.domain.usage import Usage


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


def usage_of(row: sa.Row[Any]) -> Usage:
    """From a row that has the columns; Postgres gives sums as decimals."""
    return Usage(
        int(row.input_tokens),
        int(row.output_tokens),
        int(row.cache_read_tokens),
        int(row.cache_write_tokens),
        row.cost_usd,
        int(row.requests),
    )
