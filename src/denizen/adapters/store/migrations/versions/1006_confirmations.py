"""When a sign-in was confirmed with the password, and who holds a name of the list of admins.

Revision ID: 1006
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "1006"
down_revision = "1005"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    op.add_column("sign_ins", sa.Column("confirmed_at", TIME))
    op.create_table(
        "admin_names",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("held_since", TIME, nullable=False),
    )
