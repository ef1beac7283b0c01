"""Named sets of an assistant's settings, of which one is active; what a turn was routed to.

Revision ID: 0016
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    op.add_column("turns", sa.Column("route", sa.Text(), nullable=False, server_default="null"))
    op.create_table(
        "agent_settings",
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("agent", "name", "chosen")),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("agent", "name", name="pk_agent_settings"),
    )
    active = sa.text("is_active")
    op.create_index(
        "uq_agent_settings_active",
        "agent_settings",
        ["agent"],
        unique=True,
        sqlite_where=active,
        postgresql_where=active,
    )
