"""What the store keeps of the audit log (`domain/audit`). Part of a unit of work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from denizen.domain.audit import AuditEntry, AuditEvent, AuditHead


class Audit(Protocol):
    """Append only. Whoever adds keeps others from adding until the unit of work ends, so it is done last."""

    async def add(self, events: Sequence[AuditEvent]) -> AuditHead:
        """Chains them behind the newest entry, in their order; the head as it is then."""
        ...

    async def head(self) -> AuditHead: ...

    async def list_entries(self, *, after: int = 0, limit: int = 1000) -> Sequence[AuditEntry]:
        """Those with a higher number than `after`, oldest first."""
        ...
