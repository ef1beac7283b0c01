"""Quiet hours of listeners, over midnight and in other zones."""

from __future__ import annotations

from datetime import UTC, datetime, time

import pytest

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
