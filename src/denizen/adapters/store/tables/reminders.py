"""What people are to be reminded of."""

from __future__ import annotations

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, UtcTime
from denizen.adapters.store.tables.registry import metadata, position

reminders = sa.Table(
    "reminders",
    metadata,
    position(),
    sa.Column("id", sa.Text(), nullable=False, unique=True),
    sa.Column("account", EscapedText(), nullable=False),
    sa.Column("asker", EscapedText(), nullable=False),
    sa.Column("platform", EscapedText(), nullable=False),
    sa.Column("channel", EscapedText(), nullable=False),
    sa.Column("thread", EscapedText(), nullable=False),
    sa.Column("text", EscapedText(), nullable=False),
    sa.Column("due_at", UtcTime(), nullable=False),
    sa.Column("created_at", UtcTime(), nullable=False),
    sa.Index("ix_reminders_asker", "asker"),
    sa.Index("ix_reminders_due_at", "due_at"),
)
"""Only those that are pending."""
