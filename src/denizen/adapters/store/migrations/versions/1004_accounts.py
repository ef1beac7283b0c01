"""People have accounts: users, sign-ins, linked identities, API keys that are made here, and invitations.

Revision ID: 1004
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "1004"
down_revision = "1003"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "users",
        *_ids("users"),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("password_hash", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("is_verified", sa.Boolean(), nullable=False),
        sa.Column("is_founder", sa.Boolean(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.UniqueConstraint("email", name="uq_users_email"),
    )
    founder = sa.text("is_founder")
    op.create_index(
        "uq_users_founder", "users", ["is_founder"], unique=True, sqlite_where=founder, postgresql_where=founder
    )
    op.create_table(
        "sign_ins",
        *_ids("sign_ins"),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("network", sa.Text(), nullable=False),
        *(sa.Column(name, TIME, nullable=False) for name in ("created_at", "seen_at", "expires_at")),
        sa.UniqueConstraint("digest", name="uq_sign_ins_digest"),
        _user("sign_ins"),
    )
    op.create_index("ix_sign_ins_user_id", "sign_ins", ["user_id"])
    op.create_index("ix_sign_ins_expires_at", "sign_ins", ["expires_at"])
    op.create_table(
        "linked_identities",
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("login", sa.Text(), nullable=False),
        sa.Column("linked_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("provider", "subject", name="pk_linked_identities"),
        _user("linked_identities"),
    )
    op.create_index("uq_linked_identities_user_id_provider", "linked_identities", ["user_id", "provider"], unique=True)
    op.create_table(
        "user_keys",
        *_ids("user_keys"),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=True),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("used_at", TIME, nullable=True),
        sa.UniqueConstraint("digest", name="uq_user_keys_digest"),
        _user("user_keys"),
    )
    op.create_index("ix_user_keys_user_id", "user_keys", ["user_id"])
    op.create_table(
        "invitations",
        *_ids("invitations"),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("used_at", TIME, nullable=True),
        sa.UniqueConstraint("digest", name="uq_invitations_digest"),
    )


def _ids(table: str) -> list[sa.Column[object] | sa.PrimaryKeyConstraint | sa.UniqueConstraint]:
    return [
        sa.Column("position", POSITION, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("position", name=f"pk_{table}"),
        sa.UniqueConstraint("id", name=f"uq_{table}_id"),
    ]


def _user(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=f"fk_{table}_user_id")
