"""What answers cite, questions that documents did not answer, and answers that people proposed."""

from __future__ import annotations

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, UtcTime
from denizen.adapters.store.tables.registry import metadata, position
from denizen.adapters.store.tables.turns import turns

citations = sa.Table(
    "citations",
    metadata,
    sa.Column("turn_id", sa.Text(), sa.ForeignKey(turns.c.id, ondelete="CASCADE"), primary_key=True),
    sa.Column("number", sa.Integer(), primary_key=True),
    sa.Column("path", EscapedText(), nullable=False),
    sa.Column("first_line", sa.Integer(), nullable=False),
    sa.Column("last_line", sa.Integer(), nullable=False),
    sa.Column("source_id", sa.Text(), nullable=False),
    sa.Column("revision", EscapedText(), nullable=False),
    sa.Column("link", EscapedText(), nullable=False),
    sa.Column("doubt", sa.Text(), nullable=False),
)

gaps = sa.Table(
    "gaps",
    metadata,
    position(),
    sa.Column("id", sa.Text(), nullable=False, unique=True),
    sa.Column("agent", EscapedText(), nullable=False),
    sa.Column("question", EscapedText(), nullable=False),
    sa.Column("asker", EscapedText(), nullable=False),
    sa.Column("platform", EscapedText(), nullable=False),
    sa.Column("channel", EscapedText(), nullable=False),
    sa.Column("thread", EscapedText(), nullable=False),
    sa.Column("is_private", sa.Boolean(), nullable=False),
    sa.Column("kind", sa.Text(), nullable=False),
    sa.Column("turn_id", sa.Text(), nullable=False),
    sa.Column("is_closed", sa.Boolean(), nullable=False),
    sa.Column("created_at", UtcTime(), nullable=False),
    sa.Index("ix_gaps_asker", "asker"),
    sa.Index("ix_gaps_created_at", "created_at"),
)

proposals = sa.Table(
    "proposals",
    metadata,
    position(),
    sa.Column("id", sa.Text(), nullable=False, unique=True),
    sa.Column("platform", EscapedText(), nullable=False),
    sa.Column("channel", EscapedText(), nullable=False),
    sa.Column("thread", EscapedText(), nullable=False),
    sa.Column("post", EscapedText(), nullable=False),
    sa.Column("answer", EscapedText(), nullable=False),
    sa.Column("author", EscapedText(), nullable=False),
    sa.Column("author_name", EscapedText(), nullable=False),
    sa.Column("proposer", EscapedText(), nullable=False),
    sa.Column("link", EscapedText(), nullable=False),
    sa.Column("question", EscapedText(), nullable=False),
    sa.Column("asker", EscapedText(), nullable=False),
    sa.Column("gap_id", sa.Text(), nullable=False),
    sa.Column("status", sa.Text(), nullable=False),
    sa.Column("decided_by", EscapedText(), nullable=False),
    sa.Column("decided_at", UtcTime()),
    sa.Column("reason", EscapedText(), nullable=False),
    sa.Column("text", EscapedText(), nullable=False),
    sa.Column("file", EscapedText(), nullable=False),
    sa.Column("is_filed", sa.Boolean(), nullable=False),
    sa.Column("said_at", UtcTime(), nullable=False),
    sa.Column("created_at", UtcTime(), nullable=False),
    sa.Index("ix_proposals_author", "author"),
    sa.Index("ix_proposals_platform_post", "platform", "post"),
    sa.Index("ix_proposals_status_created_at", "status", "created_at"),
)
