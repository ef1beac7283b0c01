"""Answers that people proposed for the documents.

Revision ID: 0018
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "proposals",
        sa.Column("position", POSITION, nullable=False),
        *(_text(name) for name in ("id", "platform", "channel", "thread", "post", "answer", "author", "author_name")),
        *(_text(name) for name in ("proposer", "link", "question", "asker", "gap_id", "status", "decided_by")),
        sa.Column("decided_at", TIME, nullable=True),
        *(_text(name) for name in ("reason", "text", "file")),
        sa.Column("is_filed", sa.Boolean(), nullable=False),
        *(sa.Column(name, TIME, nullable=False) for name in ("said_at", "created_at")),
        sa.PrimaryKeyConstraint("position", name="pk_proposals"),
        sa.UniqueConstraint("id", name="uq_proposals_id"),
    )
    op.create_index("ix_proposals_author", "proposals", ["author"])
    op.create_index("ix_proposals_status_created_at", "proposals", ["status", "created_at"])


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)
