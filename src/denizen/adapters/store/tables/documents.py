"""Documents of the current snapshot and their passages, and how far the index of them is."""

from __future__ import annotations

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, JsonText
from denizen.adapters.store.tables.registry import PositionType, metadata, position

documents = sa.Table(
    "documents",
    metadata,
    position(),
    sa.Column("path", EscapedText(), nullable=False, unique=True),
    sa.Column("source_id", sa.Text(), nullable=False),
    sa.Column("digest", sa.Text(), nullable=False),
)

passages = sa.Table(
    "passages",
    metadata,
    position(),
    sa.Column("document", PositionType, sa.ForeignKey(documents.c.position, ondelete="CASCADE"), nullable=False),
    sa.Column("source_id", sa.Text(), nullable=False),
    sa.Column("number", sa.Integer(), nullable=False),
    sa.Column("key", sa.Text(), nullable=False),
    sa.Column("first_line", sa.Integer(), nullable=False),
    sa.Column("last_line", sa.Integer(), nullable=False),
    sa.Column("headings", JsonText(), nullable=False),
    sa.Column("text", EscapedText(), nullable=False),
    sa.Column("words", sa.Text(), nullable=False),
    sa.UniqueConstraint("document", "number"),
    sa.Index("ix_passages_key", "key"),
)
"""`words` is what full-text search looks at; the index of it is in the migrations."""

indexed = sa.Table(
    "indexed",
    metadata,
    sa.Column("collection", sa.Text(), primary_key=True),
    sa.Column("state", sa.Text(), nullable=False),
)
