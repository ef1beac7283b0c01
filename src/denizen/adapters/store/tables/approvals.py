"""Calls that wait for people, or waited, and what was approved for a while."""

from __future__ import annotations

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, JsonText, UtcTime
from denizen.adapters.store.tables.registry import metadata, position

approvals = sa.Table(
    "approvals",
    metadata,
    position(),
    sa.Column("id", sa.Text(), nullable=False, unique=True),
    sa.Column("turn_id", sa.Text(), nullable=False),
    sa.Column("agent", EscapedText(), nullable=False),
    sa.Column("requester", EscapedText(), nullable=False),
    sa.Column("requester_name", EscapedText(), nullable=False),
    sa.Column("platform", EscapedText(), nullable=False),
    sa.Column("channel", EscapedText(), nullable=False),
    sa.Column("thread", EscapedText(), nullable=False),
    sa.Column("conversation_id", sa.Text(), nullable=False),
    sa.Column("tool", EscapedText(), nullable=False),
    sa.Column("args", JsonText(), nullable=False),
    sa.Column("tier", sa.Integer(), nullable=False),
    sa.Column("reason", EscapedText(), nullable=False),
    sa.Column("preview", EscapedText(), nullable=False),
    sa.Column("rule", JsonText(), nullable=False),
    sa.Column("is_exact", sa.Boolean(), nullable=False),
    sa.Column("created_at", UtcTime(), nullable=False),
    sa.Column("expires_at", UtcTime()),
    sa.Column("status", sa.Text(), nullable=False),
    sa.Column("voices", JsonText(), nullable=False),
    sa.Column("decided_by", EscapedText(), nullable=False),
    sa.Column("decider_name", EscapedText(), nullable=False),
    sa.Column("decided_at", UtcTime()),
    sa.Column("note", EscapedText(), nullable=False),
    sa.Index("ix_approvals_turn_id", "turn_id"),
    sa.Index("ix_approvals_status", "status"),
)

grants = sa.Table(
    "grants",
    metadata,
    sa.Column("id", sa.Text(), primary_key=True),
    sa.Column("agent", EscapedText(), nullable=False),
    sa.Column("requester", EscapedText(), nullable=False),
    sa.Column("conversation_id", sa.Text(), nullable=False),
    sa.Column("tool", EscapedText(), nullable=False),
    sa.Column("args", sa.Text(), nullable=False),
    sa.Column("given_by", EscapedText(), nullable=False),
    sa.Column("expires_at", UtcTime(), nullable=False),
    sa.Index("ix_grants_conversation_id_tool", "conversation_id", "tool"),
)
"""`args` is the digest of who had to decide and of the only arguments that it holds for, if it is not for any."""
