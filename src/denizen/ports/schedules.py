"""The port of what is kept of schedules. Part of a unit of work."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from denizen.domain.ids import TurnId
from denizen.domain.schedule import RunStatus, ScheduleRun, ScheduleState


class ScheduleRepository(Protocol):
    """The states of schedules, by name, and their runs."""

    async def find(self, name: str) -> ScheduleState | None: ...

    async def put(self, state: ScheduleState) -> None:
        """Adds the state, or replaces the one of that name."""
        ...

    async def advance(self, name: str, *, before: datetime, until: datetime) -> bool:
        """Sets `looked_until`. False, and nothing changes, where it is not `before` any more: another process has
        dealt with that time.
        """
        ...

    async def add_run(self, run: ScheduleRun) -> bool:
        """Adds the run, and sets the schedule's `last_run_at` where something ran. False when its id is there."""
        ...

    async def set_status(self, run_id: str, status: RunStatus, *, turn_id: TurnId | None = None, note: str = "") -> None:
        """Tells how the run goes on."""
        ...

    async def list_runs(self, name: str, *, limit: int = 20) -> Sequence[ScheduleRun]:
        """Returns the schedule's runs, the newest first; those of all schedules for an empty name."""
        ...

    async def list_waiting(self) -> Sequence[ScheduleRun]:
        """Returns the runs whose turns are to begin, the oldest first."""
        ...
