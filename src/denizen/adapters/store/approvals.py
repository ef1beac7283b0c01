"""Approvals of tool calls, and grants: what was approved for a while."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, JsonText, UtcTime, metadata, position_column
from denizen.adapters.store.dialect import InsertInto
from denizen.adapters.store.transaction import Transaction
from denizen.domain.approval import Approval, ApprovalGrant, ApprovalRule, ApprovalStatus, Deciders
from denizen.domain.conversation import Place
from denizen.domain.errors import NotFound
from denizen.domain.ids import AgentName, ConversationId, TurnId
from denizen.domain.tool import Tier

approvals = sa.Table(
    "approvals",
    metadata,
    position_column(),
    sa.Column("id", sa.Text(), nullable=False, unique=True),
    sa.Column("turn_id", sa.Text(), nullable=False),
    sa.Column("agent", EscapedText(), nullable=False),
    sa.Column("requester", EscapedText(), nullable=False),
    sa.Column("requester_name", EscapedText(), nullable=False),
    sa.Column("platform", EscapedText(), nullable=False),
    sa.Column("channel", EscapedText(), nullable=False),
    sa.Column("thread", EscapedText(), nullable=False),
    sa.Column("conversation_id", sa.Text(), nullable=False),
    sa.Column("tool", EscapedText(), nullable=False),
    sa.Column("args", JsonText(), nullable=False),
    sa.Column("tier", sa.Integer(), nullable=False),
    sa.Column("reason", EscapedText(), nullable=False),
    sa.Column("preview", EscapedText(), nullable=False),
    sa.Column("rule", JsonText(), nullable=False),
    sa.Column("is_exact", sa.Boolean(), nullable=False),
    sa.Column("created_at", UtcTime(), nullable=False),
    sa.Column("expires_at", UtcTime()),
    sa.Column("status", sa.Text(), nullable=False),
    sa.Column("voices", JsonText(), nullable=False),
    sa.Column("decided_by", EscapedText(), nullable=False),
    sa.Column("decider_name", EscapedText(), nullable=False),
    sa.Column("decided_at", UtcTime()),
    sa.Column("note", EscapedText(), nullable=False),
    sa.Index("ix_approvals_turn_id", "turn_id"),
    sa.Index("ix_approvals_status", "status"),
)

grants = sa.Table(
    "grants",
    metadata,
    sa.Column("id", sa.Text(), primary_key=True),
    sa.Column("agent", EscapedText(), nullable=False),
    sa.Column("requester", EscapedText(), nullable=False),
    sa.Column("conversation_id", sa.Text(), nullable=False),
    sa.Column("tool", EscapedText(), nullable=False),
    sa.Column("args", sa.Text(), nullable=False),
    sa.Column("given_by", EscapedText(), nullable=False),
    sa.Column("expires_at", UtcTime(), nullable=False),
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
def _add(insert: InsertInto) -> sa.Executable:
    return insert(approvals).on_conflict_do_nothing(index_elements=[approvals.c.id]).inline()


@cache
def _add_grant(insert: InsertInto) -> sa.Executable:
    return insert(grants).on_conflict_do_nothing(index_elements=[grants.c.id]).inline()


@cache
def _list(status: ApprovalStatus | None, *, of_turn: bool) -> sa.Select[Any]:
    statement = sa.select(approvals).order_by(approvals.c.position.desc()).limit(sa.bindparam("limit"))
    if status is not None:
        statement = statement.where(approvals.c.status == status.value)
    return statement.where(approvals.c.turn_id == sa.bindparam("turn")) if of_turn else statement


class SqlApprovals:
    """`denizen.ports.approvals.ApprovalRepository`."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    async def add(self, approval: Approval) -> None:
        add, row = _add(self._transaction.dialect.insert), _row(approval)
        await self._transaction.write(lambda connection: connection.execute(add, row))

    async def find(self, approval_id: str) -> Approval | None:
        found = await self._transaction.read(
            lambda connection: connection.execute(_BY_ID, {"which": approval_id}).first()
        )
        return _approval(found) if found is not None else None

    async def take(self, approval_id: str) -> Approval:
        found = await self._transaction.write(
            lambda connection: connection.execute(_TAKE, {"which": approval_id}).first()
        )
        if found is None:
            raise _missing(approval_id)
        return _approval(found)

    async def update(self, approval: Approval) -> None:
        row = _row(approval)
        values = {f"new_{name}": row[name] for name in _CHANGING} | {"which": approval.id}
        if not await self._transaction.write(lambda connection: connection.execute(_UPDATE, values).rowcount):
            raise _missing(approval.id)

    async def list_approvals(
        self, *, status: ApprovalStatus | None = None, turn_id: TurnId | None = None, limit: int = 100
    ) -> Sequence[Approval]:
        statement = _list(status, of_turn=turn_id is not None)
        bounds: dict[str, Any] = {"limit": max(limit, 0)} | ({} if turn_id is None else {"turn": turn_id})
        rows = await self._transaction.read(lambda connection: connection.execute(statement, bounds).all())
        return [_approval(row) for row in rows]

    async def add_grant(self, grant: ApprovalGrant, *, now: datetime) -> None:
        add = _add_grant(self._transaction.dialect.insert)
        row = {column.name: getattr(grant, column.name) for column in grants.c}

        def job(connection: sa.Connection) -> None:
            connection.execute(_FORGET, {"over": now})
            connection.execute(add, row)

        await self._transaction.write(job)

    async def list_grants(
        self, agent: AgentName, requester: str, conversation_id: ConversationId, tool: str, *, now: datetime
    ) -> Sequence[ApprovalGrant]:
        bounds = {"who": agent, "asker": requester, "where": conversation_id, "what": tool, "now": now}
        rows = await self._transaction.read(lambda connection: connection.execute(_GRANTS, bounds).all())
        return [
            ApprovalGrant(
                id=row.id,
                agent=row.agent,
                requester=row.requester,
                conversation_id=row.conversation_id,
                tool=row.tool,
                args=row.args,
                given_by=row.given_by,
                expires_at=row.expires_at,
            )
            for row in rows
        ]


def _missing(approval_id: str) -> NotFound:
    return NotFound(f"There is no approval {approval_id}.", code="approval_not_found")


def _row(approval: Approval) -> dict[str, Any]:
    place = approval.place
    simple = {
        name: getattr(approval, name)
        for name in (
            "id",
            "turn_id",
            "agent",
            "requester",
            "requester_name",
            "conversation_id",
            "tool",
            "reason",
            "preview",
            "is_exact",
            "created_at",
            "expires_at",
            "decided_by",
            "decider_name",
            "decided_at",
            "note",
        )
    }
    return simple | {
        "platform": place.platform,
        "channel": place.channel,
        "thread": place.thread,
        "args": dict(approval.args),
        "tier": int(approval.tier),
        "rule": _rule_json(approval.rule),
        "status": approval.status.value,
        "voices": list(approval.voices),
    }


def _approval(row: sa.Row[Any]) -> Approval:
    return Approval(
        id=row.id,
        turn_id=row.turn_id,
        agent=row.agent,
        requester=row.requester,
        place=Place(row.platform, row.channel, row.thread),
        conversation_id=row.conversation_id,
        tool=row.tool,
        args=row.args,
        tier=Tier(row.tier),
        reason=row.reason,
        preview=row.preview,
        rule=_rule(row.rule),
        created_at=row.created_at,
        expires_at=row.expires_at,
        status=ApprovalStatus(row.status),
        voices=tuple(row.voices),
        decided_by=row.decided_by,
        decided_at=row.decided_at,
        note=row.note,
        requester_name=row.requester_name,
        decider_name=row.decider_name,
        is_exact=row.is_exact,
    )


def _rule_json(rule: ApprovalRule) -> dict[str, Any]:
    return {
        "deciders": rule.deciders.value,
        "role": rule.role,
        "quorum": rule.quorum,
        "people": sorted(rule.people),
        "timeout_s": rule.timeout_s,
        "grant_on_timeout": rule.grant_on_timeout,
    }


def _rule(row: Mapping[str, Any]) -> ApprovalRule:
    return ApprovalRule(
        deciders=Deciders(row["deciders"]),
        role=row["role"],
        quorum=row["quorum"],
        people=frozenset(row["people"]),
        timeout_s=row["timeout_s"],
        grant_on_timeout=row["grant_on_timeout"],
    )
