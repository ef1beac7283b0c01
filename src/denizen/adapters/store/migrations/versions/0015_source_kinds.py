"""Channels as sources, schedules of their own, and sources that a sync left as they are.

Revision ID: 0015
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("sources", sa.Column("max_videos", sa.Integer(), nullable=False, server_default="50"))
    op.add_column("sources", sa.Column("sync_every_minutes", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("syncs", sa.Column("skipped", sa.Text(), nullable=False, server_default="{}"))
