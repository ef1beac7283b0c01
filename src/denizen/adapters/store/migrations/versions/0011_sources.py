"""Sources of knowledge, how far each was read, and the syncs there were.

Revision ID: 0011
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "sources",
        *(_text(name) for name in ("id", "kind", "location", "label", "branch", "content_path", "output_path")),
        sa.Column("readme_only", sa.Boolean(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_sources"),
    )
    op.create_table(
        "source_states",
        *(_text(name) for name in ("source_id", "revision", "fingerprint", "taken")),
        sa.Column("synced_at", TIME),
        sa.Column("tried_at", TIME),
        *(_text(name) for name in ("error_code", "error")),
        sa.PrimaryKeyConstraint("source_id", name="pk_source_states"),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name="fk_source_states_source_id", ondelete="CASCADE"),
    )
    op.create_table(
        "syncs",
        sa.Column("position", POSITION, nullable=False),
        *(_text(name) for name in ("id", "sources", "status", "snapshot", "changed", "failed")),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("ended_at", TIME),
        sa.PrimaryKeyConstraint("position", name="pk_syncs"),
        sa.UniqueConstraint("id", name="uq_syncs_id"),
    )


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)
