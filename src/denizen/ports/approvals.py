"""What the store keeps of calls that wait for people. Part of a unit of work.

Whoever decides takes the approval first: of two who decide at once, the second sees what the first has written.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from denizen.domain.approval import Approval, ApprovalStatus, Grant
from denizen.domain.ids import AgentName, ConversationId, TurnId


class ApprovalRepository(Protocol):
    async def add(self, approval: Approval) -> None:
        """An id that exists is left as it is."""
        ...

    async def find(self, approval_id: str) -> Approval | None: ...

    async def take(self, approval_id: str) -> Approval:
        """Until this unit of work ends, nobody else takes it. Raises NotFound."""
        ...

    async def update(self, approval: Approval) -> None:
        """Writes what may change: status, voices, who decided when, the note. Raises NotFound."""
        ...

    async def list_approvals(
        self, *, status: ApprovalStatus | None = None, turn_id: TurnId | None = None, limit: int = 100
    ) -> Sequence[Approval]:
        """Newest first."""
        ...

    async def add_grant(self, grant: Grant, *, now: datetime) -> None:
        """An id that exists is left as it is. Those that have expired are forgotten."""
        ...

    async def list_grants(
        self, agent: AgentName, requester: str, conversation_id: ConversationId, tool: str, *, now: datetime
    ) -> Sequence[Grant]:
        """Those that hold now, in no certain order."""
        ...
