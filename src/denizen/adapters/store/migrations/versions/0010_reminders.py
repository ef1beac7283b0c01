"""Reminders.

Revision ID: 0010
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "reminders",
        sa.Column("position", POSITION, nullable=False),
        *(_text(name) for name in ("id", "account", "asker", "platform", "channel", "thread", "text")),
        sa.Column("due_at", TIME, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("position", name="pk_reminders"),
        sa.UniqueConstraint("id", name="uq_reminders_id"),
    )
    op.create_index("ix_reminders_asker", "reminders", ["asker"])
    op.create_index("ix_reminders_due_at", "reminders", ["due_at"])


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)
