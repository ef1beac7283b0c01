"""The times of a schedule: those of its expression, or its only one."""

from __future__ import annotations

from datetime import datetime

from denizen.domain.schedule import DueTimes, Schedule
from denizen.ports.schedules import CronTimes

MAX_COUNTED = 1000
"""So many missed times are counted."""


def find_next(times: CronTimes, schedule: Schedule, after: datetime) -> datetime | None:
    """Returns the first time after that one; None where there is none any more."""
    if schedule.at is not None:
        return schedule.at if schedule.at > after else None
    return next(times.list_after(schedule.cron, schedule.zone, after))


def find_due(times: CronTimes, schedule: Schedule, looked_until: datetime, now: datetime) -> DueTimes | None:
    """Returns the times that have come since `looked_until`; None where none has."""
    if schedule.at is not None:
        return DueTimes(schedule.at) if looked_until < schedule.at <= now else None
    latest = times.find_latest(schedule.cron, schedule.zone, now)
    if latest <= looked_until:
        return None
    earlier = 0
    for time in times.list_after(schedule.cron, schedule.zone, looked_until):
        if time >= latest or earlier >= MAX_COUNTED:
            break
        earlier += 1
    return DueTimes(latest, earlier)
