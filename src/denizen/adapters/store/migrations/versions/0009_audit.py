"""The audit log, and where it ends.

Revision ID: 0009
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("number", NUMBER, primary_key=True, autoincrement=False),
        _text("kind"),
        sa.Column("at", TIME, nullable=False),
        *(_text(name) for name in ("actor", "subject", "details", "previous", "digest")),
        sa.PrimaryKeyConstraint("number", name="pk_audit"),
    )
    op.create_table(
        "audit_head",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        _text("digest"),
        sa.PrimaryKeyConstraint("id", name="pk_audit_head"),
    )


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)
