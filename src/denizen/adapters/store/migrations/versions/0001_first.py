"""Conversations, sessions, messages with full-text search, turns with their steps and calls, generations of the
configuration, settings of users.

Revision ID: 0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    _create_talk()
    _create_turns()
    _create_settings()
    if op.get_bind().dialect.name == "sqlite":
        _index_words_in_sqlite()
    else:
        _index_words_in_postgres()


def _text(name: str, *constraints: sa.ForeignKey, nullable: bool = False, primary_key: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), *constraints, nullable=nullable, primary_key=primary_key)


def _time(name: str, *, nullable: bool = False) -> sa.Column[object]:
    return sa.Column(name, TIME, nullable=nullable)


def _count(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=False)


def _flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean(), nullable=False)


def _usage() -> list[sa.Column[int]]:
    counts = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "requests")
    return [*(_count(name) for name in counts), sa.Column("cost_usd", sa.BigInteger())]


def _refers(table: str, column: str, target: str) -> sa.ForeignKey:
    return sa.ForeignKey(target, name=f"fk_{table}_{column}")


def _create_talk() -> None:
    op.create_table(
        "conversations",
        sa.Column("position", POSITION, primary_key=True),
        _text("id"),
        _text("platform"),
        _text("channel"),
        _text("thread"),
        _text("title"),
        _time("created_at"),
        sa.UniqueConstraint("id", name="uq_conversations_id"),
        sa.UniqueConstraint("platform", "channel", "thread", name="uq_conversations_platform_channel_thread"),
    )
    op.create_table(
        "sessions",
        sa.Column("position", POSITION, primary_key=True),
        _text("id"),
        _text("conversation_id", _refers("sessions", "conversation_id", "conversations.id")),
        _text("agent"),
        _time("created_at"),
        _time("closed_at", nullable=True),
        sa.UniqueConstraint("id", name="uq_sessions_id"),
    )
    op.create_index("ix_sessions_conversation_id_agent", "sessions", ["conversation_id", "agent"])
    is_open = sa.text("closed_at IS NULL")
    op.create_index(
        "uq_sessions_open",
        "sessions",
        ["conversation_id", "agent"],
        unique=True,
        sqlite_where=is_open,
        postgresql_where=is_open,
    )
    op.create_table(
        "messages",
        sa.Column("position", POSITION, primary_key=True),
        _text("id"),
        _text("conversation_id", _refers("messages", "conversation_id", "conversations.id")),
        _text("session_id", _refers("messages", "session_id", "sessions.id"), nullable=True),
        _count("sequence"),
        _time("created_at"),
        _text("role"),
        _text("author_id"),
        _text("author_name"),
        _flag("author_is_bot"),
        _text("turn_id", nullable=True),
        _text("platform_id"),
        _text("parts"),
        _text("meta"),
        _text("words"),
        sa.UniqueConstraint("id", name="uq_messages_id"),
    )
    op.create_index("ix_messages_session_id_sequence", "messages", ["session_id", "sequence"], unique=True)
    op.create_index("ix_messages_conversation_id_created_at", "messages", ["conversation_id", "created_at"])
    on_platform = sa.text("platform_id != ''")
    op.create_index(
        "ix_messages_platform_id", "messages", ["platform_id"], sqlite_where=on_platform, postgresql_where=on_platform
    )


def _create_turns() -> None:
    op.create_table(
        "turns",
        sa.Column("position", POSITION, primary_key=True),
        _text("id"),
        _text("conversation_id", _refers("turns", "conversation_id", "conversations.id")),
        _text("session_id", _refers("turns", "session_id", "sessions.id")),
        _text("agent"),
        _text("principal_kind"),
        _text("principal_id"),
        _text("principal_name"),
        _text("principal_roles"),
        _text("trigger_id"),
        _text("status"),
        _time("opened_at"),
        _time("closed_at", nullable=True),
        _text("model"),
        _text("reply"),
        _text("failure"),
        _text("failure_code"),
        _text("failure_family"),
        _text("failure_fix"),
        *_usage(),
        _text("options"),
        sa.UniqueConstraint("id", name="uq_turns_id"),
    )
    op.create_index("ix_turns_status_opened_at", "turns", ["status", "opened_at"])
    op.create_index("ix_turns_conversation_id_opened_at", "turns", ["conversation_id", "opened_at"])
    op.create_index("ix_turns_opened_at", "turns", ["opened_at"])
    op.create_table(
        "steps",
        _text("turn_id", _refers("steps", "turn_id", "turns.id"), primary_key=True),
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=False),
        _text("model"),
        _text("purpose"),
        _text("finish_reason"),
        *_usage(),
        _count("duration_ms"),
        _time("created_at"),
        _text("day"),
        _text("agent"),
        _text("principal"),
        sa.PrimaryKeyConstraint("turn_id", "number", name="pk_steps"),
    )
    op.create_index("ix_steps_created_at", "steps", ["created_at"])
    op.create_index("ix_steps_principal_created_at", "steps", ["principal", "created_at"])
    op.create_table(
        "tool_calls",
        _text("turn_id", _refers("tool_calls", "turn_id", "turns.id"), primary_key=True),
        sa.Column("step", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("position", sa.Integer(), primary_key=True, autoincrement=False),
        _text("call_id"),
        _text("tool"),
        _text("args"),
        _text("origin"),
        sa.Column("tier", sa.Integer(), nullable=False),
        _text("decision"),
        sa.Column("verdict_tier", sa.Integer(), nullable=False),
        _text("reason"),
        _text("decided_by"),
        _text("result"),
        _flag("is_error"),
        _count("duration_ms"),
        _flag("cached"),
        _time("created_at"),
        sa.PrimaryKeyConstraint("turn_id", "step", "position", name="pk_tool_calls"),
    )


def _create_settings() -> None:
    op.create_table(
        "config_generations",
        sa.Column("number", sa.BigInteger(), primary_key=True, autoincrement=False),
        _text("digest"),
        _text("source"),
        _time("accepted_at"),
    )
    op.create_table(
        "user_settings",
        _text("principal", primary_key=True),
        _text("key", primary_key=True),
        _text("value"),
        _time("updated_at"),
    )


def _index_words_in_sqlite() -> None:
    """The index reads the words from `messages`, so that they lie there once. Nothing is ranked: no sizes are kept."""
    op.execute(
        "CREATE VIRTUAL TABLE message_words USING fts5("
        "words, content='messages', content_rowid='position', columnsize=0, tokenize='porter unicode61')"
    )
    forget = "INSERT INTO message_words(message_words, rowid, words) VALUES ('delete', old.position, old.words);"
    learn = "INSERT INTO message_words(rowid, words) VALUES (new.position, new.words);"
    op.execute(f"CREATE TRIGGER message_words_insert AFTER INSERT ON messages BEGIN {learn} END")
    op.execute(f"CREATE TRIGGER message_words_delete AFTER DELETE ON messages BEGIN {forget} END")
    op.execute(f"CREATE TRIGGER message_words_update AFTER UPDATE OF words ON messages BEGIN {forget} {learn} END")


def _index_words_in_postgres() -> None:
    """English stems, and no word too common to look for: `plainto_tsquery` with the usual list would find nothing."""
    op.execute("CREATE TEXT SEARCH DICTIONARY denizen_stem (TEMPLATE = pg_catalog.snowball, LANGUAGE = english)")
    op.execute("CREATE TEXT SEARCH CONFIGURATION denizen_words (COPY = pg_catalog.english)")
    op.execute(
        "ALTER TEXT SEARCH CONFIGURATION denizen_words ALTER MAPPING REPLACE pg_catalog.english_stem WITH denizen_stem"
    )
    op.execute(
        "ALTER TABLE messages ADD COLUMN lexemes tsvector"
        " GENERATED ALWAYS AS (to_tsvector('denizen_words'::regconfig, words)) STORED"
    )
    op.execute("CREATE INDEX ix_messages_lexemes ON messages USING gin (lexemes)")
