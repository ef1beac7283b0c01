"""The log of events, and their deliveries to listeners.

Revision ID: 1010
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "1010"
down_revision = "1009"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "events",
        sa.Column("position", POSITION, primary_key=True),
        sa.Column("key", sa.Text(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("id", "source", "type", "subject", "actor", "data")),
        sa.Column("time", TIME, nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("depth", sa.Integer(), nullable=False),
        sa.UniqueConstraint("key", name="uq_events_key"),
    )
    op.create_index("ix_events_actor", "events", ["actor"])
    op.create_table(
        "event_deliveries",
        sa.Column("position", POSITION, primary_key=True),
        sa.Column("id", sa.Text(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("event", "listener", "status")),
        *(sa.Column(name, TIME, nullable=False) for name in ("due_at", "created_at")),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("turn_id", sa.Text()),
        sa.UniqueConstraint("id", name="uq_event_deliveries_id"),
    )
    op.create_index("ix_event_deliveries_event", "event_deliveries", ["event"])
    op.create_index("ix_event_deliveries_status", "event_deliveries", ["status", "due_at"])
    op.create_index("ix_event_deliveries_turn_id", "event_deliveries", ["turn_id"])
