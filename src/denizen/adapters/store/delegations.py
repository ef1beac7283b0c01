"""The tasks that turns handed to other agents."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

import sqlalchemy as sa

from denizen.adapters.store.columns import EscapedText, UtcTime, metadata, texts, times
from denizen.adapters.store.repository import SqlRepository, read_record, write_record
from denizen.adapters.store.turns import turns
from denizen.domain.delegation import Delegation
from denizen.domain.ids import ConversationId, TurnId
from denizen.domain.turn import TurnStatus

delegations = sa.Table(
    "delegations",
    metadata,
    sa.Column("turn_id", sa.Text(), sa.ForeignKey(turns.c.id), primary_key=True),
    sa.Column("parent_id", sa.Text(), nullable=False),
    sa.Column("task_id", sa.Text(), nullable=False),
    *texts("asker"),
    sa.Column("is_background", sa.Boolean(), nullable=False),
    *times("created_at"),
    sa.Index("ix_delegations_parent_id", "parent_id"),
    sa.Index("ix_delegations_asker_created_at", "asker", "created_at"),
)

_OF_PARENT = (
    sa.select(delegations)
    .where(delegations.c.parent_id == sa.bindparam("of_turn"))
    .order_by(delegations.c.created_at, delegations.c.turn_id)
)
_IN_CONVERSATION = (
    sa.select(delegations)
    .join(turns, turns.c.id == delegations.c.parent_id)
    .where(turns.c.conversation_id == sa.bindparam("where"))
    .order_by(delegations.c.created_at, delegations.c.turn_id)
)
_LISTED = (
    sa.select(delegations)
    .join(turns, turns.c.id == delegations.c.turn_id)
    .where(
        delegations.c.is_background,
        sa.or_(turns.c.status == TurnStatus.OPEN, turns.c.closed_at > sa.bindparam("ended_after", type_=UtcTime())),
    )
    .order_by(delegations.c.created_at.desc(), delegations.c.turn_id)
    .limit(sa.bindparam("most"))
)
_LISTED_FOR = _LISTED.where(delegations.c.asker == sa.bindparam("whose", type_=EscapedText()))

_read_delegation = partial(read_record, Delegation)


class SqlDelegations(SqlRepository):
    """Implements `denizen.ports.store.DelegationRepository`."""

    async def add(self, delegation: Delegation) -> None:
        await self._add(delegations, write_record(delegation))

    async def list_delegated(self, parent_id: TurnId) -> Sequence[Delegation]:
        return await self._list(_read_delegation, _OF_PARENT, {"of_turn": parent_id})

    async def list_in_conversation(self, conversation_id: ConversationId) -> Sequence[Delegation]:
        return await self._list(_read_delegation, _IN_CONVERSATION, {"where": conversation_id})

    async def list_background(
        self, *, asker: str | None = None, ended_after: datetime, limit: int
    ) -> Sequence[Delegation]:
        bounds = {"ended_after": ended_after, "most": max(limit, 0)}
        if asker is None:
            return await self._list(_read_delegation, _LISTED, bounds)
        return await self._list(_read_delegation, _LISTED_FOR, bounds | {"whose": asker})
