"""Money: what each scope used on each day, what is reserved, and the scopes as such."""

from __future__ import annotations

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, Usd, UtcTime
from denizen.adapters.store.tables.registry import metadata, usage

spend = sa.Table(
    "spend",
    metadata,
    sa.Column("kind", sa.Text(), primary_key=True),
    sa.Column("key", EscapedText(), primary_key=True),
    sa.Column("day", sa.Text(), primary_key=True),
    *usage(),
    sa.Index("ix_spend_kind_day", "kind", "day"),
)

reservations = sa.Table(
    "reservations",
    metadata,
    sa.Column("id", sa.Text(), primary_key=True),
    sa.Column("usd", Usd(), nullable=False),
    sa.Column("expires_at", UtcTime(), nullable=False),
    sa.Column("guild", EscapedText(), nullable=False),
    sa.Column("channel", EscapedText(), nullable=False),
    sa.Column("user", EscapedText(), nullable=False),
    sa.Column("agent", EscapedText(), nullable=False),
    sa.Index("ix_reservations_expires_at", "expires_at"),
)
"""One row each, so that releasing one and clearing away what has expired cannot wait for each other crosswise."""

budget_scopes = sa.Table(
    "budget_scopes",
    metadata,
    sa.Column("kind", sa.Text(), primary_key=True),
    sa.Column("key", EscapedText(), primary_key=True),
    sa.Column("warned_on", sa.Text(), nullable=False),
)
"""A row is what is locked while somebody decides about its scope, whatever the day is."""
