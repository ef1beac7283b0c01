"""The port of approvals: tool calls that wait for a human decision, and grants. Part of a unit of work.

A decider takes the approval first: of two who decide at once, the second sees what the first has written.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from denizen.domain.approval import Approval, ApprovalGrant, ApprovalStatus
from denizen.domain.ids import AgentName, ConversationId, TurnId


class ApprovalRepository(Protocol):
    """The approvals and the grants that were given with them."""

    async def add(self, approval: Approval) -> None:
        """Adds the approval. An id that exists is left as it is."""
        ...

    async def find(self, approval_id: str) -> Approval | None: ...

    async def take(self, approval_id: str) -> Approval:
        """Locks the approval until this unit of work ends, and returns it. Raises NotFound."""
        ...

    async def update(self, approval: Approval) -> None:
        """Writes the fields that may change: status, votes, decider, time and note. Raises NotFound."""
        ...

    async def list_approvals(
        self, *, status: ApprovalStatus | None = None, turn_id: TurnId | None = None, limit: int = 100
    ) -> Sequence[Approval]:
        """Returns approvals, newest first."""
        ...

    async def add_grant(self, grant: ApprovalGrant, *, now: datetime) -> None:
        """Adds the grant and removes those that have expired. An id that exists is left as it is."""
        ...

    async def list_grants(
        self, agent: AgentName, requester: str, conversation_id: ConversationId, tool: str, *, now: datetime
    ) -> Sequence[ApprovalGrant]:
        """Returns the grants that hold now, in no certain order."""
        ...
