"""Usage: what other programs report, requests that are no step of a turn, and the sums of days that are computed."""

from __future__ import annotations

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, JsonText, UtcTime
from denizen.adapters.store.tables.registry import metadata, position, usage


def _sums() -> list[sa.Column[int] | sa.Column[object]]:
    counts = ("messages", "duration_ms")
    return [*(sa.Column(name, sa.BigInteger(), nullable=False) for name in counts), *usage()]


usage_reports = sa.Table(
    "usage_reports",
    metadata,
    position(),
    sa.Column("id", sa.Text(), nullable=False, unique=True),
    sa.Column("principal", EscapedText(), nullable=False),
    sa.Column("source", EscapedText(), nullable=False),
    sa.Column("source_id", EscapedText(), nullable=False),
    sa.Column("model", EscapedText(), nullable=False),
    *usage(),
    sa.Column("duration_ms", sa.BigInteger(), nullable=False),
    sa.Column("metadata", JsonText(), nullable=False),
    sa.Column("created_at", UtcTime(), nullable=False),
    sa.Column("day", sa.Text(), nullable=False),
    sa.Index("ix_usage_reports_created_at", "created_at"),
    sa.Index("ix_usage_reports_principal_created_at", "principal", "created_at"),
)

side_requests = sa.Table(
    "side_requests",
    metadata,
    position(),
    sa.Column("agent", EscapedText(), nullable=False),
    sa.Column("principal", EscapedText(), nullable=False),
    sa.Column("source", EscapedText(), nullable=False),
    sa.Column("model", EscapedText(), nullable=False),
    *usage(),
    sa.Column("created_at", UtcTime(), nullable=False),
    sa.Column("day", sa.Text(), nullable=False),
    sa.Index("ix_side_requests_created_at", "created_at"),
    sa.Index("ix_side_requests_principal_created_at", "principal", "created_at"),
)
"""The observer's, those that sum up, a skill's, and those that were broken off."""

usage_days = sa.Table(
    "usage_days",
    metadata,
    sa.Column("day", sa.Text(), primary_key=True),
    sa.Column("principal", EscapedText(), primary_key=True),
    sa.Column("source", EscapedText(), primary_key=True),
    sa.Column("model", EscapedText(), primary_key=True),
    *_sums(),
    sa.Index("ix_usage_days_principal_day", "principal", "day"),
)
"""No part of the key may be NULL: everybody is an empty principal (inventory SW9)."""

usage_hours = sa.Table(
    "usage_hours",
    metadata,
    sa.Column("day", sa.Text(), primary_key=True),
    sa.Column("hour", sa.Text(), primary_key=True),
    sa.Column("source", EscapedText(), primary_key=True),
    sa.Column("model", EscapedText(), primary_key=True),
    *_sums(),
)
"""Of everybody."""

usage_computed = sa.Table(
    "usage_computed",
    metadata,
    sa.Column("day", sa.Text(), primary_key=True),
    sa.Column("computed_at", UtcTime(), nullable=False),
)
"""The days whose sums hold. What is in the two tables above for any other day does not count."""
