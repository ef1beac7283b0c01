"""Calls that wait for people, in the memory store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from denizen.domain.approval import Approval, ApprovalGrant, ApprovalStatus
from denizen.domain.ids import AgentName, ConversationId, TurnId
from denizen.testing.memory_unit import Unit, get_row, in_utc, through_json


class MemoryApprovals:
    """`denizen.ports.approvals.Approvals`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def add(self, approval: Approval) -> None:
        self._unit.check_writes()
        rows = self._unit.tables.approvals
        if approval.id not in rows:
            self._unit.put(rows, approval.id, _stored(approval))

    async def find(self, approval_id: str) -> Approval | None:
        return self._unit.tables.approvals.get(approval_id)

    async def take(self, approval_id: str) -> Approval:
        """One unit of work runs at a time."""
        self._unit.check_writes()
        return get_row(self._unit.tables.approvals, approval_id, "approval")

    async def update(self, approval: Approval) -> None:
        changed = replace(
            await self.take(approval.id),
            status=approval.status,
            voices=approval.voices,
            decided_by=approval.decided_by,
            decider_name=approval.decider_name,
            decided_at=approval.decided_at,
            note=approval.note,
        )
        self._unit.put(self._unit.tables.approvals, approval.id, _stored(changed))

    async def list_approvals(
        self, *, status: ApprovalStatus | None = None, turn_id: TurnId | None = None, limit: int = 100
    ) -> Sequence[Approval]:
        rows = [
            row
            for row in reversed(self._unit.tables.approvals.values())
            if status in (None, row.status) and turn_id in (None, row.turn_id)
        ]
        return rows[: max(limit, 0)]

    async def add_grant(self, grant: ApprovalGrant, *, now: datetime) -> None:
        self._unit.check_writes()
        rows = self._unit.tables.grants
        self._unit.remove(rows, *[key for key, row in rows.items() if row.expires_at <= now])
        if grant.id not in rows:
            self._unit.put(rows, grant.id, replace(grant, expires_at=in_utc(grant.expires_at)))

    async def list_grants(
        self, agent: AgentName, requester: str, conversation_id: ConversationId, tool: str, *, now: datetime
    ) -> Sequence[ApprovalGrant]:
        wanted = (agent, requester, conversation_id, tool)
        return [
            row
            for row in self._unit.tables.grants.values()
            if (row.agent, row.requester, row.conversation_id, row.tool) == wanted and row.expires_at > now
        ]


def _stored(approval: Approval) -> Approval:
    return replace(
        approval,
        args=through_json(dict(approval.args)),
        created_at=in_utc(approval.created_at),
        expires_at=in_utc(approval.expires_at) if approval.expires_at else None,
        decided_at=in_utc(approval.decided_at) if approval.decided_at else None,
    )
