"""Quiet hours of listeners, over midnight and in other zones."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from denizen.domain.event_listener import QuietHours

NIGHT = QuietHours(time(22), time(7), "Europe/Berlin")


@pytest.mark.parametrize(
    ("now", "end"),
    [
        (datetime(2026, 1, 10, 21, 30, tzinfo=UTC), datetime(2026, 1, 11, 6, tzinfo=UTC)),
        (datetime(2026, 1, 11, 3, tzinfo=UTC), datetime(2026, 1, 11, 6, tzinfo=UTC)),
        (datetime(2026, 1, 11, 6, tzinfo=UTC), None),
        (datetime(2026, 1, 10, 20, 59, tzinfo=UTC), None),
        (datetime(2026, 7, 10, 20, tzinfo=UTC), datetime(2026, 7, 11, 5, tzinfo=UTC)),
    ],
)
def test_quiet_hours_over_midnight_end_in_the_morning_of_their_zone(now: datetime, end: datetime | None) -> None:
    assert NIGHT.find_end(now) == end


def test_quiet_hours_of_a_day_end_on_that_day() -> None:
    noon = QuietHours(time(12), time(13, 30))
    assert noon.find_end(datetime(2026, 1, 10, 12, tzinfo=UTC)) == datetime(2026, 1, 10, 13, 30, tzinfo=UTC)
    assert noon.find_end(datetime(2026, 1, 10, 13, 30, tzinfo=UTC)) is None


@given(
    st.sampled_from([datetime(2026, 3, 28, tzinfo=UTC), datetime(2026, 10, 24, tzinfo=UTC)]),
    st.integers(0, 3 * 24 * 60),
    st.lists(st.times(), min_size=2, max_size=2, unique_by=lambda each: (each.hour, each.minute)),
)
@example(datetime(2026, 3, 28, tzinfo=UTC), 61, [time(2, 1), time(2)])
def test_quiet_hours_end_later_within_two_days_and_are_over_then_also_when_clocks_change(
    day: datetime, minutes: int, hours: list[time]
) -> None:
    quiet = QuietHours(*(each.replace(second=0, microsecond=0) for each in hours), zone="Europe/Berlin")
    now = day + timedelta(minutes=minutes)
    end = quiet.find_end(now)
    assert end is None or (now < end <= now + timedelta(hours=49) and quiet.find_end(end) is None)
