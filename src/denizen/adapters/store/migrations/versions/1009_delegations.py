"""Tasks that turns handed to other agents.

Revision ID: 1009
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "1009"
down_revision = "1008"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "delegations",
        sa.Column("turn_id", sa.Text(), primary_key=True),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("parent_id", "task_id", "asker")),
        sa.Column("is_background", sa.Boolean(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["turn_id"], ["turns.id"], name="fk_delegations_turn_id_turns"),
    )
    op.create_index("ix_delegations_parent_id", "delegations", ["parent_id"])
    op.create_index("ix_delegations_asker_created_at", "delegations", ["asker", "created_at"])
