"""Rooms and posts of a platform with full-text search, decisions about them, and what is delivered there.

Revision ID: 0002
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
PLATFORM_ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    _index_messages()
    _create_posts()
    _create_mirroring()
    _create_reception()
    _create_outbox()
    if op.get_bind().dialect.name == "sqlite":
        _index_words_in_sqlite()
    else:
        _index_words_in_postgres()


def _text(name: str, *, primary_key: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False, primary_key=primary_key)


def _time(name: str, *, nullable: bool = False) -> sa.Column[object]:
    return sa.Column(name, TIME, nullable=nullable)


def _index_where(name: str, table: str, columns: list[str], condition: str) -> None:
    where = sa.text(condition)
    op.create_index(name, table, columns, sqlite_where=where, postgresql_where=where)


def _index_messages() -> None:
    _index_where("ix_messages_turn_id", "messages", ["turn_id"], "turn_id IS NOT NULL")
    _index_where("ix_messages_author_id", "messages", ["author_id"], "author_id != ''")


def _create_posts() -> None:
    op.create_table(
        "posts",
        sa.Column("position", POSITION, primary_key=True),
        _text("platform"),
        sa.Column("id", PLATFORM_ID, nullable=False),
        _text("room"),
        _text("guild"),
        _text("parent"),
        _text("reply_to"),
        _text("author_id"),
        _text("author_name"),
        sa.Column("author_is_bot", sa.Boolean(), nullable=False),
        _time("created_at"),
        _time("edited_at", nullable=True),
        _time("deleted_at", nullable=True),
        _text("attachments"),
        _text("text"),
        _text("words"),
        sa.UniqueConstraint("platform", "id", name="uq_posts_platform_id"),
    )
    op.create_index("ix_posts_platform_room_id", "posts", ["platform", "room", "id"])
    op.create_index("ix_posts_platform_author_id_id", "posts", ["platform", "author_id", "id"])
    op.create_index("ix_posts_platform_created_at", "posts", ["platform", "created_at"])
    counted = ["platform", "room", "created_at", "author_id", "deleted_at"]
    _index_where("ix_posts_there", "posts", counted, "deleted_at IS NULL")
    _index_where("ix_posts_parent", "posts", ["platform", "parent"], "parent != ''")
    op.create_table(
        "post_versions",
        sa.Column(
            "post",
            POSITION,
            sa.ForeignKey("posts.position", name="fk_post_versions_post", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.Column("number", sa.Integer(), nullable=False),
        _time("written_at"),
        _text("text"),
        sa.PrimaryKeyConstraint("post", "number", name="pk_post_versions"),
    )


def _create_mirroring() -> None:
    op.create_table(
        "rooms",
        _text("platform", primary_key=True),
        _text("id", primary_key=True),
        _text("name"),
        _text("kind"),
        _text("guild"),
        _text("guild_name"),
        _text("parent"),
        _text("parent_name"),
        _text("latest_post"),
        sa.PrimaryKeyConstraint("platform", "id", name="pk_rooms"),
    )
    op.create_index("ix_rooms_platform_parent", "rooms", ["platform", "parent"])
    op.create_table(
        "backfills",
        _text("platform", primary_key=True),
        _text("room", primary_key=True),
        _text("oldest"),
        sa.Column("fetched", sa.BigInteger(), nullable=False),
        sa.Column("is_complete", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("platform", "room", name="pk_backfills"),
    )
    op.create_table(
        "opt_outs",
        _text("platform", primary_key=True),
        _text("kind", primary_key=True),
        _text("key", primary_key=True),
        _time("created_at"),
        sa.PrimaryKeyConstraint("platform", "kind", "key", name="pk_opt_outs"),
    )


def _create_reception() -> None:
    op.create_table(
        "claims",
        _text("agent", primary_key=True),
        _text("platform", primary_key=True),
        sa.Column("post", PLATFORM_ID, primary_key=True),
        sa.Column("turn_id", sa.Text()),
        _text("refusal"),
        _time("created_at"),
        sa.PrimaryKeyConstraint("agent", "platform", "post", name="pk_claims"),
    )
    op.create_table(
        "positions",
        _text("agent", primary_key=True),
        _text("platform", primary_key=True),
        _text("room", primary_key=True),
        sa.Column("post", PLATFORM_ID, nullable=False),
        sa.PrimaryKeyConstraint("agent", "platform", "room", name="pk_positions"),
    )
    op.create_table(
        "follows",
        _text("agent", primary_key=True),
        _text("platform", primary_key=True),
        _text("thread", primary_key=True),
        _time("created_at"),
        sa.PrimaryKeyConstraint("agent", "platform", "thread", name="pk_follows"),
    )
    op.create_table(
        "allowed",
        _text("agent", primary_key=True),
        _text("platform", primary_key=True),
        _text("kind", primary_key=True),
        _text("key", primary_key=True),
        _text("allowed_by"),
        _time("created_at"),
        sa.PrimaryKeyConstraint("agent", "platform", "kind", "key", name="pk_allowed"),
    )
    op.create_table(
        "exchanges",
        _text("platform", primary_key=True),
        _text("room", primary_key=True),
        sa.Column("taken", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("platform", "room", name="pk_exchanges"),
    )


def _create_outbox() -> None:
    op.create_table(
        "deliveries",
        sa.Column("position", POSITION, primary_key=True),
        _text("id"),
        _text("turn_id"),
        sa.Column("number", sa.Integer(), nullable=False),
        _text("kind"),
        _text("agent"),
        _text("platform"),
        _text("channel"),
        _text("thread"),
        _time("created_at"),
        _text("reply_to"),
        _text("ticket"),
        _text("state"),
        _text("platform_id"),
        sa.Column("attempts", sa.Integer(), nullable=False),
        _text("failure"),
        _text("content"),
        sa.UniqueConstraint("id", name="uq_deliveries_id"),
    )
    op.create_index("ix_deliveries_agent_platform_state_kind", "deliveries", ["agent", "platform", "state", "kind"])
    op.create_index("ix_deliveries_turn_id", "deliveries", ["turn_id"])
    op.create_index("ix_deliveries_platform_platform_id", "deliveries", ["platform", "platform_id"])
    op.create_table(
        "delivery_files",
        sa.Column(
            "delivery",
            POSITION,
            sa.ForeignKey("deliveries.position", name="fk_delivery_files_delivery", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.Column("number", sa.Integer(), nullable=False),
        _text("name"),
        _text("media_type"),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("delivery", "number", name="pk_delivery_files"),
    )


def _index_words_in_sqlite() -> None:
    """As for messages: the index reads the words from `posts`, so that they lie there once."""
    op.execute(
        "CREATE VIRTUAL TABLE post_words USING fts5("
        "words, content='posts', content_rowid='position', columnsize=0, tokenize='porter unicode61')"
    )
    forget = "INSERT INTO post_words(post_words, rowid, words) VALUES ('delete', old.position, old.words);"
    learn = "INSERT INTO post_words(rowid, words) VALUES (new.position, new.words);"
    op.execute(f"CREATE TRIGGER post_words_insert AFTER INSERT ON posts BEGIN {learn} END")
    op.execute(f"CREATE TRIGGER post_words_delete AFTER DELETE ON posts BEGIN {forget} END")
    op.execute(f"CREATE TRIGGER post_words_update AFTER UPDATE OF words ON posts BEGIN {forget} {learn} END")


def _index_words_in_postgres() -> None:
    op.execute(
        "ALTER TABLE posts ADD COLUMN lexemes tsvector"
        " GENERATED ALWAYS AS (to_tsvector('denizen_words'::regconfig, words)) STORED"
    )
    op.execute("CREATE INDEX ix_posts_lexemes ON posts USING gin (lexemes)")
