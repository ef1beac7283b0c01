"""Closed blocks of transcripts. The words in them lie in `posts` only."""

from __future__ import annotations

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, JsonText, PlatformId
from denizen.adapters.store.tables.archive import posts
from denizen.adapters.store.tables.registry import metadata

blocks = sa.Table(
    "transcript_blocks",
    metadata,
    sa.Column("platform", EscapedText(), primary_key=True),
    sa.Column("channel", EscapedText(), primary_key=True),
    sa.Column("thread", EscapedText(), primary_key=True),
    sa.Column("number", sa.Integer(), primary_key=True),
    sa.Column("room", EscapedText(), nullable=False),
    sa.Column("first", PlatformId(), nullable=False),
    sa.Column("last", PlatformId(), nullable=False),
    sa.Column("tokens", sa.Integer(), nullable=False),
    sa.Column("digest", sa.Text(), nullable=False),
    sa.Column("posts", sa.Integer(), nullable=False),
    sa.Column("versions", JsonText(), nullable=False),
    sa.Column("left_out", JsonText(), nullable=False),
    sa.Column("events", JsonText(), nullable=False),
    sa.UniqueConstraint("platform", "channel", "thread", "first"),
)

CHANGED = sa.or_(posts.c.edited_at.is_not(None), posts.c.deleted_at.is_not(None))

sa.Index("ix_posts_changed", posts.c.platform, posts.c.room, posts.c.id, sqlite_where=CHANGED, postgresql_where=CHANGED)
"""What was edited or deleted is looked for in each turn, and is rare."""
