"""Questions that agents leave for the owner.

Revision ID: 1012
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "1012"
down_revision = "1011"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "questions",
        sa.Column("position", POSITION, primary_key=True),
        sa.Column("id", sa.Text(), nullable=False),
        *(
            sa.Column(name, sa.Text(), nullable=False)
            for name in ("turn_id", "agent", "asker", "asker_name", "platform", "channel", "thread", "text")
        ),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("is_told", sa.Boolean(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("answer", "answered_by", "answerer")),
        sa.Column("answered_at", TIME),
        sa.UniqueConstraint("id", name="uq_questions_id"),
    )
    op.create_index("ix_questions_turn_id", "questions", ["turn_id"])
    op.create_index("ix_questions_status", "questions", ["status"])
