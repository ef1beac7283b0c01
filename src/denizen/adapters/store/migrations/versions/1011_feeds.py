"""Subscriptions to feeds, and the items that each has seen.

Revision ID: 1011
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "1011"
down_revision = "1010"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TEXTS = ("url", "title", "account", "platform", "channel", "thread", "guild", "subscriber", "format")


def upgrade() -> None:
    op.create_table(
        "feeds",
        sa.Column("position", POSITION, primary_key=True),
        sa.Column("id", sa.Text(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in TEXTS),
        *(sa.Column(name, TIME, nullable=False) for name in ("created_at", "polled_at")),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("etag", "last_modified", "failure")),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.UniqueConstraint("id", name="uq_feeds_id"),
    )
    op.create_table(
        "feed_items", sa.Column("id", sa.Text(), primary_key=True), sa.Column("feed", sa.Text(), nullable=False)
    )
    op.create_index("ix_feed_items_feed", "feed_items", ["feed"])
