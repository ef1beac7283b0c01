"""Memories that another one supersedes, instead of texts that change; and what a sync left out.

Revision ID: 1002
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "1002"
down_revision = "1001"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    """A changed text was told when it was changed."""
    op.add_column("memories", sa.Column("superseded_by", sa.Text(), nullable=False, server_default=""))
    op.add_column("memories", sa.Column("superseded_at", TIME))
    op.create_index("ix_memories_superseded_by", "memories", ["superseded_by"])
    op.execute("UPDATE memories SET created_at = updated_at")
    op.drop_column("memories", "updated_at")
    op.add_column("syncs", sa.Column("left_out", sa.Text(), nullable=False, server_default="{}"))
