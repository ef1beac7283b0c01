"""Proposals are found by the message that they were made of.

Revision ID: 0019
"""

from __future__ import annotations

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_proposals_platform_post", "proposals", ["platform", "post"])
