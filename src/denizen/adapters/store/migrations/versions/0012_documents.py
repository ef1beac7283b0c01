"""Documents and passages, found by words; vectors with their sign bits, in the order of arrival.

Vectors are made anew in the background: they are derived from texts that are here.

Revision ID: 0012
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "documents",
        sa.Column("position", POSITION, nullable=False),
        *(_text(name) for name in ("path", "source_id", "digest")),
        sa.PrimaryKeyConstraint("position", name="pk_documents"),
        sa.UniqueConstraint("path", name="uq_documents_path"),
    )
    op.create_table(
        "passages",
        sa.Column("position", POSITION, nullable=False),
        sa.Column(
            "document",
            POSITION,
            sa.ForeignKey("documents.position", name="fk_passages_document", ondelete="CASCADE"),
            nullable=False,
        ),
        _text("source_id"),
        sa.Column("number", sa.Integer(), nullable=False),
        _text("key"),
        *(sa.Column(name, sa.Integer(), nullable=False) for name in ("first_line", "last_line")),
        *(_text(name) for name in ("headings", "text", "words")),
        sa.PrimaryKeyConstraint("position", name="pk_passages"),
        sa.UniqueConstraint("document", "number", name="uq_passages_document_number"),
    )
    op.create_index("ix_passages_key", "passages", ["key"])
    op.create_table(
        "indexed", _text("collection"), _text("state"), sa.PrimaryKeyConstraint("collection", name="pk_indexed")
    )
    op.drop_table("vectors")
    op.create_table(
        "vectors",
        sa.Column("position", POSITION, nullable=False),
        *(_text(name) for name in ("collection", "key", "model", "shelf")),
        *(sa.Column(name, sa.LargeBinary(), nullable=False) for name in ("bits", "data")),
        sa.PrimaryKeyConstraint("position", name="pk_vectors"),
        sa.UniqueConstraint("collection", "key", "model", name="uq_vectors_collection_key_model"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_vectors_collection_model_position", "vectors", ["collection", "model", "position"])
    op.create_index("ix_vectors_collection_shelf", "vectors", ["collection", "shelf"])
    if op.get_context().dialect.name == "sqlite":
        _index_words_in_sqlite()
    else:
        _index_words_in_postgres()


def _index_words_in_sqlite() -> None:
    """As for posts, but with the size of each passage, which its rank depends on."""
    op.execute(
        "CREATE VIRTUAL TABLE passage_words USING fts5("
        "words, content='passages', content_rowid='position', tokenize='porter unicode61')"
    )
    forget = "INSERT INTO passage_words(passage_words, rowid, words) VALUES ('delete', old.position, old.words);"
    learn = "INSERT INTO passage_words(rowid, words) VALUES (new.position, new.words);"
    op.execute(f"CREATE TRIGGER passage_words_insert AFTER INSERT ON passages BEGIN {learn} END")
    op.execute(f"CREATE TRIGGER passage_words_delete AFTER DELETE ON passages BEGIN {forget} END")


def _index_words_in_postgres() -> None:
    op.execute(
        "ALTER TABLE passages ADD COLUMN lexemes tsvector"
        " GENERATED ALWAYS AS (to_tsvector('denizen_words'::regconfig, words)) STORED"
    )
    op.execute("CREATE INDEX ix_passages_lexemes ON passages USING gin (lexemes)")


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)
