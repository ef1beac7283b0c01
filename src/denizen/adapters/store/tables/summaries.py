"""Summaries of stretches of sessions. The messages themselves stay in `messages`."""

from __future__ import annotations

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, UtcTime
from denizen.adapters.store.tables.registry import metadata
from denizen.adapters.store.tables.talk import sessions

summaries = sa.Table(
    "summaries",
    metadata,
    sa.Column("session_id", sa.Text(), sa.ForeignKey(sessions.c.id), nullable=False, primary_key=True),
    sa.Column("first", sa.BigInteger(), nullable=False, primary_key=True, autoincrement=False),
    sa.Column("last", sa.BigInteger(), nullable=False),
    sa.Column("text", EscapedText(), nullable=False),
    sa.Column("created_at", UtcTime(), nullable=False),
)
