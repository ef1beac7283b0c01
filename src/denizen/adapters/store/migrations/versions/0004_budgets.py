"""Money by scope and day, reservations, and the sums of what was used before.

Revision ID: 0004
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "requests")

OWED = """
    JOIN turns ON turns.id = steps.turn_id AND turns.principal_kind = 'platform_user'
    JOIN conversations ON conversations.id = turns.conversation_id"""
ROOMS = "JOIN rooms ON rooms.platform = conversations.platform AND rooms.id = conversations.channel"
SOURCES = (
    ("server", "''", ""),
    ("agent", "steps.agent", ""),
    ("user", "steps.principal", ""),
    ("channel", "conversations.platform || ':' || conversations.channel", OWED),
    ("guild", "conversations.platform || ':' || rooms.guild", f"{OWED} {ROOMS} AND rooms.guild != ''"),
)
"""Kind, key, and what the steps are joined with."""


def upgrade() -> None:
    op.create_table(
        "spend",
        _text("kind"),
        _text("key"),
        _text("day"),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in COUNTS),
        sa.Column("cost_usd", sa.BigInteger()),
        sa.PrimaryKeyConstraint("kind", "key", "day", name="pk_spend"),
    )
    op.create_index("ix_spend_kind_day", "spend", ["kind", "day"])
    op.create_table(
        "reservations",
        _text("id"),
        sa.Column("usd", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        *(_text(name) for name in ("guild", "channel", "user", "agent")),
        sa.PrimaryKeyConstraint("id", name="pk_reservations"),
    )
    op.create_index("ix_reservations_expires_at", "reservations", ["expires_at"])
    op.create_table(
        "budget_scopes",
        _text("kind"),
        _text("key"),
        _text("warned_on"),
        sa.PrimaryKeyConstraint("kind", "key", name="pk_budget_scopes"),
    )
    for kind, key, joined in SOURCES:
        _sum_up(kind, key, joined)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)


def _sum_up(kind: str, key: str, joined: str) -> None:
    """What was used before counts too: a limit that is set today holds for the whole month."""
    sums = ", ".join(f"sum(steps.{name})" for name in (*COUNTS, "cost_usd"))
    op.execute(
        f"INSERT INTO spend (kind, key, day, {', '.join(COUNTS)}, cost_usd) "  # noqa: S608 - names of this file only
        f"SELECT '{kind}', {key}, steps.day, {sums} FROM steps {joined} GROUP BY 2, 3"
    )
