"""Usage: what other programs report, requests that are no step of a turn, and the sums of days that are computed.

Revision ID: 0014
"""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "requests")


def upgrade() -> None:
    op.create_table(
        "usage_reports",
        sa.Column("position", POSITION, nullable=False),
        *_texts("id", "principal", "source", "source_id", "model", "metadata", "day"),
        *_numbers(*TOKENS, "duration_ms"),
        sa.Column("cost_usd", sa.BigInteger()),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("position", name="pk_usage_reports"),
        sa.UniqueConstraint("id", name="uq_usage_reports_id"),
    )
    op.create_table(
        "side_requests",
        sa.Column("position", POSITION, nullable=False),
        *_texts("agent", "principal", "source", "model", "day"),
        *_numbers(*TOKENS),
        sa.Column("cost_usd", sa.BigInteger()),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("position", name="pk_side_requests"),
    )
    for table in ("usage_reports", "side_requests"):
        op.create_index(f"ix_{table}_created_at", table, ["created_at"])
        op.create_index(f"ix_{table}_principal_created_at", table, ["principal", "created_at"])
    for table, key in (
        ("usage_days", ("day", "principal", "source", "model")),
        ("usage_hours", ("day", "hour", "source", "model")),
    ):
        op.create_table(
            table,
            *_texts(*key),
            *_numbers(*TOKENS, "messages", "duration_ms"),
            sa.Column("cost_usd", sa.BigInteger()),
            sa.PrimaryKeyConstraint(*key, name=f"pk_{table}"),
        )
    op.create_index("ix_usage_days_principal_day", "usage_days", ["principal", "day"])
    op.create_table(
        "usage_computed",
        *_texts("day"),
        sa.Column("computed_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("day", name="pk_usage_computed"),
    )


def _texts(*names: str) -> Iterator[sa.Column[str]]:
    return (sa.Column(name, sa.Text(), nullable=False) for name in names)


def _numbers(*names: str) -> Iterator[sa.Column[int]]:
    return (sa.Column(name, sa.BigInteger(), nullable=False) for name in names)
