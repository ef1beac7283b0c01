"""The times of a schedule: those of its expression, each later by its jitter, or its only one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from denizen.domain.schedule import DueTimes, Schedule
from denizen.ports.schedules import CronTimes

MAX_COUNTED = 1000
"""So many missed times are counted."""
_MINUTE = timedelta(minutes=1)


def find_next(times: CronTimes, schedule: Schedule, after: datetime) -> datetime | None:
    """Returns the first time after that one; None where there is none any more."""
    if schedule.at is not None:
        return schedule.at if schedule.at > after else None
    return next(_list_after(times, schedule, after))


def find_due(times: CronTimes, schedule: Schedule, looked_until: datetime, now: datetime) -> DueTimes | None:
    """Returns the times that have come since `looked_until`; None where none has."""
    if schedule.at is not None:
        return DueTimes(schedule.at) if looked_until < schedule.at <= now else None
    latest = _find_latest(times, schedule, now)
    if latest <= looked_until:
        return None
    earlier = 0
    for time in _list_after(times, schedule, looked_until):
        if time >= latest or earlier >= MAX_COUNTED:
            break
        earlier += 1
    return DueTimes(latest, earlier)


def _list_after(times: CronTimes, schedule: Schedule, after: datetime) -> Iterator[datetime]:
    """The times of the expression are further apart than the jitter, so they stay in order."""
    for time in times.list_after(schedule.cron, schedule.zone, after - schedule.jitter):
        delayed = time + schedule.delay(time)
        if delayed > after:
            yield delayed


def _find_latest(times: CronTimes, schedule: Schedule, now: datetime) -> datetime:
    until = now
    while True:
        time = times.find_latest(schedule.cron, schedule.zone, until)
        if (delayed := time + schedule.delay(time)) <= now:
            return delayed
        until = time - _MINUTE
