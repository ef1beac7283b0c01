"""Approvals of tool calls, and grants: what was approved for a while."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from functools import cache, partial
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import EnumValue, JsonText, JsonTuple, UtcTime, id_columns, metadata, texts, times
from denizen.adapters.store.repository import Row, SqlRepository, insert_rows, read_record, write_record
from denizen.domain.approval import Approval, ApprovalDecision, ApprovalGrant, ApprovalRule, ApprovalStatus, Deciders
from denizen.domain.errors import NotFound
from denizen.domain.ids import AgentName, ConversationId, TurnId
from denizen.domain.tool import Tier

approvals = sa.Table(
    "approvals",
    metadata,
    *id_columns(),
    sa.Column("turn_id", sa.Text(), nullable=False),
    *texts("agent", "requester", "requester_name", "platform", "channel", "thread"),
    sa.Column("conversation_id", sa.Text(), nullable=False),
    *texts("tool"),
    sa.Column("args", JsonText(), nullable=False),
    sa.Column("tier", EnumValue(Tier), nullable=False),
    *texts("reason", "preview"),
    sa.Column("rule", JsonText(), nullable=False),
    sa.Column("is_exact", sa.Boolean(), nullable=False),
    *times("created_at"),
    sa.Column("expires_at", UtcTime()),
    sa.Column("status", EnumValue(ApprovalStatus), nullable=False),
    sa.Column("voices", JsonTuple(), nullable=False),
    *texts("decided_by", "decider_name"),
    sa.Column("decided_at", UtcTime()),
    *texts("note"),
    sa.Index("ix_approvals_turn_id", "turn_id"),
    sa.Index("ix_approvals_status", "status"),
)

grants = sa.Table(
    "grants",
    metadata,
    sa.Column("id", sa.Text(), primary_key=True),
    *texts("agent", "requester"),
    sa.Column("conversation_id", sa.Text(), nullable=False),
    *texts("tool"),
    sa.Column("args", sa.Text(), nullable=False),
    *texts("given_by"),
    *times("expires_at"),
    sa.Index("ix_grants_conversation_id_tool", "conversation_id", "tool"),
)
"""`args` is the digest of the approval rule and, for a grant of certain arguments only, of these arguments."""


_CHANGING = ("status", "voices", "decided_by", "decider_name", "decided_at", "note")

_BY_ID = sa.select(approvals).where(approvals.c.id == sa.bindparam("which"))
_TAKE = (
    sa.update(approvals)
    .where(approvals.c.id == sa.bindparam("which"))
    .values(status=approvals.c.status)
    .returning(*approvals.c)
)
"""A write that changes nothing: it locks the row, so others who take the approval wait for this unit of work."""
_UPDATE = (
    sa.update(approvals)
    .where(approvals.c.id == sa.bindparam("which"))
    .values({name: sa.bindparam(f"new_{name}", type_=approvals.c[name].type) for name in _CHANGING})
)
_FORGET = sa.delete(grants).where(grants.c.expires_at <= sa.bindparam("over"))
_GRANTS = sa.select(grants).where(
    grants.c.conversation_id == sa.bindparam("where"),
    grants.c.tool == sa.bindparam("what"),
    grants.c.agent == sa.bindparam("who"),
    grants.c.requester == sa.bindparam("asker"),
    grants.c.expires_at > sa.bindparam("now"),
)


@cache
def _select(status: ApprovalStatus | None, *, of_turn: bool) -> sa.Select[Any]:
    statement = sa.select(approvals).order_by(approvals.c.position.desc()).limit(sa.bindparam("limit"))
    if status is not None:
        statement = statement.where(approvals.c.status == status)
    return statement.where(approvals.c.turn_id == sa.bindparam("turn")) if of_turn else statement


class SqlApprovals(SqlRepository):
    """Implements `denizen.ports.approvals.ApprovalRepository`."""

    async def add(self, approval: Approval) -> None:
        await self._execute(insert_rows(self._dialect.insert, approvals), _write_approval(approval))

    async def find(self, approval_id: str) -> Approval | None:
        return await self._find(_read_approval, _BY_ID, {"which": approval_id})

    async def take(self, approval_id: str) -> Approval:
        found = await self._transaction.write(
            lambda connection: connection.execute(_TAKE, {"which": approval_id}).first()
        )
        if found is None:
            raise _missing(approval_id)
        return _read_approval(found)

    async def update(self, approval: Approval) -> None:
        row = _write_approval(approval)
        values = {f"new_{name}": row[name] for name in _CHANGING} | {"which": approval.id}
        if not await self._change(_UPDATE, values):
            raise _missing(approval.id)

    async def list_approvals(
        self, *, status: ApprovalStatus | None = None, turn_id: TurnId | None = None, limit: int = 100
    ) -> Sequence[Approval]:
        statement = _select(status, of_turn=turn_id is not None)
        bounds: dict[str, Any] = {"limit": max(limit, 0)} | ({} if turn_id is None else {"turn": turn_id})
        return await self._list(_read_approval, statement, bounds)

    async def add_grant(self, grant: ApprovalGrant, *, now: datetime) -> None:
        add, row = insert_rows(self._dialect.insert, grants), write_record(grant)

        def job(connection: sa.Connection) -> None:
            connection.execute(_FORGET, {"over": now})
            connection.execute(add, row)

        await self._transaction.write(job)

    async def list_grants(
        self, agent: AgentName, requester: str, conversation_id: ConversationId, tool: str, *, now: datetime
    ) -> Sequence[ApprovalGrant]:
        bounds = {"who": agent, "asker": requester, "where": conversation_id, "what": tool, "now": now}
        return await self._list(partial(read_record, ApprovalGrant), _GRANTS, bounds)


def _missing(approval_id: str) -> NotFound:
    return NotFound(f"There is no approval {approval_id}.", code="approval_not_found")


def _write_approval(approval: Approval) -> dict[str, Any]:
    decision = approval.decision
    return {
        **write_record(approval, "rule", "decision"),
        "rule": asdict(approval.rule),
        "decided_by": decision.by,
        "decider_name": decision.name,
        "decided_at": decision.at,
        "note": decision.note,
    }


def _read_approval(row: Row) -> Approval:
    deciders, people = Deciders(row.rule["deciders"]), frozenset[str](row.rule["people"])
    rule = ApprovalRule(**row.rule | {"deciders": deciders, "people": people})
    decision = ApprovalDecision(by=row.decided_by, name=row.decider_name, at=row.decided_at, note=row.note)
    return read_record(Approval, row, rule=rule, decision=decision)
