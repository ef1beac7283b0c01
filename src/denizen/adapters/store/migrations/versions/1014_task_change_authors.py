"""Who changed the task, beside each change that the task watcher has to look at.

Revision ID: 1014
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "1014"
down_revision = "1012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("task_changes", sa.Column("made_by", sa.Text(), nullable=False, server_default=""))
