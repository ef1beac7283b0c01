"""Conversations, sessions and messages."""

from __future__ import annotations

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, JsonText, UtcTime
from denizen.adapters.store.tables.registry import metadata, position

conversations = sa.Table(
    "conversations",
    metadata,
    position(),
    sa.Column("id", sa.Text(), nullable=False, unique=True),
    sa.Column("platform", EscapedText(), nullable=False),
    sa.Column("channel", EscapedText(), nullable=False),
    sa.Column("thread", EscapedText(), nullable=False),
    sa.Column("title", EscapedText(), nullable=False),
    sa.Column("created_at", UtcTime(), nullable=False),
    sa.UniqueConstraint("platform", "channel", "thread"),
)

sessions = sa.Table(
    "sessions",
    metadata,
    position(),
    sa.Column("id", sa.Text(), nullable=False, unique=True),
    sa.Column("conversation_id", sa.Text(), sa.ForeignKey(conversations.c.id), nullable=False),
    sa.Column("agent", EscapedText(), nullable=False),
    sa.Column("created_at", UtcTime(), nullable=False),
    sa.Column("closed_at", UtcTime()),
    sa.Index("ix_sessions_conversation_id_agent", "conversation_id", "agent"),
)
OPEN_SESSION = sessions.c.closed_at.is_(None)

sa.Index(
    "uq_sessions_open",
    sessions.c.conversation_id,
    sessions.c.agent,
    unique=True,
    sqlite_where=OPEN_SESSION,
    postgresql_where=OPEN_SESSION,
)

messages = sa.Table(
    "messages",
    metadata,
    position(),
    sa.Column("id", sa.Text(), nullable=False, unique=True),
    sa.Column("conversation_id", sa.Text(), sa.ForeignKey(conversations.c.id), nullable=False),
    sa.Column("session_id", sa.Text(), sa.ForeignKey(sessions.c.id)),
    sa.Column("sequence", sa.BigInteger(), nullable=False),
    sa.Column("created_at", UtcTime(), nullable=False),
    sa.Column("role", sa.Text(), nullable=False),
    sa.Column("author_id", EscapedText(), nullable=False),
    sa.Column("author_name", EscapedText(), nullable=False),
    sa.Column("author_is_bot", sa.Boolean(), nullable=False),
    sa.Column("turn_id", sa.Text()),
    sa.Column("platform_id", EscapedText(), nullable=False),
    sa.Column("parts", JsonText(), nullable=False),
    sa.Column("meta", JsonText(), nullable=False),
    sa.Column("words", sa.Text(), nullable=False),
    sa.Index("ix_messages_session_id_sequence", "session_id", "sequence", unique=True),
    sa.Index("ix_messages_conversation_id_created_at", "conversation_id", "created_at"),
)
"""What may be long comes last, so that the rest of a row is read without it. `words` is what full-text search looks at;
empty for messages that are not searched.
"""

MESSAGE = tuple(column for column in messages.c if column.name not in {"position", "words"})
"""What makes a message, in the order in which `messages` reads it."""

ON_PLATFORM = messages.c.platform_id != ""

sa.Index("ix_messages_platform_id", messages.c.platform_id, sqlite_where=ON_PLATFORM, postgresql_where=ON_PLATFORM)

sa.Index(
    "ix_messages_turn_id",
    messages.c.turn_id,
    sqlite_where=messages.c.turn_id.is_not(None),
    postgresql_where=messages.c.turn_id.is_not(None),
)

WITH_AUTHOR = messages.c.author_id != ""

sa.Index("ix_messages_author_id", messages.c.author_id, sqlite_where=WITH_AUTHOR, postgresql_where=WITH_AUTHOR)
