"""The tables, the same in SQLite and Postgres. What one of the two has beyond them (the index for full-text search) is
in the migrations.

Every table that is ordered by arrival has a `position`: times of the clock may be equal. No column that takes part in
a unique key may be NULL, since NULLs never equal each other (inventory CW11): "no thread" is an empty text, and the
key of open sessions is a partial index.
"""

from denizen.adapters.store.tables.answers import citations, gaps, proposals
from denizen.adapters.store.tables.approvals import approvals, grants
from denizen.adapters.store.tables.archive import (
    POST,
    THERE,
    backfills,
    opt_outs,
    post_versions,
    posts,
    reworded,
    rooms,
)
from denizen.adapters.store.tables.audit import audit, audit_head
from denizen.adapters.store.tables.documents import documents, indexed, passages
from denizen.adapters.store.tables.memory import memories, vectors
from denizen.adapters.store.tables.outbox import deliveries, delivery_files
from denizen.adapters.store.tables.reception import allowed, claims, exchanges, follows, positions
from denizen.adapters.store.tables.registry import metadata
from denizen.adapters.store.tables.reminders import reminders
from denizen.adapters.store.tables.settings import agent_settings, config_generations, user_settings
from denizen.adapters.store.tables.sources import source_states, sources, syncs
from denizen.adapters.store.tables.spending import budget_scopes, reservations, spend
from denizen.adapters.store.tables.statistics import (
    side_requests,
    usage_computed,
    usage_days,
    usage_hours,
    usage_reports,
)
from denizen.adapters.store.tables.summaries import summaries
from denizen.adapters.store.tables.talk import MESSAGE, OPEN_SESSION, conversations, messages, sessions
from denizen.adapters.store.tables.transcript import CHANGED, blocks
from denizen.adapters.store.tables.turns import prompt_texts, prompts, steps, tool_calls, turns

__all__ = [
    "CHANGED",
    "MESSAGE",
    "OPEN_SESSION",
    "POST",
    "THERE",
    "agent_settings",
    "allowed",
    "approvals",
    "audit",
    "audit_head",
    "backfills",
    "blocks",
    "budget_scopes",
    "citations",
    "claims",
    "config_generations",
    "conversations",
    "deliveries",
    "delivery_files",
    "documents",
    "exchanges",
    "follows",
    "gaps",
    "grants",
    "indexed",
    "memories",
    "messages",
    "metadata",
    "opt_outs",
    "passages",
    "positions",
    "post_versions",
    "posts",
    "prompt_texts",
    "prompts",
    "proposals",
    "reminders",
    "reservations",
    "reworded",
    "rooms",
    "sessions",
    "side_requests",
    "source_states",
    "sources",
    "spend",
    "steps",
    "summaries",
    "syncs",
    "tool_calls",
    "turns",
    "usage_computed",
    "usage_days",
    "usage_hours",
    "usage_reports",
    "user_settings",
    "vectors",
]
