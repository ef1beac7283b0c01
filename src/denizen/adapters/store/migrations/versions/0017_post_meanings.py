"""Posts that lost their vectors with their text.

Revision ID: 0017
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "reworded",
        sa.Column(
            "post",
            POSITION,
            sa.ForeignKey("posts.position", name="fk_reworded_post", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("post", name="pk_reworded"),
    )
