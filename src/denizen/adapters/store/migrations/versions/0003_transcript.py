"""Closed blocks of transcripts.

Revision ID: 0003
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

PLATFORM_ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "transcript_blocks",
        sa.Column("platform", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("thread", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("room", sa.Text(), nullable=False),
        sa.Column("first", PLATFORM_ID, nullable=False),
        sa.Column("last", PLATFORM_ID, nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("posts", sa.Integer(), nullable=False),
        sa.Column("versions", sa.Text(), nullable=False),
        sa.Column("left_out", sa.Text(), nullable=False),
        sa.Column("events", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("platform", "channel", "thread", "number", name="pk_transcript_blocks"),
        sa.UniqueConstraint(
            "platform", "channel", "thread", "first", name="uq_transcript_blocks_platform_channel_thread_first"
        ),
    )
    changed = sa.text("edited_at IS NOT NULL OR deleted_at IS NOT NULL")
    op.create_index(
        "ix_posts_changed", "posts", ["platform", "room", "id"], sqlite_where=changed, postgresql_where=changed
    )
