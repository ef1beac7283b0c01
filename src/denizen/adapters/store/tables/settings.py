"""Generations of the configuration, and what users chose."""

from __future__ import annotations

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, JsonText, UtcTime
from denizen.adapters.store.tables.registry import metadata

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

agent_settings = sa.Table(
    "agent_settings",
    metadata,
    sa.Column("agent", EscapedText(), primary_key=True),
    sa.Column("name", EscapedText(), primary_key=True),
    sa.Column("chosen", JsonText(), nullable=False),
    sa.Column("is_active", sa.Boolean(), nullable=False),
    sa.Column("created_at", UtcTime(), nullable=False),
    sa.Column("updated_at", UtcTime(), nullable=False),
)

sa.Index(
    "uq_agent_settings_active",
    agent_settings.c.agent,
    unique=True,
    sqlite_where=agent_settings.c.is_active,
    postgresql_where=agent_settings.c.is_active,
)
