"""What is kept of answers from documents: what they cite, and what they could not answer. Part of a unit of work."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from denizen.domain.citation import Citation
from denizen.domain.gap import Gap
from denizen.domain.ids import TurnId


class Citations(Protocol):
    async def add(self, turn_id: TurnId, citations: Sequence[Citation]) -> None:
        """In their order; nothing changes when the turn has some."""
        ...

    async def list_of(self, turn_id: TurnId) -> Sequence[Citation]: ...


class Gaps(Protocol):
    async def add(self, gap: Gap) -> bool:
        """False, and nothing changes, when its id exists."""
        ...

    async def list_gaps(
        self, *, since: datetime | None = None, closed: bool = False, limit: int = 1000
    ) -> Sequence[Gap]:
        """Newest first; those that are closed, or those that are not."""
        ...

    async def close(self, gap_ids: Collection[str]) -> int:
        """They need no answer any more. Returns how many were open."""
        ...

    async def forget_asker(self, asker: str) -> int:
        """All of that principal's key. Returns how many there were."""
        ...
