"""The tables, the same in SQLite and Postgres. What one of the two has beyond them (the index for full-text search) is
in the migrations.

Every table that is ordered by arrival has a `position`: times of the clock may be equal. No column that takes part in
a unique key may be NULL, since NULLs never equal each other (inventory CW11): "no thread" is an empty text, and the
key of open sessions is a partial index.
"""

from __future__ import annotations

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, JsonText, Usd, UtcTime

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _position() -> sa.Column[int]:
    return sa.Column("position", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True)


def _usage() -> list[sa.Column[int] | sa.Column[object]]:
    counts = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "requests")
    return [*(sa.Column(name, sa.BigInteger(), nullable=False) for name in counts), sa.Column("cost_usd", Usd())]


conversations = sa.Table(
    "conversations",
    metadata,
    _position(),
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
    _position(),
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
    _position(),
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

turns = sa.Table(
    "turns",
    metadata,
    _position(),
    sa.Column("id", sa.Text(), nullable=False, unique=True),
    sa.Column("conversation_id", sa.Text(), sa.ForeignKey(conversations.c.id), nullable=False),
    sa.Column("session_id", sa.Text(), sa.ForeignKey(sessions.c.id), nullable=False),
    sa.Column("agent", EscapedText(), nullable=False),
    sa.Column("principal_kind", sa.Text(), nullable=False),
    sa.Column("principal_id", EscapedText(), nullable=False),
    sa.Column("principal_name", EscapedText(), nullable=False),
    sa.Column("principal_roles", JsonText(), nullable=False),
    sa.Column("trigger_id", sa.Text(), nullable=False),
    sa.Column("status", sa.Text(), nullable=False),
    sa.Column("opened_at", UtcTime(), nullable=False),
    sa.Column("closed_at", UtcTime()),
    sa.Column("model", EscapedText(), nullable=False),
    sa.Column("reply", EscapedText(), nullable=False),
    sa.Column("failure", EscapedText(), nullable=False),
    sa.Column("failure_code", sa.Text(), nullable=False),
    sa.Column("failure_family", sa.Text(), nullable=False),
    sa.Column("failure_fix", EscapedText(), nullable=False),
    *_usage(),
    sa.Column("options", JsonText(), nullable=False),
    sa.Index("ix_turns_status_opened_at", "status", "opened_at"),
    sa.Index("ix_turns_conversation_id_opened_at", "conversation_id", "opened_at"),
    sa.Index("ix_turns_opened_at", "opened_at"),
)

steps = sa.Table(
    "steps",
    metadata,
    sa.Column("turn_id", sa.Text(), sa.ForeignKey(turns.c.id), primary_key=True),
    sa.Column("number", sa.Integer(), primary_key=True),
    sa.Column("model", EscapedText(), nullable=False),
    sa.Column("purpose", sa.Text(), nullable=False),
    sa.Column("finish_reason", EscapedText(), nullable=False),
    *_usage(),
    sa.Column("duration_ms", sa.BigInteger(), nullable=False),
    sa.Column("created_at", UtcTime(), nullable=False),
    sa.Column("day", sa.Text(), nullable=False),
    sa.Column("agent", EscapedText(), nullable=False),
    sa.Column("principal", EscapedText(), nullable=False),
    sa.Index("ix_steps_created_at", "created_at"),
    sa.Index("ix_steps_principal_created_at", "principal", "created_at"),
)
"""`day`, `agent` and `principal` (its key) repeat what the time and the turn say: a budget is summed before every
request.
"""

tool_calls = sa.Table(
    "tool_calls",
    metadata,
    sa.Column("turn_id", sa.Text(), sa.ForeignKey(turns.c.id), primary_key=True),
    sa.Column("step", sa.Integer(), primary_key=True),
    sa.Column("position", sa.Integer(), primary_key=True),
    sa.Column("call_id", EscapedText(), nullable=False),
    sa.Column("tool", EscapedText(), nullable=False),
    sa.Column("args", JsonText(), nullable=False),
    sa.Column("origin", sa.Text(), nullable=False),
    sa.Column("tier", sa.Integer(), nullable=False),
    sa.Column("decision", sa.Text(), nullable=False),
    sa.Column("verdict_tier", sa.Integer(), nullable=False),
    sa.Column("reason", EscapedText(), nullable=False),
    sa.Column("decided_by", EscapedText(), nullable=False),
    sa.Column("result", EscapedText(), nullable=False),
    sa.Column("is_error", sa.Boolean(), nullable=False),
    sa.Column("duration_ms", sa.BigInteger(), nullable=False),
    sa.Column("cached", sa.Boolean(), nullable=False),
    sa.Column("created_at", UtcTime(), nullable=False),
)
"""Each with its verdict."""

config_generations = sa.Table(
    "config_generations",
    metadata,
    sa.Column("number", sa.BigInteger(), primary_key=True, autoincrement=False),
    sa.Column("digest", sa.Text(), nullable=False),
    sa.Column("source", EscapedText(), nullable=False),
    sa.Column("accepted_at", UtcTime(), nullable=False),
)

user_settings = sa.Table(
    "user_settings",
    metadata,
    sa.Column("principal", EscapedText(), primary_key=True),
    sa.Column("key", EscapedText(), primary_key=True),
    sa.Column("value", JsonText(), nullable=False),
    sa.Column("updated_at", UtcTime(), nullable=False),
)
