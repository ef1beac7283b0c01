"""Deliveries, and the files that go with them until they are final."""

from __future__ import annotations

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, JsonText, UtcTime
from denizen.adapters.store.tables.registry import PositionType, metadata, position

deliveries = sa.Table(
    "deliveries",
    metadata,
    position(),
    sa.Column("id", sa.Text(), nullable=False, unique=True),
    sa.Column("turn_id", sa.Text(), nullable=False),
    sa.Column("number", sa.Integer(), nullable=False),
    sa.Column("kind", sa.Text(), nullable=False),
    sa.Column("agent", EscapedText(), nullable=False),
    sa.Column("platform", EscapedText(), nullable=False),
    sa.Column("channel", EscapedText(), nullable=False),
    sa.Column("thread", EscapedText(), nullable=False),
    sa.Column("created_at", UtcTime(), nullable=False),
    sa.Column("reply_to", EscapedText(), nullable=False),
    sa.Column("ticket", EscapedText(), nullable=False),
    sa.Column("state", sa.Text(), nullable=False),
    sa.Column("platform_id", EscapedText(), nullable=False),
    sa.Column("attempts", sa.Integer(), nullable=False),
    sa.Column("failure", EscapedText(), nullable=False),
    sa.Column("content", JsonText(), nullable=False),
    sa.Index("ix_deliveries_agent_platform_state_kind", "agent", "platform", "state", "kind"),
    sa.Index("ix_deliveries_turn_id", "turn_id"),
    sa.Index("ix_deliveries_platform_platform_id", "platform", "platform_id"),
)
"""`number` is a delivery's position within its turn; `content` is without the files."""

delivery_files = sa.Table(
    "delivery_files",
    metadata,
    sa.Column("delivery", PositionType, sa.ForeignKey(deliveries.c.position, ondelete="CASCADE"), primary_key=True),
    sa.Column("number", sa.Integer(), primary_key=True),
    sa.Column("name", EscapedText(), nullable=False),
    sa.Column("media_type", EscapedText(), nullable=False),
    sa.Column("data", sa.LargeBinary(), nullable=False),
)
