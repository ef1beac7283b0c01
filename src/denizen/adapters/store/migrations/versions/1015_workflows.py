"""Definitions of workflows, their runs, and the nodes that ran.

Revision ID: 1015
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "1015"
down_revision = "1014"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
RUN_TEXTS = ("workflow", "digest", "trigger", "agent", "started_by", "rerun_of", "from_node", "scope")
NODE_TEXTS = ("run", "path", "type", "port", "error", "status", "inputs", "outputs")


def upgrade() -> None:
    op.create_table(
        "workflow_versions",
        sa.Column("digest", sa.Text(), primary_key=True),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("workflow", "tree")),
        sa.Column("kept_at", TIME, nullable=False),
    )
    op.create_table(
        "workflow_runs",
        sa.Column("position", POSITION, primary_key=True),
        sa.Column("id", sa.Text(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in RUN_TEXTS),
        sa.Column("started_at", TIME, nullable=False),
        sa.UniqueConstraint("id", name="uq_workflow_runs_id"),
    )
    op.create_index("ix_workflow_runs_workflow", "workflow_runs", ["workflow"])
    op.create_index("ix_workflow_runs_started_by", "workflow_runs", ["started_by"])
    op.create_table(
        "workflow_nodes",
        sa.Column("position", POSITION, primary_key=True),
        sa.Column("id", sa.Text(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in NODE_TEXTS),
        *(sa.Column(name, TIME, nullable=False) for name in ("started_at", "ended_at")),
        sa.UniqueConstraint("id", name="uq_workflow_nodes_id"),
    )
    op.create_index("ix_workflow_nodes_run", "workflow_nodes", ["run"])
