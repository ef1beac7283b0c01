"""Pending reminders in the store. Part of a unit of work."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from denizen.domain.ids import AgentName
from denizen.domain.reminder import Reminder


class Reminders(Protocol):
    async def add(self, reminder: Reminder) -> bool:
        """False, and nothing changes, when its id exists."""
        ...

    async def list_of(self, asker: str, *, limit: int = 100) -> Sequence[Reminder]:
        """Those of a principal's key, the next one first."""
        ...

    async def list_due(
        self, account: AgentName, platform: str, *, now: datetime, limit: int = 100
    ) -> Sequence[Reminder]:
        """The account's on that platform which are due, the oldest first."""
        ...

    async def find_next_due(self, *, after: datetime) -> datetime | None:
        """When the next one of all that are not due yet is."""
        ...

    async def remove(self, reminder_id: str, *, asker: str | None = None) -> bool:
        """False when it is not there, or not that asker's. Of several units of work that remove it one gets True."""
        ...

    async def forget_asker(self, asker: str) -> int:
        """All of that principal's key. Returns how many there were."""
        ...
