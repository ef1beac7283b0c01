"""The times of schedules come in order, each once, whatever jitter and the clocks do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from denizen.adapters.cron import CroniterTimes
from denizen.domain.ids import AgentName
from denizen.domain.schedule import Schedule
from denizen.engine.schedules.times import find_due, find_next

FORWARD, BACK = datetime(2027, 3, 28, tzinfo=UTC), datetime(2027, 10, 31, tzinfo=UTC)
"""Days on which the clocks of Berlin change."""


@pytest.mark.parametrize("day", [FORWARD, BACK])
@pytest.mark.parametrize("number", range(4))
def test_no_time_is_passed_over_on_a_day_on_which_the_clocks_change(day: datetime, number: int) -> None:
    times, jitter = CroniterTimes(), timedelta(minutes=110)
    cron = "0 1,3 * * *"
    news = Schedule(
        name=f"news-{number}", cron=cron, zone="Europe/Berlin", prompt="", agent=AgentName("ada"), jitter=jitter
    )
    looked_until = day - timedelta(hours=4)
    upcoming = find_next(times, news, looked_until)
    found: list[datetime] = []
    for minute in range(60 * 10):
        due = find_due(times, news, looked_until, day - timedelta(hours=4) + timedelta(minutes=minute))
        if due is not None:
            assert (due.at, due.earlier) == (upcoming, 0)
            found.append(due.at)
            looked_until, upcoming = due.at, find_next(times, news, due.at)
    planned = list(zip(times.list_after(cron, news.zone, day - timedelta(hours=4)), found, strict=False))
    assert len(planned) == 2
    assert all(time <= at <= time + jitter for time, at in planned)
