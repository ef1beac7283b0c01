"""Memories, vectors, and which memories a prompt held.

Revision ID: 0007
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "memories",
        sa.Column("position", POSITION, nullable=False),
        *(_text(name) for name in ("id", "agent", "owner", "text", "platform", "room")),
        sa.Column("private", sa.Boolean(), nullable=False),
        *(_text(name) for name in ("told_by", "turn_id")),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("position", name="pk_memories"),
        sa.UniqueConstraint("id", name="uq_memories_id"),
    )
    op.create_index("ix_memories_agent_owner", "memories", ["agent", "owner"])
    op.create_index("ix_memories_told_by", "memories", ["told_by"])
    op.create_table(
        "vectors",
        *(_text(name) for name in ("collection", "key", "model", "shelf")),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("collection", "key", "model", name="pk_vectors"),
    )
    op.create_index("ix_vectors_collection_shelf", "vectors", ["collection", "shelf"])
    op.add_column("prompts", sa.Column("memories", sa.Text(), nullable=False, server_default="[]"))


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)
