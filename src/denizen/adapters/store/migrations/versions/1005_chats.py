"""Chats of the web, the votes of their owners, and sessions that are forks of others.

Conversations that people had on the web become chats, titled by their first words.

Revision ID: 1005
"""

from __future__ import annotations

import json
import re
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "1005"
down_revision = "1004"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
CHAT_ID = re.compile(r"(?!once_)[A-Za-z0-9_-]{1,64}")
TITLE_CHARS = 30

CONVERSATIONS = "SELECT id, channel, thread, created_at FROM conversations WHERE platform = 'web' ORDER BY position"
LAST = "SELECT max(created_at) FROM messages WHERE conversation_id = :which AND session_id IS NOT NULL"
FIRST = (
    "SELECT parts FROM messages WHERE conversation_id = :which AND role = 'user' AND session_id IS NOT NULL"
    " ORDER BY position LIMIT 1"
)
AGENT = (
    "SELECT sessions.agent FROM messages JOIN sessions ON sessions.id = messages.session_id"
    " WHERE messages.conversation_id = :which ORDER BY messages.position DESC LIMIT 1"
)


def upgrade() -> None:
    op.add_column("sessions", sa.Column("parent_id", sa.Text()))
    op.add_column("sessions", sa.Column("fork_sequence", sa.BigInteger(), nullable=False, server_default="0"))
    chats = op.create_table(
        "chats",
        sa.Column("conversation_id", sa.Text(), primary_key=True),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("id", "owner", "agent")),
        *(sa.Column(name, TIME, nullable=False) for name in ("created_at", "updated_at")),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("mode", "title", "share_token")),
        sa.Column("is_pinned", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["conversation_id"], ["conversations.id"], name="fk_chats_conversation_id_conversations"
        ),
        sa.UniqueConstraint("owner", "id", name="uq_chats_owner_id"),
    )
    op.create_index("ix_chats_owner_updated_at", "chats", ["owner", "updated_at"])
    shared = sa.text("share_token != ''")
    op.create_index(
        "uq_chats_share_token", "chats", ["share_token"], unique=True, sqlite_where=shared, postgresql_where=shared
    )
    op.create_table(
        "message_votes",
        sa.Column("message_id", sa.Text(), primary_key=True),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("vote", "reason")),
        sa.Column("said_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["message_id"], ["messages.id"], name="fk_message_votes_message_id_messages", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_message_votes_said_at", "message_votes", ["said_at"])
    connection = op.get_bind()
    rows = [found for row in connection.execute(sa.text(CONVERSATIONS)).all() if (found := make_chat(connection, row))]
    if rows:
        connection.execute(sa.insert(chats), rows)


def make_chat(connection: sa.Connection, row: sa.Row[Any]) -> dict[str, Any] | None:
    """Returns the chat of a conversation on the web; None for one without messages, or that stood alone."""
    if CHAT_ID.fullmatch(row.thread) is None:
        return None
    which = {"which": row.id}
    last = connection.execute(sa.text(LAST), which).scalar()
    agent = connection.execute(sa.text(AGENT), which).scalar()
    if last is None or agent is None:
        return None
    return {
        "conversation_id": row.id,
        "id": row.thread,
        "owner": row.channel,
        "agent": agent,
        "created_at": row.created_at,
        "updated_at": last,
        "mode": "chat",
        "title": make_title(connection.execute(sa.text(FIRST), which).scalar()),
        "share_token": "",
        "is_pinned": False,
    }


def make_title(parts: str | None) -> str:
    said = [str(part.get("text", "")) for part in json.loads(parts or "[]") if part.get("kind") == "text"]
    words = " ".join(" ".join(said).split())
    cut = words if len(words) <= TITLE_CHARS else words[: TITLE_CHARS + 1].rpartition(" ")[0] or words[:TITLE_CHARS]
    return cut.rstrip(" .,;:!?") or "New chat"
