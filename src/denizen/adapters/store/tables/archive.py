"""Rooms of a platform, the posts in them with their earlier texts, and what is known of mirroring them."""

from __future__ import annotations

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, JsonText, PlatformId, UtcTime
from denizen.adapters.store.tables.registry import PositionType, metadata, position

rooms = sa.Table(
    "rooms",
    metadata,
    sa.Column("platform", EscapedText(), primary_key=True),
    sa.Column("id", EscapedText(), primary_key=True),
    sa.Column("name", EscapedText(), nullable=False),
    sa.Column("kind", sa.Text(), nullable=False),
    sa.Column("guild", EscapedText(), nullable=False),
    sa.Column("guild_name", EscapedText(), nullable=False),
    sa.Column("parent", EscapedText(), nullable=False),
    sa.Column("parent_name", EscapedText(), nullable=False),
    sa.Column("latest_post", EscapedText(), nullable=False),
    sa.Index("ix_rooms_platform_parent", "platform", "parent"),
)

posts = sa.Table(
    "posts",
    metadata,
    position(),
    sa.Column("platform", EscapedText(), nullable=False),
    sa.Column("id", PlatformId(), nullable=False),
    sa.Column("room", EscapedText(), nullable=False),
    sa.Column("guild", EscapedText(), nullable=False),
    sa.Column("parent", EscapedText(), nullable=False),
    sa.Column("reply_to", EscapedText(), nullable=False),
    sa.Column("author_id", EscapedText(), nullable=False),
    sa.Column("author_name", EscapedText(), nullable=False),
    sa.Column("author_is_bot", sa.Boolean(), nullable=False),
    sa.Column("created_at", UtcTime(), nullable=False),
    sa.Column("edited_at", UtcTime()),
    sa.Column("deleted_at", UtcTime()),
    sa.Column("attachments", JsonText(), nullable=False),
    sa.Column("text", EscapedText(), nullable=False),
    sa.Column("words", sa.Text(), nullable=False),
    sa.UniqueConstraint("platform", "id"),
    sa.Index("ix_posts_platform_room_id", "platform", "room", "id"),
    sa.Index("ix_posts_platform_author_id_id", "platform", "author_id", "id"),
    sa.Index("ix_posts_platform_created_at", "platform", "created_at"),
)
"""What may be long comes last, so that the rest of a row is read without it. `words` is what full-text search looks
at; the index of it is in the migrations.
"""

POST = tuple(column for column in posts.c if column.name not in {"position", "words"})
"""What makes a post, in the order in which `posts` reads it."""

THERE = posts.c.deleted_at.is_(None)

sa.Index(
    "ix_posts_there",
    posts.c.platform,
    posts.c.room,
    posts.c.created_at,
    posts.c.author_id,
    posts.c.deleted_at,
    sqlite_where=THERE,
    postgresql_where=THERE,
)
"""Posts are counted by this alone, which is why it has `deleted_at`, though that is NULL in all of it."""

IN_THREAD = posts.c.parent != ""

sa.Index("ix_posts_parent", posts.c.platform, posts.c.parent, sqlite_where=IN_THREAD, postgresql_where=IN_THREAD)

post_versions = sa.Table(
    "post_versions",
    metadata,
    sa.Column("post", PositionType, sa.ForeignKey(posts.c.position, ondelete="CASCADE"), primary_key=True),
    sa.Column("number", sa.Integer(), primary_key=True),
    sa.Column("written_at", UtcTime(), nullable=False),
    sa.Column("text", EscapedText(), nullable=False),
)
"""Earlier texts. They go with their post, whatever removes it."""

reworded = sa.Table(
    "reworded",
    metadata,
    sa.Column("post", PositionType, sa.ForeignKey(posts.c.position, ondelete="CASCADE"), primary_key=True),
)
"""Posts that lost their vectors with their text, and need new ones; the others are found in the order of arrival."""

backfills = sa.Table(
    "backfills",
    metadata,
    sa.Column("platform", EscapedText(), primary_key=True),
    sa.Column("room", EscapedText(), primary_key=True),
    sa.Column("oldest", EscapedText(), nullable=False),
    sa.Column("fetched", sa.BigInteger(), nullable=False),
    sa.Column("is_complete", sa.Boolean(), nullable=False),
)

opt_outs = sa.Table(
    "opt_outs",
    metadata,
    sa.Column("platform", EscapedText(), primary_key=True),
    sa.Column("kind", sa.Text(), primary_key=True),
    sa.Column("key", EscapedText(), primary_key=True),
    sa.Column("created_at", UtcTime(), nullable=False),
)
