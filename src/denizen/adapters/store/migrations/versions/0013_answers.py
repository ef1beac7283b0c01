"""Citations of answers, and questions that documents did not answer.

Revision ID: 0013
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "citations",
        sa.Column(
            "turn_id",
            sa.Text(),
            sa.ForeignKey("turns.id", name="fk_citations_turn_id", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.Column("number", sa.Integer(), nullable=False),
        _text("path"),
        *(sa.Column(name, sa.Integer(), nullable=False) for name in ("first_line", "last_line")),
        *(_text(name) for name in ("source_id", "revision", "link", "doubt")),
        sa.PrimaryKeyConstraint("turn_id", "number", name="pk_citations"),
    )
    op.create_table(
        "gaps",
        sa.Column("position", POSITION, nullable=False),
        *(_text(name) for name in ("id", "agent", "question", "asker", "platform", "channel", "thread")),
        sa.Column("is_private", sa.Boolean(), nullable=False),
        *(_text(name) for name in ("kind", "turn_id")),
        sa.Column("is_closed", sa.Boolean(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("position", name="pk_gaps"),
        sa.UniqueConstraint("id", name="uq_gaps_id"),
    )
    op.create_index("ix_gaps_asker", "gaps", ["asker"])
    op.create_index("ix_gaps_created_at", "gaps", ["created_at"])


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)
