"""What agents decided about messages of a platform, how far they read, and with whom they talk."""

from __future__ import annotations

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, PlatformId, UtcTime
from denizen.adapters.store.tables.registry import metadata

claims = sa.Table(
    "claims",
    metadata,
    sa.Column("agent", EscapedText(), primary_key=True),
    sa.Column("platform", EscapedText(), primary_key=True),
    sa.Column("post", PlatformId(), primary_key=True),
    sa.Column("turn_id", sa.Text()),
    sa.Column("refusal", sa.Text(), nullable=False),
    sa.Column("created_at", UtcTime(), nullable=False),
)

positions = sa.Table(
    "positions",
    metadata,
    sa.Column("agent", EscapedText(), primary_key=True),
    sa.Column("platform", EscapedText(), primary_key=True),
    sa.Column("room", EscapedText(), primary_key=True),
    sa.Column("post", PlatformId(), nullable=False),
)

follows = sa.Table(
    "follows",
    metadata,
    sa.Column("agent", EscapedText(), primary_key=True),
    sa.Column("platform", EscapedText(), primary_key=True),
    sa.Column("thread", EscapedText(), primary_key=True),
    sa.Column("created_at", UtcTime(), nullable=False),
)

allowed = sa.Table(
    "allowed",
    metadata,
    sa.Column("agent", EscapedText(), primary_key=True),
    sa.Column("platform", EscapedText(), primary_key=True),
    sa.Column("kind", sa.Text(), primary_key=True),
    sa.Column("key", EscapedText(), primary_key=True),
    sa.Column("allowed_by", EscapedText(), nullable=False),
    sa.Column("created_at", UtcTime(), nullable=False),
)

exchanges = sa.Table(
    "exchanges",
    metadata,
    sa.Column("platform", EscapedText(), primary_key=True),
    sa.Column("room", EscapedText(), primary_key=True),
    sa.Column("taken", sa.Integer(), nullable=False),
)
