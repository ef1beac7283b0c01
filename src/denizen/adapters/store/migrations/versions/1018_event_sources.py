"""The states of sources of events, and the items that polls have seen.

Revision ID: 1018
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "1018"
down_revision = "1015"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "event_sources",
        sa.Column("key", sa.Text(), primary_key=True),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("looked_at", TIME, nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("etag", "last_modified", "failure")),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("was_reached", sa.Boolean(), nullable=False),
    )
    op.create_table(
        "event_source_items",
        sa.Column("position", POSITION, primary_key=True),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("source", "item")),
        sa.UniqueConstraint("source", "item", name="uq_event_source_items_item"),
    )
