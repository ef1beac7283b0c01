"""What the prompts of a turn were made of.

Revision ID: 0005
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "prompts",
        sa.Column(
            "turn_id", sa.Text(), sa.ForeignKey("turns.id", name="fk_prompts_turn_id"), nullable=False, primary_key=True
        ),
        sa.Column("step", sa.Integer(), nullable=False, primary_key=True),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("segments", sa.Text(), nullable=False),
        sa.Column("messages", sa.Text(), nullable=False),
        sa.Column("tools", sa.Text(), nullable=False),
        sa.Column("tool_tokens", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("turn_id", "step", name="pk_prompts"),
    )
    op.create_table(
        "prompt_texts",
        sa.Column("sha256", sa.Text(), nullable=False, primary_key=True),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name="pk_prompt_texts"),
    )
