"""Sources of knowledge, how far each was read, and the syncs there were."""

from __future__ import annotations

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, JsonText, UtcTime
from denizen.adapters.store.tables.registry import metadata, position

sources = sa.Table(
    "sources",
    metadata,
    sa.Column("id", sa.Text(), primary_key=True),
    sa.Column("kind", sa.Text(), nullable=False),
    sa.Column("location", EscapedText(), nullable=False),
    sa.Column("label", EscapedText(), nullable=False),
    sa.Column("branch", EscapedText(), nullable=False),
    sa.Column("content_path", EscapedText(), nullable=False),
    sa.Column("output_path", EscapedText(), nullable=False),
    sa.Column("readme_only", sa.Boolean(), nullable=False),
    sa.Column("max_videos", sa.Integer(), nullable=False, server_default="50"),
    sa.Column("sync_every_minutes", sa.Integer(), nullable=False, server_default="0"),
    sa.Column("created_at", UtcTime(), nullable=False),
    sa.Column("updated_at", UtcTime(), nullable=False),
)

source_states = sa.Table(
    "source_states",
    metadata,
    sa.Column("source_id", sa.Text(), sa.ForeignKey("sources.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("revision", EscapedText(), nullable=False),
    sa.Column("fingerprint", sa.Text(), nullable=False),
    sa.Column("taken", JsonText(), nullable=False),
    sa.Column("synced_at", UtcTime()),
    sa.Column("tried_at", UtcTime()),
    sa.Column("error_code", sa.Text(), nullable=False),
    sa.Column("error", EscapedText(), nullable=False),
)
"""`taken` is the last good reading, an empty object before there was one."""

syncs = sa.Table(
    "syncs",
    metadata,
    position(),
    sa.Column("id", sa.Text(), nullable=False, unique=True),
    sa.Column("sources", JsonText(), nullable=False),
    sa.Column("status", sa.Text(), nullable=False),
    sa.Column("snapshot", sa.Text(), nullable=False),
    sa.Column("changed", JsonText(), nullable=False),
    sa.Column("failed", JsonText(), nullable=False),
    sa.Column("skipped", JsonText(), nullable=False, server_default="{}"),
    sa.Column("started_at", UtcTime(), nullable=False),
    sa.Column("ended_at", UtcTime()),
)
