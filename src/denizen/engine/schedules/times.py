"""The times of a schedule: those of its expression, each later by its jitter, or its only one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise

from denizen.domain.schedule import DueTimes, Schedule
from denizen.ports.schedules import CronTimes

MAX_COUNTED = 1000
"""So many missed times are counted."""
_MINUTE, _SECOND = timedelta(minutes=1), timedelta(seconds=1)


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
    for time, following in pairwise(times.list_after(schedule.cron, schedule.zone, after - schedule.jitter)):
        delayed = _delay(schedule, time, following)
        if delayed > after:
            yield delayed


def _find_latest(times: CronTimes, schedule: Schedule, now: datetime) -> datetime:
    time = times.find_latest(schedule.cron, schedule.zone, now)
    following = next(times.list_after(schedule.cron, schedule.zone, now))
    while (delayed := _delay(schedule, time, following)) > now:
        time, following = times.find_latest(schedule.cron, schedule.zone, time - _MINUTE), time
    return delayed


def _delay(schedule: Schedule, time: datetime, following: datetime) -> datetime:
    """Returns when the time comes with its jitter, before the `following` one: times stay in order, so that none is
    passed over. Where the clocks go forward, two may be less apart than the jitter.
    """
    return min(time + schedule.delay(time), following - _SECOND)
