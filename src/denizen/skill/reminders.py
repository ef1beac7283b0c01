"""Reminders as tools see them: of the one who asks, with one agent's account."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class PlannedReminder:
    """`due_at` is an aware time in the zone that was asked for; `is_here`: it was asked for in this very place."""

    id: str
    text: str
    due_at: datetime
    is_here: bool = True


class ReminderAccess(Protocol):
    """The pending reminders of one person, as one call may see and change them. `zone` is the IANA name of the zone
    that is meant where a time has no offset; empty for the agent's own (`timestamps.zone`).
    """

    async def add(self, when: str, text: str, *, zone: str = "") -> PlannedReminder:
        """Delivered where the call was made. Raises NotAllowed where nothing can be delivered (outside of platforms),
        InvalidInput for a time that cannot be understood, is over or too far ahead, and for a text that is empty or too
        long, Exhausted when the person has too many already.
        """
        ...

    async def list(self, *, zone: str = "") -> Sequence[PlannedReminder]:
        """The next one first. All of them, wherever they were asked for: others may read what is shown in a room."""
        ...

    async def cancel(self, reminder_id: str) -> None:
        """Raises NotFound."""
        ...
