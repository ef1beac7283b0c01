"""The initial schema: all tables, and the indexes for full-text search.

Revision ID: 1001
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.schema import SchemaItem

revision = "1001"
down_revision = None
branch_labels = None
depends_on = None

# A copy of the program's tables as they were when this migration was written: the tables move on, a migration stays.
TABLES = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)
POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
# The "C" collation sorts by code points, as SQLite does, whatever the language of the server.
PLATFORM_ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def table(name: str, *parts: SchemaItem, sqlite_autoincrement: bool = False) -> None:
    sa.Table(name, TABLES, *parts, sqlite_autoincrement=sqlite_autoincrement)


def position() -> sa.Column[int]:
    return sa.Column("position", POSITION, primary_key=True)


def ids() -> list[sa.Column[Any]]:
    return [position(), sa.Column("id", sa.Text(), nullable=False, unique=True)]


def keys(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), primary_key=True) for name in names]


def reference(name: str, target: str, *, primary_key: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), sa.ForeignKey(target), primary_key=primary_key, nullable=False)


def texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=False) for name in names]


def platform_ids(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, PLATFORM_ID, nullable=False) for name in names]


def times(*names: str) -> list[sa.Column[object]]:
    return [sa.Column(name, TIME, nullable=False) for name in names]


def maybe_times(*names: str) -> list[sa.Column[object]]:
    return [sa.Column(name, TIME) for name in names]


def integers(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.Integer(), nullable=False) for name in names]


def bigs(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger(), nullable=False) for name in names]


def flags(*names: str) -> list[sa.Column[bool]]:
    return [sa.Column(name, sa.Boolean(), nullable=False) for name in names]


def blobs(*names: str) -> list[sa.Column[bytes]]:
    return [sa.Column(name, sa.LargeBinary(), nullable=False) for name in names]


def usage() -> list[sa.Column[int]]:
    counts = bigs("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "requests")
    return [*counts, sa.Column("cost_usd", sa.BigInteger())]


def partial_index(name: str, *columns: str, where: str, unique: bool = False) -> sa.Index:
    return sa.Index(name, *columns, unique=unique, sqlite_where=sa.text(where), postgresql_where=sa.text(where))


# Conversations, with the messages of their sessions.

table(
    "conversations",
    *ids(),
    *texts("platform", "channel", "thread", "title"),
    *times("created_at"),
    sa.UniqueConstraint("platform", "channel", "thread"),
)

table(
    "sessions",
    *ids(),
    reference("conversation_id", "conversations.id"),
    *texts("agent"),
    *times("created_at"),
    *maybe_times("closed_at"),
    sa.Index("ix_sessions_conversation_id_agent", "conversation_id", "agent"),
    partial_index("uq_sessions_open", "conversation_id", "agent", unique=True, where="closed_at IS NULL"),
)

table(
    "messages",
    *ids(),
    reference("conversation_id", "conversations.id"),
    sa.Column("session_id", sa.Text(), sa.ForeignKey("sessions.id")),
    *bigs("sequence"),
    *times("created_at"),
    *texts("role", "author_id", "author_name"),
    *flags("author_is_bot"),
    sa.Column("turn_id", sa.Text()),
    *texts("platform_id", "parts", "meta", "words"),
    partial_index("ix_messages_author_id", "author_id", where="author_id != ''"),
    sa.Index("ix_messages_conversation_id_created_at", "conversation_id", "created_at"),
    partial_index("ix_messages_platform_id", "platform_id", where="platform_id != ''"),
    sa.Index("ix_messages_session_id_sequence", "session_id", "sequence", unique=True),
    partial_index("ix_messages_turn_id", "turn_id", where="turn_id IS NOT NULL"),
)

table(
    "summaries",
    reference("session_id", "sessions.id", primary_key=True),
    sa.Column("first", sa.BigInteger(), primary_key=True, autoincrement=False),
    *bigs("last"),
    *texts("text"),
    *times("created_at"),
)

# Turns, with their steps, tool calls and prompts.

table(
    "turns",
    *ids(),
    reference("conversation_id", "conversations.id"),
    reference("session_id", "sessions.id"),
    *texts("agent", "principal_kind", "principal_id", "principal_name", "principal_roles", "trigger_id", "status"),
    *times("opened_at"),
    *maybe_times("closed_at"),
    *texts("model", "reply", "failure", "failure_code", "failure_family", "failure_fix"),
    *usage(),
    *texts("options", "route"),
    sa.Index("ix_turns_conversation_id_opened_at", "conversation_id", "opened_at"),
    sa.Index("ix_turns_opened_at", "opened_at"),
    sa.Index("ix_turns_status_opened_at", "status", "opened_at"),
)

table(
    "steps",
    reference("turn_id", "turns.id", primary_key=True),
    sa.Column("number", sa.Integer(), primary_key=True),
    *texts("model", "purpose", "finish_reason"),
    *usage(),
    *bigs("duration_ms"),
    *times("created_at"),
    *texts("day", "agent", "principal"),
    sa.Index("ix_steps_created_at", "created_at"),
    sa.Index("ix_steps_principal_created_at", "principal", "created_at"),
)

table(
    "tool_calls",
    reference("turn_id", "turns.id", primary_key=True),
    sa.Column("step", sa.Integer(), primary_key=True),
    sa.Column("position", sa.Integer(), primary_key=True),
    *texts("call_id", "tool", "args", "origin"),
    *integers("tier"),
    *texts("decision"),
    *integers("verdict_tier"),
    *texts("reason", "decided_by", "result"),
    *flags("is_error"),
    *bigs("duration_ms"),
    *flags("cached"),
    *times("created_at"),
)

table(
    "prompts",
    reference("turn_id", "turns.id", primary_key=True),
    sa.Column("step", sa.Integer(), primary_key=True),
    *texts("model", "segments", "messages", "tools"),
    *bigs("tool_tokens"),
    *texts("memories"),
)

table("prompt_texts", *keys("sha256"), *texts("text"))

# The mirror of a platform's messages.

table(
    "rooms",
    *keys("platform", "id"),
    *texts("name", "kind", "guild", "guild_name", "parent", "parent_name", "latest_post"),
    sa.Index("ix_rooms_platform_parent", "platform", "parent"),
)

table(
    "posts",
    position(),
    *texts("platform"),
    *platform_ids("id"),
    *texts("room", "guild", "parent", "reply_to", "author_id", "author_name"),
    *flags("author_is_bot"),
    *times("created_at"),
    *maybe_times("edited_at", "deleted_at"),
    *texts("attachments", "text", "words"),
    sa.UniqueConstraint("platform", "id"),
    partial_index(
        "ix_posts_changed", "platform", "room", "id", where="edited_at IS NOT NULL OR deleted_at IS NOT NULL"
    ),
    partial_index("ix_posts_parent", "platform", "parent", where="parent != ''"),
    sa.Index("ix_posts_platform_author_id_id", "platform", "author_id", "id"),
    sa.Index("ix_posts_platform_created_at", "platform", "created_at"),
    sa.Index("ix_posts_platform_room_id", "platform", "room", "id"),
    partial_index(
        "ix_posts_there", "platform", "room", "created_at", "author_id", "deleted_at", where="deleted_at IS NULL"
    ),
)

table(
    "post_versions",
    sa.Column("post", POSITION, sa.ForeignKey("posts.position", ondelete="CASCADE"), primary_key=True),
    sa.Column("number", sa.Integer(), primary_key=True),
    *times("written_at"),
    *texts("text"),
)

table(
    "stale_embeddings",
    sa.Column("post", POSITION, sa.ForeignKey("posts.position", ondelete="CASCADE"), primary_key=True),
)

table("backfills", *keys("platform", "room"), *texts("oldest"), *bigs("fetched"), *flags("is_complete"))

table("opt_outs", *keys("platform", "kind", "key"), *times("created_at"))

table(
    "transcript_blocks",
    *keys("platform", "channel", "thread"),
    sa.Column("number", sa.Integer(), primary_key=True),
    *texts("room"),
    *platform_ids("first", "last"),
    *integers("tokens"),
    *texts("digest"),
    *integers("posts"),
    *texts("versions", "left_out", "events"),
    sa.UniqueConstraint("platform", "channel", "thread", "first"),
)

# What arrived from platforms, and what is sent to them.

table(
    "claims",
    *keys("agent", "platform"),
    sa.Column("post", PLATFORM_ID, primary_key=True),
    sa.Column("turn_id", sa.Text()),
    *texts("refusal"),
    *times("created_at"),
)

table("read_cursors", *keys("agent", "platform", "room"), *platform_ids("post"))

table("follows", *keys("agent", "platform", "thread"), *times("created_at"))

table("allowlist", *keys("agent", "platform", "kind", "key"), *texts("allowed_by"), *times("created_at"))

table("bot_reply_counts", *keys("platform", "room"), *integers("replies"))

table(
    "deliveries",
    *ids(),
    *texts("turn_id"),
    *integers("number"),
    *texts("kind", "agent", "platform", "channel", "thread"),
    *times("created_at"),
    *texts("reply_to", "ticket", "state", "platform_id"),
    *integers("attempts"),
    *texts("failure", "content"),
    sa.Index("ix_deliveries_agent_platform_state_kind", "agent", "platform", "state", "kind"),
    sa.Index("ix_deliveries_platform_platform_id", "platform", "platform_id"),
    sa.Index("ix_deliveries_turn_id", "turn_id"),
)

table(
    "delivery_files",
    sa.Column("delivery", POSITION, sa.ForeignKey("deliveries.position", ondelete="CASCADE"), primary_key=True),
    sa.Column("number", sa.Integer(), primary_key=True),
    *texts("name", "media_type"),
    *blobs("data"),
)

table(
    "reminders",
    *ids(),
    *texts("account", "asker", "platform", "channel", "thread", "text"),
    *times("due_at", "created_at"),
    sa.Index("ix_reminders_asker", "asker"),
    sa.Index("ix_reminders_due_at", "due_at"),
)

# Money and usage.

table(
    "rates",
    sa.Column("key", sa.Text(), primary_key=True),
    sa.Column("uses", sa.Text(), nullable=False),
    *times("expires_at"),
    sa.Index("ix_rates_expires_at", "expires_at"),
)

table("spend", *keys("kind", "key", "day"), *usage(), sa.Index("ix_spend_kind_day", "kind", "day"))

table(
    "reservations",
    *keys("id"),
    *bigs("usd"),
    *times("expires_at"),
    *texts("guild", "channel", "user", "agent"),
    sa.Index("ix_reservations_expires_at", "expires_at"),
)

table("budget_scopes", *keys("kind", "key"), *texts("warned_on"))

table(
    "usage_reports",
    *ids(),
    *texts("principal", "source", "source_id", "model"),
    *usage(),
    *bigs("duration_ms"),
    *texts("metadata"),
    *times("created_at"),
    *texts("day"),
    sa.Index("ix_usage_reports_created_at", "created_at"),
    sa.Index("ix_usage_reports_principal_created_at", "principal", "created_at"),
)

table(
    "side_requests",
    position(),
    *texts("agent", "principal", "source", "model"),
    *usage(),
    *times("created_at"),
    *texts("day"),
    sa.Index("ix_side_requests_created_at", "created_at"),
    sa.Index("ix_side_requests_principal_created_at", "principal", "created_at"),
)

table(
    "usage_days",
    *keys("day", "principal", "source", "model"),
    *bigs("messages", "duration_ms"),
    *usage(),
    sa.Index("ix_usage_days_principal_day", "principal", "day"),
)

table("usage_hours", *keys("day", "hour", "source", "model"), *bigs("messages", "duration_ms"), *usage())

table("usage_computed", *keys("day"), *times("computed_at"))

# Approvals and the audit log.

table(
    "approvals",
    *ids(),
    *texts(
        "turn_id",
        "agent",
        "requester",
        "requester_name",
        "platform",
        "channel",
        "thread",
        "conversation_id",
        "tool",
        "args",
    ),
    *integers("tier"),
    *texts("reason", "preview", "rule"),
    *flags("is_exact"),
    *times("created_at"),
    *maybe_times("expires_at"),
    *texts("status", "voices", "decided_by", "decider_name"),
    *maybe_times("decided_at"),
    *texts("note"),
    sa.Index("ix_approvals_status", "status"),
    sa.Index("ix_approvals_turn_id", "turn_id"),
)

table(
    "grants",
    *keys("id"),
    *texts("agent", "requester", "conversation_id", "tool", "args", "given_by"),
    *times("expires_at"),
    sa.Index("ix_grants_conversation_id_tool", "conversation_id", "tool"),
)

table(
    "audit",
    sa.Column("number", POSITION, primary_key=True, autoincrement=False),
    *texts("kind"),
    *times("at"),
    *texts("actor", "subject", "details", "previous", "digest"),
)

table(
    "audit_head",
    sa.Column("id", sa.Integer(), primary_key=True, autoincrement=False),
    *bigs("number"),
    *texts("digest"),
)

# Memories and documents, with the vectors of their texts.

table(
    "memories",
    *ids(),
    *texts("agent", "owner", "text", "platform", "room"),
    *flags("private"),
    *texts("told_by", "turn_id"),
    *times("created_at", "updated_at"),
    sa.Index("ix_memories_agent_owner", "agent", "owner"),
    sa.Index("ix_memories_told_by", "told_by"),
)

table(
    "sources",
    *keys("id"),
    *texts("kind", "location", "label", "branch", "content_path", "output_path"),
    *flags("readme_only"),
    *integers("max_videos", "sync_every_minutes"),
    *times("created_at", "updated_at"),
)

table(
    "source_states",
    sa.Column("source_id", sa.Text(), sa.ForeignKey("sources.id", ondelete="CASCADE"), primary_key=True),
    *texts("revision", "fingerprint", "taken"),
    *maybe_times("synced_at", "tried_at"),
    *texts("error_code", "error"),
)

table(
    "syncs",
    *ids(),
    *texts("sources", "status", "snapshot", "changed", "failed", "skipped"),
    *times("started_at"),
    *maybe_times("ended_at"),
)

table("documents", position(), sa.Column("path", sa.Text(), nullable=False, unique=True), *texts("source_id", "digest"))

table(
    "passages",
    position(),
    sa.Column("document", POSITION, sa.ForeignKey("documents.position", ondelete="CASCADE"), nullable=False),
    *texts("source_id"),
    *integers("number"),
    *texts("key"),
    *integers("first_line", "last_line"),
    *texts("headings", "text", "words"),
    sa.UniqueConstraint("document", "number"),
    sa.Index("ix_passages_key", "key"),
)

table(
    "vectors",
    position(),
    *texts("collection", "key", "model", "namespace"),
    *blobs("bits", "data"),
    sa.UniqueConstraint("collection", "key", "model"),
    sa.Index("ix_vectors_collection_model_position", "collection", "model", "position"),
    sa.Index("ix_vectors_collection_namespace", "collection", "namespace"),
    sqlite_autoincrement=True,
)

table("index_progress", *keys("collection"), *texts("state"))

table(
    "citations",
    sa.Column("turn_id", sa.Text(), sa.ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("number", sa.Integer(), primary_key=True),
    *texts("path"),
    *integers("first_line", "last_line"),
    *texts("source_id", "revision", "link", "doubt"),
)

table(
    "gaps",
    *ids(),
    *texts("agent", "question", "asker", "platform", "channel", "thread"),
    *flags("is_private"),
    *texts("kind", "turn_id"),
    *flags("is_closed"),
    *times("created_at"),
    sa.Index("ix_gaps_asker", "asker"),
    sa.Index("ix_gaps_created_at", "created_at"),
)

table(
    "proposals",
    *ids(),
    *texts(
        "platform",
        "channel",
        "thread",
        "post",
        "answer",
        "author",
        "author_name",
        "proposer",
        "link",
        "question",
        "asker",
        "gap_id",
        "status",
        "decided_by",
    ),
    *maybe_times("decided_at"),
    *texts("reason", "text", "file"),
    *flags("is_filed"),
    *times("said_at", "created_at"),
    sa.Index("ix_proposals_author", "author"),
    sa.Index("ix_proposals_platform_post", "platform", "post"),
    sa.Index("ix_proposals_status_created_at", "status", "created_at"),
)

# Settings.

table(
    "config_generations",
    sa.Column("number", sa.BigInteger(), primary_key=True, autoincrement=False),
    *texts("digest", "source"),
    *times("accepted_at"),
)

table("user_settings", *keys("principal", "key"), *texts("value"), *times("updated_at"))

table(
    "agent_settings",
    *keys("agent", "name"),
    *texts("chosen"),
    *flags("is_active"),
    *times("created_at", "updated_at"),
    partial_index("uq_agent_settings_active", "agent", unique=True, where="is_active"),
)


def upgrade() -> None:
    TABLES.create_all(op.get_bind())
    if op.get_context().dialect.name == "sqlite":
        # Messages and posts are not ranked, so their indexes keep no sizes of the texts; passages are ranked.
        index_words_in_sqlite("message_words", "messages", "columnsize=0, ")
        index_words_in_sqlite("post_words", "posts", "columnsize=0, ")
        index_words_in_sqlite("passage_words", "passages", "")
        for index, table in (("message_words", "messages"), ("post_words", "posts")):
            forget, learn = _forget(index), _learn(index)
            op.execute(f"CREATE TRIGGER {index}_update AFTER UPDATE OF words ON {table} BEGIN {forget} {learn} END")
    else:
        create_word_configuration()
        for table in ("messages", "posts", "passages"):
            index_words_in_postgres(table)


def index_words_in_sqlite(index: str, table: str, options: str) -> None:
    """The index reads the words from the table (`content=`), so that the database holds them once."""
    op.execute(
        f"CREATE VIRTUAL TABLE {index} USING fts5("
        f"words, content='{table}', content_rowid='position', {options}tokenize='porter unicode61')"
    )
    op.execute(f"CREATE TRIGGER {index}_insert AFTER INSERT ON {table} BEGIN {_learn(index)} END")
    op.execute(f"CREATE TRIGGER {index}_delete AFTER DELETE ON {table} BEGIN {_forget(index)} END")


def _learn(index: str) -> str:
    return f"INSERT INTO {index}(rowid, words) VALUES (new.position, new.words);"  # noqa: S608 - names of ours


def _forget(index: str) -> str:
    return f"INSERT INTO {index}({index}, rowid, words) VALUES ('delete', old.position, old.words);"  # noqa: S608 - names of ours


def create_word_configuration() -> None:
    """English stems without stop words: `plainto_tsquery` with the usual list would find nothing for common words."""
    op.execute("CREATE TEXT SEARCH DICTIONARY denizen_stem (TEMPLATE = pg_catalog.snowball, LANGUAGE = english)")
    op.execute("CREATE TEXT SEARCH CONFIGURATION denizen_words (COPY = pg_catalog.english)")
    op.execute(
        "ALTER TEXT SEARCH CONFIGURATION denizen_words ALTER MAPPING REPLACE pg_catalog.english_stem WITH denizen_stem"
    )


def index_words_in_postgres(table: str) -> None:
    op.execute(
        f"ALTER TABLE {table} ADD COLUMN lexemes tsvector"
        " GENERATED ALWAYS AS (to_tsvector('denizen_words'::regconfig, words)) STORED"
    )
    op.execute(f"CREATE INDEX ix_{table}_lexemes ON {table} USING gin (lexemes)")
