"""The times of cron expressions, above all where daylight saving time begins and ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.adapters.cron import CroniterTimes, find_cron_fault

BERLIN = "Europe/Berlin"
ZONES = (BERLIN, "UTC", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")
EXPRESSIONS = ("30 2 * * *", "0 * * * *", "*/20 * * * *", "15 */2 * * *", "0 1-3 * * *", "0 9 * * mon-fri", "@daily")


def list_local(cron: str, first: str, count: int, zone: str = BERLIN) -> list[str]:
    """The times from that one on, as the clock on the wall shows them."""
    start = datetime.fromisoformat(first).replace(tzinfo=ZoneInfo(zone)) - timedelta(seconds=1)
    found = islice(CroniterTimes().list_after(cron, zone, start), count)
    return [time.astimezone(ZoneInfo(zone)).strftime("%d %H:%M%z") for time in found]


def test_a_daily_job_runs_once_on_the_day_on_which_its_hour_comes_twice() -> None:
    assert list_local("30 2 * * *", "2026-10-24", 3) == ["24 02:30+0200", "25 02:30+0200", "26 02:30+0100"]


def test_a_daily_job_runs_when_the_clock_has_jumped_over_its_hour() -> None:
    assert list_local("30 2 * * *", "2026-03-28", 3) == ["28 02:30+0100", "29 03:00+0200", "30 02:30+0200"]


def test_two_times_that_the_clock_jumps_over_are_one() -> None:
    assert list_local("15,45 2,3 * * *", "2026-03-29", 3) == ["29 03:00+0200", "29 03:15+0200", "29 03:45+0200"]


def test_a_job_of_every_hour_runs_in_every_hour_that_passes() -> None:
    autumn = list_local("*/30 * * * *", "2026-10-25T01:30", 6)
    assert [each[3:] for each in autumn] == [
        "01:30+0200",
        "02:00+0200",
        "02:30+0200",
        "02:00+0100",
        "02:30+0100",
        "03:00+0100",
    ]
    assert list_local("@hourly", "2026-03-29T01:00", 2) == ["29 01:00+0100", "29 03:00+0200"]


def test_looking_while_the_hour_comes_a_second_time_finds_the_next_day() -> None:
    second = datetime(2026, 10, 25, 2, 10, fold=1, tzinfo=ZoneInfo(BERLIN))
    assert next(CroniterTimes().list_after("30 2 * * *", BERLIN, second)).astimezone(UTC).day == 26


@pytest.mark.proves("TW10")
def test_the_hour_is_that_of_the_zone_in_summer_and_in_winter() -> None:
    times = CroniterTimes().list_after("0 9 1 * *", BERLIN, datetime(2026, 1, 15, tzinfo=UTC))
    assert [time.hour for time in islice(times, 11)] == [8, 8, 7, 7, 7, 7, 7, 7, 7, 8, 8]


@given(
    cron=st.sampled_from(EXPRESSIONS),
    zone=st.sampled_from(ZONES),
    start=st.integers(0, 366 * 24 * 60),
    ahead=st.integers(0, 6 * 24 * 60),
)
def test_the_latest_time_is_the_last_one_that_was_listed(cron: str, zone: str, start: int, ahead: int) -> None:
    begin = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=start)
    until = begin + timedelta(minutes=ahead)
    times, listed = CroniterTimes(), list[datetime]()
    for time in times.list_after(cron, zone, begin):
        if time > until:
            break
        listed.append(time)
    assert listed == sorted(set(listed))
    latest = times.find_latest(cron, zone, until)
    assert latest == listed[-1] if listed else latest <= begin


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "0 24 * * *",
        "R * * * *",
        "H 3 * * *",
        "0 0 31 2 *",
        "@reboot",
        "0 9 * * xyz",
        "0 9 * * * 2027",
    ],
)
def test_what_is_no_expression_of_five_fields_or_never_comes_is_refused(text: str) -> None:
    assert find_cron_fault(text) is not None


@pytest.mark.parametrize(
    "text", ["* * * * *", "0 9 * * MON-fri", "*/15 8-18 * jan,jul 1", "@daily", "0 0 29 2 *", "0 9 L * *"]
)
def test_expressions_of_five_fields_and_names_are_taken(text: str) -> None:
    assert find_cron_fault(text) is None


@pytest.mark.parametrize(
    ("text", "part", "message", "fix"),
    [
        ("* * * *", "* * * *", "has 4 fields, and five are needed", "minute, hour, day, month and weekday"),
        ("61 * * * *", "61", "is no minute", "0 to 59"),
        ("0 25 * * *", "25", "is no hour", "0 to 23"),
        ("0 9 0 * *", "0", "is no day", "1 to 31"),
        ("0 9 * 13 *", "13", "is no month", "jan to dec"),
        ("0 9 * * mon-xyz", "mon-xyz", "is no weekday", "sun to sat"),
        ("@dayly", "@dayly", "is no name of times", "Did you mean @daily?"),
        ("0 0 31 2 *", "0 0 31 2 *", "never comes true", "a day that the month has"),
    ],
)
def test_the_part_that_is_wrong_is_named_with_what_may_stand_there(
    text: str, part: str, message: str, fix: str
) -> None:
    fault = find_cron_fault(text)
    assert fault is not None
    assert fault.part == part and message in fault.message and fix in fault.fix
