"""Issues of repositories that tasks mirror, and the address of its issue beside each task.

Revision ID: 1021
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "1021"
down_revision = "1019"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("tasks", sa.Column("link", sa.Text(), nullable=False, server_default=""))
    op.create_table(
        "issue_mirrors",
        sa.Column("key", sa.Text(), primary_key=True),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("project_id", "repository")),
        *(sa.Column(name, TIME, nullable=False) for name in ("seen_at", "heard_at", "written_at", "looked_at")),
        sa.Column("is_imported", sa.Boolean(), nullable=False),
        sa.Column("imported", sa.Integer(), nullable=False),
        sa.Column("failure", sa.Text(), nullable=False),
    )
    op.create_table(
        "issue_links",
        sa.Column("position", POSITION, primary_key=True),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("mirror", "kind", "local_id", "remote_id", "base")),
        sa.Column("is_gone", sa.Boolean(), nullable=False),
        sa.UniqueConstraint("mirror", "kind", "remote_id", name="uq_issue_links_remote"),
        sa.UniqueConstraint("mirror", "kind", "local_id", name="uq_issue_links_local"),
    )
