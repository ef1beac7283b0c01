"""The audit log, and where it ends."""

from __future__ import annotations

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, UtcTime
from denizen.adapters.store.tables.registry import metadata

audit = sa.Table(
    "audit",
    metadata,
    sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True, autoincrement=False),
    sa.Column("kind", sa.Text(), nullable=False),
    sa.Column("at", UtcTime(), nullable=False),
    sa.Column("actor", EscapedText(), nullable=False),
    sa.Column("subject", EscapedText(), nullable=False),
    sa.Column("details", EscapedText(), nullable=False),
    sa.Column("previous", sa.Text(), nullable=False),
    sa.Column("digest", sa.Text(), nullable=False),
)

audit_head = sa.Table(
    "audit_head",
    metadata,
    sa.Column("id", sa.Integer(), primary_key=True, autoincrement=False),
    sa.Column("number", sa.BigInteger(), nullable=False),
    sa.Column("digest", sa.Text(), nullable=False),
)
"""One row, which whoever adds an entry locks."""
