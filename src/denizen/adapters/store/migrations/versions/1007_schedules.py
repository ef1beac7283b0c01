"""The states of schedules between runs, and their runs.

Revision ID: 1007
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "1007"
down_revision = "1006"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "schedules",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("looked_until", TIME, nullable=False),
        sa.Column("last_run_at", TIME),
    )
    op.create_table(
        "schedule_runs",
        sa.Column("position", POSITION, primary_key=True),
        sa.Column("id", sa.Text(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("schedule", "status", "asked_by", "note")),
        sa.Column("turn_id", sa.Text()),
        *(sa.Column(name, TIME, nullable=False) for name in ("planned_at", "seen_at")),
        sa.UniqueConstraint("id", name="uq_schedule_runs_id"),
    )
    for column in ("schedule", "status"):
        op.create_index(f"ix_schedule_runs_{column}", "schedule_runs", [column])
