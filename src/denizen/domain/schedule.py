"""Schedules: prompts that an agent gets at set times, without anybody asking.

Times are those of a cron expression in the schedule's own zone, which keeps its hour over changes of daylight saving
time. A time at which nothing ran is a run, too, with the reason, so that nobody has to guess.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from croniter import croniter

from denizen.domain.ids import AgentName, TurnId, derive
from denizen.domain.record import record

LATE_AFTER = timedelta(minutes=2)
"""A run that begins so long after its time was missed: the server was not there."""
MAX_COUNTED = 1000
"""So many missed times are counted."""


class DeliveryRoute(StrEnum):
    """Where the answer goes: into the log alone, to a channel on Discord, or to a person there."""

    LOG = "log"
    DISCORD = "discord"
    DISCORD_DM = "discord-dm"


class CatchUp(StrEnum):
    """What becomes of times that were missed: nothing, or one run for all of them."""

    SKIP = "skip"
    ONCE = "once"


@record
class ScheduleDelivery:
    """`target` is the id of a channel, or of a person; without a person it is the agent's first owner."""

    to: DeliveryRoute = DeliveryRoute.LOG
    target: str = ""


@record(kw_only=True)
class Schedule:
    """One schedule of the configuration. With `wake_agent` off, the prompt is only left in the session. `session` is
    the name of the session; empty for `cron:NAME`.
    """

    name: str
    cron: str
    zone: str
    prompt: str
    agent: AgentName
    session: str = ""
    new_session: bool = False
    model: str = ""
    enabled: bool = True
    wake_agent: bool = True
    delivery: ScheduleDelivery = ScheduleDelivery()
    catch_up: CatchUp = CatchUp.SKIP

    @property
    def session_name(self) -> str:
        return self.session or f"cron:{self.name}"

    def find_next(self, after: datetime) -> datetime:
        """Returns the first time after that one."""
        return self._times(after).get_next(datetime).astimezone(UTC)

    def find_due(self, looked_until: datetime, now: datetime) -> DueTimes | None:
        """Returns the latest time since `looked_until` that has come, with the number of those before it."""
        times = self._times(looked_until)
        latest, count = None, 0
        while count <= MAX_COUNTED and (time := times.get_next(datetime)) <= now:
            latest, count = time.astimezone(UTC), count + 1
        if latest is None:
            return None
        if count > MAX_COUNTED:
            latest = self._times(now + timedelta(seconds=1)).get_prev(datetime).astimezone(UTC)
        return DueTimes(latest, count - 1)

    def _times(self, start: datetime) -> croniter:
        return croniter(self.cron, start.astimezone(ZoneInfo(self.zone)))


@record
class DueTimes:
    """A time that has come, and how many before it nobody looked at."""

    at: datetime
    earlier: int


class RunStatus(StrEnum):
    """How a run went. WAITING: its turn is to begin; STARTED: its turn tells the rest; NOTED: the prompt was left in
    the session; SKIPPED: the run before had not ended; MISSED: the server was not there; FAILED: no turn could begin.
    """

    WAITING = "waiting"
    STARTED = "started"
    NOTED = "noted"
    SKIPPED = "skipped"
    MISSED = "missed"
    FAILED = "failed"


@record(kw_only=True)
class ScheduleRun:
    """One time of a schedule. `asked_by` is the key of who ran it by hand, empty for the clock. `note` tells people
    why it did not run, or what was missed before it.
    """

    id: str
    schedule: str
    planned_at: datetime
    began_at: datetime
    status: RunStatus
    turn_id: TurnId | None = None
    asked_by: str = ""
    note: str = ""


@record(kw_only=True)
class ScheduleState:
    """What is kept of a schedule between runs. `definition` is a digest of when it runs: with another one, times begin
    to count anew. `looked_until` is the last time that was dealt with.
    """

    name: str
    definition: str
    looked_until: datetime
    last_run_at: datetime | None = None


def run_id(schedule: str, planned_at: datetime, *, asked: str = "") -> str:
    """The same for the same time, so that it runs once whoever is first. `asked` tells runs by hand apart."""
    return derive("run", schedule, planned_at.isoformat(), asked)


def is_cron(text: str) -> bool:
    """Whether it is a cron expression of five fields, or one of the names such as `@daily`."""
    return (len(text.split()) == 5 or text.startswith("@")) and croniter.is_valid(text)  # noqa: PLR2004
