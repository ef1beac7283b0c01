"""The community that a source is for.

Revision ID: 1019
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "1019"
down_revision = "1018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("sources", sa.Column("guild", sa.Text(), nullable=False, server_default=""))
