"""Everything of one person of the web, whichever table it is in: one list, by which it is exported and erased.

Every table is in exactly one of `OWNED`, `MENTIONED` and `IMPERSONAL`; a test compares them with the schema. A table
that holds anything of a person of the web gets a line here with the table itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.answers import citations, gaps, proposals
from denizen.adapters.store.approvals import approvals, grants
from denizen.adapters.store.chats import chats, message_votes
from denizen.adapters.store.columns import EscapedText
from denizen.adapters.store.conversations import conversations, sessions
from denizen.adapters.store.delegations import delegations
from denizen.adapters.store.events import events
from denizen.adapters.store.feeds import feeds
from denizen.adapters.store.inbox import allowlist, claims
from denizen.adapters.store.memories import SqlMemories, memories
from denizen.adapters.store.messages import messages, summaries
from denizen.adapters.store.outbox import deliveries, delivery_files
from denizen.adapters.store.projects import SqlProjects, project_documents, projects, task_comments, tasks
from denizen.adapters.store.questions import questions
from denizen.adapters.store.reminders import reminders
from denizen.adapters.store.repository import SqlRepository
from denizen.adapters.store.schedules import schedule_runs
from denizen.adapters.store.settings import user_settings
from denizen.adapters.store.spending import budget_scopes, reservations, spend
from denizen.adapters.store.statistics import SqlStatistics, side_requests, usage_days, usage_reports
from denizen.adapters.store.turns import prompt_texts, prompts, steps, tool_calls, turns
from denizen.adapters.store.users import invitations, linked_identities, sign_ins, user_keys, users
from denizen.adapters.store.workflows import workflow_nodes, workflow_runs
from denizen.domain.budget import BudgetScopeKind
from denizen.domain.handover import HANDOVER_KEY
from denizen.domain.ids import TurnId
from denizen.domain.json import Json, JsonObject
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.project import PERSON
from denizen.domain.statistics import FORGOTTEN

_USER = sa.bindparam("of_id", type_=EscapedText())
_KEY = sa.bindparam("of_key", type_=EscapedText())
_CONVERSATIONS = sa.select(conversations.c.id).where(conversations.c.channel == _KEY)
"""The person's own places: nobody else's request can name them."""
_HANDOVERS = sa.select(sa.literal(HANDOVER_KEY).concat(conversations.c.id)).where(conversations.c.channel == _KEY)
_SESSIONS = sa.select(sessions.c.id).where(sessions.c.conversation_id.in_(_CONVERSATIONS))
_TURNS = sa.select(turns.c.id).where(
    sa.or_(
        turns.c.conversation_id.in_(_CONVERSATIONS),
        sa.and_(turns.c.principal_kind == PrincipalKind.WEB_USER, turns.c.principal_id == _USER),
    )
)
_MESSAGES = sa.select(messages.c.id).where(
    sa.or_(messages.c.conversation_id.in_(_CONVERSATIONS), messages.c.turn_id.in_(_TURNS))
)
_DELIVERIES = sa.select(deliveries.c.position).where(deliveries.c.turn_id.in_(_TURNS))

_RUNS = sa.select(workflow_runs.c.id).where(workflow_runs.c.started_by == _KEY)

OWNED: Mapping[sa.Table, sa.ColumnElement[bool]] = {
    delivery_files: delivery_files.c.delivery.in_(_DELIVERIES),
    deliveries: deliveries.c.turn_id.in_(_TURNS),
    claims: claims.c.turn_id.in_(_TURNS),
    citations: citations.c.turn_id.in_(_TURNS),
    prompts: prompts.c.turn_id.in_(_TURNS),
    tool_calls: tool_calls.c.turn_id.in_(_TURNS),
    steps: steps.c.turn_id.in_(_TURNS),
    approvals: sa.or_(approvals.c.requester == _KEY, approvals.c.turn_id.in_(_TURNS)),
    questions: sa.or_(questions.c.asker == _KEY, questions.c.turn_id.in_(_TURNS)),
    grants: sa.or_(grants.c.requester == _KEY, grants.c.given_by == _KEY),
    chats: chats.c.owner == _KEY,
    message_votes: message_votes.c.message_id.in_(_MESSAGES),
    messages: messages.c.id.in_(_MESSAGES),
    summaries: summaries.c.session_id.in_(_SESSIONS),
    delegations: sa.or_(delegations.c.turn_id.in_(_TURNS), delegations.c.asker == _KEY),
    turns: turns.c.id.in_(_TURNS),
    user_settings: sa.or_(user_settings.c.principal == _KEY, user_settings.c.principal.in_(_HANDOVERS)),
    sessions: sessions.c.id.in_(_SESSIONS),
    conversations: conversations.c.id.in_(_CONVERSATIONS),
    memories: sa.or_(memories.c.owner == _KEY, memories.c.told_by == _KEY),
    reminders: reminders.c.asker == _KEY,
    projects: projects.c.audience == sa.literal(PERSON).concat(_KEY),
    gaps: sa.or_(gaps.c.asker == _KEY, gaps.c.turn_id.in_(_TURNS)),
    workflow_nodes: workflow_nodes.c.run.in_(_RUNS),
    workflow_runs: workflow_runs.c.started_by == _KEY,
    spend: sa.and_(spend.c.kind == BudgetScopeKind.USER.value, spend.c.key == _KEY),
    budget_scopes: sa.and_(budget_scopes.c.kind == BudgetScopeKind.USER.value, budget_scopes.c.key == _KEY),
    reservations: reservations.c.user == _KEY,
    invitations: invitations.c.created_by == _KEY,
    sign_ins: sign_ins.c.user_id == _USER,
    linked_identities: linked_identities.c.user_id == _USER,
    user_keys: sa.or_(user_keys.c.user_id == _USER, user_keys.c.created_by == _KEY),
    users: users.c.id == _USER,
}
"""The rows that are of a person alone, what belongs to others before them. They are exported, and go."""

MENTIONED: Mapping[sa.Table, Mapping[sa.Column[Any], str]] = {
    approvals: {approvals.c.decided_by: FORGOTTEN},
    questions: {questions.c.answered_by: FORGOTTEN},
    proposals: {proposals.c.asker: "", proposals.c.proposer: FORGOTTEN, proposals.c.decided_by: FORGOTTEN},
    allowlist: {allowlist.c.allowed_by: FORGOTTEN},
    **{table: {table.c.author: FORGOTTEN} for table in (projects, tasks, task_comments, project_documents)},
    schedule_runs: {schedule_runs.c.asked_by: FORGOTTEN},
    events: {events.c.actor: FORGOTTEN},
    feeds: {feeds.c.subscriber: FORGOTTEN},
    side_requests: {side_requests.c.principal: FORGOTTEN},
    usage_reports: {usage_reports.c.principal: FORGOTTEN},
    usage_days: {usage_days.c.principal: FORGOTTEN},
}
"""The columns that name a person in rows that stay for others, and the name's replacement. They are exported too."""

IMPERSONAL: Mapping[str, str] = {
    "admin_names": "names of the configuration, with digests of ids, so that nobody takes one over",
    "agent_settings": "chosen by admins for everybody",
    "audit": "the log is a chain that nobody can change; it names people by ids that nothing else knows any more",
    "audit_head": "a digest",
    "backfills": "platforms only",
    "bot_reply_counts": "platforms only",
    "config_generations": "digests",
    "documents": "read from sources",
    "event_deliveries": "of listeners",
    "event_source_items": "of sources",
    "event_sources": "of the configuration",
    "feed_items": "of feeds",
    "follows": "platforms only",
    "index_progress": "of the index",
    "issue_links": "ids and digests",
    "issue_mirrors": "of the configuration",
    "opt_outs": "platforms only",
    "passages": "read from sources",
    "post_versions": "platforms only",
    "posts": "platforms only",
    "prompt_texts": "shared by prompts; texts that no other prompt has go with the prompts of the person",
    "rates": "digests of keys, which are cleared a day after the last use",
    "read_cursors": "platforms only",
    "rooms": "platforms only",
    "schedules": "of the configuration",
    "source_states": "of sources",
    "sources": "of sources",
    "stale_embeddings": "platforms only",
    "syncs": "of sources",
    "task_changes": "ids of tasks, with which they go",
    "transcript_blocks": "platforms only",
    "usage_computed": "days",
    "usage_hours": "sums of everybody",
    "vectors": "numbers; those of memories go with the memories",
    "workflow_versions": "of the configuration",
}
"""The tables without rows of people of the web, each with the reason."""

MEMBER: Mapping[str, Mapping[sa.Table, sa.ColumnElement[bool]]] = {
    "memories": {memories: OWNED[memories]},
    "reminders": {reminders: OWNED[reminders]},
    "questions to the owner": {questions: questions.c.asker == _KEY},
    "settings": {user_settings: OWNED[user_settings]},
    "unanswered questions": {gaps: gaps.c.asker == _KEY},
    "events": {events: events.c.actor == _KEY},
    "feeds": {feeds: feeds.c.subscriber == _KEY},
    "runs of workflows": {workflow_runs: workflow_runs.c.started_by == _KEY},
    "proposed answers": {proposals: sa.or_(proposals.c.author == _KEY, proposals.c.asker == _KEY)},
    "projects and tasks": {
        table: table.c.author == _KEY for table in (projects, tasks, task_comments, project_documents)
    },
    "records of usage": {
        usage_days: usage_days.c.principal == _KEY,
        usage_reports: usage_reports.c.principal == _KEY,
        side_requests: side_requests.c.principal == _KEY,
    },
}
"""The rows that name a member of a platform and that forgetting removes, or takes the name out of."""

_SECRET = frozenset({"password_hash", "digest"})
_INTERNAL = frozenset({"position", "words", "is_founder"})


class SqlPersonalData(SqlRepository):
    """Implements `denizen.ports.users.PersonalDataRepository`."""

    async def export(self, user_id: str) -> Mapping[str, Sequence[JsonObject]]:
        bounds = _bounds(user_id)

        def job(connection: sa.Connection) -> dict[str, Sequence[JsonObject]]:
            found: dict[str, Sequence[JsonObject]] = {}
            for table, mine in _list_exported():
                columns = [column for column in table.c if column.name not in _SECRET | _INTERNAL]
                rows = connection.execute(sa.select(*columns).where(mine), bounds).mappings()
                found[table.name] = [{str(name): _plain(value) for name, value in row.items()} for row in rows]
            return found

        return await self._transaction.read(job)

    async def list_turns(self, user_id: str) -> Sequence[TurnId]:
        return await self._transaction.read(
            lambda connection: [TurnId(each) for each in connection.execute(_TURNS, _bounds(user_id)).scalars()]
        )

    async def count_member(self, principal: str) -> Mapping[str, int]:
        def job(connection: sa.Connection) -> dict[str, int]:
            return {
                name: sum(
                    connection.execute(
                        sa.select(sa.func.count()).select_from(table).where(mine), {"of_key": principal}
                    ).scalar_one()
                    for table, mine in tables.items()
                )
                for name, tables in MEMBER.items()
            }

        return await self._transaction.read(job)

    async def erase(self, user_id: str) -> None:
        bounds = _bounds(user_id)
        await SqlMemories(self._transaction).forget_teller(bounds["of_key"])
        await SqlStatistics(self._transaction).forget_user(bounds["of_key"])
        await SqlProjects(self._transaction).forget_author(bounds["of_key"])

        def job(connection: sa.Connection) -> None:
            _drop_prompt_texts(connection, bounds)
            _clear_usage_reports(connection)
            for table, mine in OWNED.items():
                connection.execute(sa.delete(table).where(mine), bounds)
            for table, columns in MENTIONED.items():
                if table is usage_days:  # merged into the sums of all who are gone
                    continue
                for column, instead in columns.items():
                    connection.execute(sa.update(table).where(column == _KEY).values({column: instead}), bounds)
            _forget_votes(connection, bounds["of_key"])

        await self._transaction.write(job)


def _bounds(user_id: str) -> dict[str, str]:
    return {"of_id": user_id, "of_key": Principal(PrincipalKind.WEB_USER, user_id, "").key}


def _list_exported() -> Sequence[tuple[sa.Table, sa.ColumnElement[bool]]]:
    mentioned = [
        (table, sa.or_(*(column == _KEY for column in columns)))
        for table, columns in MENTIONED.items()
        if table not in OWNED
    ]
    return [*reversed(list(OWNED.items())), *mentioned]


def _drop_prompt_texts(connection: sa.Connection, bounds: Mapping[str, str]) -> None:
    """Removes the texts of segments that only prompts of the person have. Reads the other prompts once."""
    mine = OWNED[prompts]
    hashes = {
        part[-1] for row in connection.execute(sa.select(prompts.c.segments).where(mine), bounds) for part in row[0]
    }
    others = connection.execute(sa.select(prompts.c.segments).where(sa.not_(mine)), bounds)
    for row in others:
        hashes -= {part[-1] for part in row[0]}
        if not hashes:
            break
    others.close()
    for sha256 in sorted(hashes):
        connection.execute(sa.delete(prompt_texts).where(prompt_texts.c.sha256 == sha256))


def _clear_usage_reports(connection: sa.Connection) -> None:
    """Empties what a program wrote to the usage of people who are gone; the sums stay."""
    reports = usage_reports.c
    connection.execute(sa.update(usage_reports).where(reports.principal == FORGOTTEN).values(source_id="", metadata={}))


def _forget_votes(connection: sa.Connection, key: str) -> None:
    """Takes the person out of the approvals and the answered questions of others."""
    named = sa.select(approvals.c.id, approvals.c.voices).where(
        sa.cast(approvals.c.voices, sa.Text()).contains(key, autoescape=True)
    )
    for row in connection.execute(named).all():
        voices = tuple(FORGOTTEN if each == key else each for each in row.voices)
        connection.execute(sa.update(approvals).where(approvals.c.id == row.id).values(voices=voices))
    connection.execute(sa.update(approvals).where(approvals.c.decided_by == FORGOTTEN).values(decider_name="", note=""))
    connection.execute(sa.update(questions).where(questions.c.answered_by == FORGOTTEN).values(answerer=""))


def _plain(value: Any) -> Json:  # noqa: ANN401 - whatever a column holds
    if isinstance(value, Enum):
        return _plain(value.value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        return value.hex()
    plain: Json = json.loads(json.dumps(value, default=str))
    return plain
