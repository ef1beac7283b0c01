"""Memories, and the vectors of texts that are found by meaning."""

from __future__ import annotations

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, UtcTime
from denizen.adapters.store.tables.registry import metadata, position

memories = sa.Table(
    "memories",
    metadata,
    position(),
    sa.Column("id", sa.Text(), nullable=False, unique=True),
    sa.Column("agent", EscapedText(), nullable=False),
    sa.Column("owner", EscapedText(), nullable=False),
    sa.Column("text", EscapedText(), nullable=False),
    sa.Column("platform", EscapedText(), nullable=False),
    sa.Column("room", EscapedText(), nullable=False),
    sa.Column("private", sa.Boolean(), nullable=False),
    sa.Column("told_by", EscapedText(), nullable=False),
    sa.Column("turn_id", sa.Text(), nullable=False),
    sa.Column("created_at", UtcTime(), nullable=False),
    sa.Column("updated_at", UtcTime(), nullable=False),
    sa.Index("ix_memories_agent_owner", "agent", "owner"),
    sa.Index("ix_memories_told_by", "told_by"),
)
"""`owner` is a principal's key, empty for what an agent knows whoever speaks."""

vectors = sa.Table(
    "vectors",
    metadata,
    position(),
    sa.Column("collection", sa.Text(), nullable=False),
    sa.Column("key", EscapedText(), nullable=False),
    sa.Column("model", EscapedText(), nullable=False),
    sa.Column("shelf", EscapedText(), nullable=False),
    sa.Column("bits", sa.LargeBinary(), nullable=False),
    sa.Column("data", sa.LargeBinary(), nullable=False),
    sa.UniqueConstraint("collection", "key", "model"),
    sa.Index("ix_vectors_collection_model_position", "collection", "model", "position"),
    sa.Index("ix_vectors_collection_shelf", "collection", "shelf"),
    sqlite_autoincrement=True,
)
"""A position is never used twice, so that an index in memory learns what is new by reading on (`near.py`). `bits` are
the signs of `data`; where Postgres has pgvector there is a column `embedding` as well (`postgres_vectors.py`).
"""
