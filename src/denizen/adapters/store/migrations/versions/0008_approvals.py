"""Calls that wait for people, and what was approved for a while.

Revision ID: 0008
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "approvals",
        sa.Column("position", POSITION, primary_key=True),
        *(_text(name) for name in ("id", "turn_id", "agent", "requester", "requester_name")),
        *(_text(name) for name in ("platform", "channel", "thread", "conversation_id", "tool", "args")),
        sa.Column("tier", sa.Integer(), nullable=False),
        *(_text(name) for name in ("reason", "preview", "rule")),
        sa.Column("is_exact", sa.Boolean(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME),
        *(_text(name) for name in ("status", "voices", "decided_by", "decider_name")),
        sa.Column("decided_at", TIME),
        _text("note"),
        sa.PrimaryKeyConstraint("position", name="pk_approvals"),
        sa.UniqueConstraint("id", name="uq_approvals_id"),
    )
    op.create_index("ix_approvals_turn_id", "approvals", ["turn_id"])
    op.create_index("ix_approvals_status", "approvals", ["status"])
    op.create_table(
        "grants",
        *(_text(name) for name in ("id", "agent", "requester", "conversation_id", "tool", "args", "given_by")),
        sa.Column("expires_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_grants"),
    )
    op.create_index("ix_grants_conversation_id_tool", "grants", ["conversation_id", "tool"])


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)
