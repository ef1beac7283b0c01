"""Turns with their steps and calls."""

from __future__ import annotations

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, JsonText, UtcTime
from denizen.adapters.store.tables.registry import metadata, position, usage
from denizen.adapters.store.tables.talk import conversations, sessions

turns = sa.Table(
    "turns",
    metadata,
    position(),
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
    *usage(),
    sa.Column("options", JsonText(), nullable=False),
    sa.Column("route", JsonText(), nullable=False, server_default="null"),
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
    *usage(),
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

prompts = sa.Table(
    "prompts",
    metadata,
    sa.Column("turn_id", sa.Text(), sa.ForeignKey(turns.c.id), primary_key=True),
    sa.Column("step", sa.Integer(), primary_key=True),
    sa.Column("model", EscapedText(), nullable=False),
    sa.Column("segments", JsonText(), nullable=False),
    sa.Column("messages", JsonText(), nullable=False),
    sa.Column("tools", JsonText(), nullable=False),
    sa.Column("tool_tokens", sa.BigInteger(), nullable=False),
    sa.Column("memories", JsonText(), nullable=False, server_default="[]"),
)
"""What the prompts of a turn were made of, by the step with which each began."""

prompt_texts = sa.Table(
    "prompt_texts",
    metadata,
    sa.Column("sha256", sa.Text(), primary_key=True),
    sa.Column("text", EscapedText(), nullable=False),
)
"""Each once, however many prompts have it."""
