"""The ports of schedules: when they are due, and what is kept of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Protocol

from denizen.domain.ids import AgentName, TurnId
from denizen.domain.record import record
from denizen.domain.schedule import PlannedTimes, RunStatus, ScheduleDelivery, ScheduleRun, ScheduleState


class CronTimes(Protocol):
    """The times of cron expressions in a zone. Where the clock is put back, a fixed hour comes once; where it is put
    forward, a time that is left out comes when the clock has jumped. `*` hours are hours that pass.
    """

    def list_after(self, cron: str, zone: str, after: datetime) -> Iterator[datetime]:
        """Yields the times after that one, without end."""
        ...

    def find_latest(self, cron: str, zone: str, until: datetime) -> datetime:
        """Returns the last time that is not after `until`."""
        ...

    def read(self, text: str, zone: str, now: datetime) -> PlannedTimes:
        """Returns what these words, or this expression, mean. Raises InvalidInput for what is neither, for a moment
        that is over, for one that the clocks show twice or never, and for a zone that does not exist.
        """
        ...


@record(kw_only=True)
class RunReport:
    """The answer of a run, to be sent. `run` is its id, by which receivers know it when it comes twice."""

    run: str
    schedule: str
    agent: AgentName
    planned_at: datetime
    turn_id: TurnId
    text: str


class RunSender(Protocol):
    """Sends the answers of runs by webhook and mail."""

    async def send(self, delivery: ScheduleDelivery, report: RunReport) -> str:
        """Sends it once, and returns what the receiver said, for people. Raises Unavailable for what may go well
        later, and other errors for what will not.
        """
        ...


class ScheduleRepository(Protocol):
    """The states of schedules, by name, and their runs. Part of a unit of work."""

    async def list_states(self) -> Sequence[ScheduleState]: ...

    async def put(self, state: ScheduleState) -> None:
        """Adds the state, or replaces the one of that name."""
        ...

    async def remove(self, name: str) -> None:
        """Removes the state. The runs stay."""
        ...

    async def advance(self, name: str, *, before: datetime, until: datetime) -> bool:
        """Sets `looked_until`. False, and nothing changes, where it is not `before` any more: another process has
        dealt with that time.
        """
        ...

    async def set_last_run(self, name: str, at: datetime) -> None: ...

    async def add_run(self, run: ScheduleRun) -> bool:
        """Adds the run, in the place of the oldest where there are many. False when its id is there."""
        ...

    async def set_status(
        self, run_id: str, status: RunStatus, *, turn_id: TurnId | None = None, note: str | None = None
    ) -> None:
        """Tells how the run goes on. Without a `note` it keeps the one that it has."""
        ...

    async def list_begun(self, name: str, *, limit: int) -> Sequence[ScheduleRun]:
        """Returns the schedule's runs whose turn began or is to begin, the newest first."""
        ...

    async def list_runs(self, name: str = "", *, limit: int = 20) -> Sequence[ScheduleRun]:
        """Returns the schedule's runs, the newest first; those of all schedules for an empty name."""
        ...

    async def list_newest(self) -> Sequence[ScheduleRun]:
        """Returns the newest run of each schedule."""
        ...

    async def list_owed(self) -> Sequence[ScheduleRun]:
        """Returns the runs whose answers are to be sent, the oldest first."""
        ...

    async def list_waiting(self) -> Sequence[ScheduleRun]:
        """Returns the runs whose turns are to begin, the oldest first."""
        ...
