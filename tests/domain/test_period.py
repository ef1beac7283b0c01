"""Periods of the past: which days an expression means, in whose zone, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.errors import InvalidInput
from denizen.domain.period import FORMS, Period, find_period, parse_period

NOW = datetime(2026, 11, 24, 9, 30, tzinfo=UTC)  # a Tuesday
BERLIN = ZoneInfo("Europe/Berlin")


def days(first: str, end: str) -> Period:
    """From the beginning of a day until the beginning of another."""
    return Period(*(datetime.fromisoformat(day).replace(tzinfo=UTC) if day else None for day in (first, end)))


@pytest.mark.parametrize(
    ("text", "first", "end"),
    [
        ("today", "2026-11-24", "2026-11-25"),
        ("yesterday", "2026-11-23", "2026-11-24"),
        ("yesterday evening", "2026-11-23", "2026-11-24"),
        ("last night", "2026-11-23", "2026-11-24"),
        ("this morning", "2026-11-24", "2026-11-25"),
        ("the day before yesterday", "2026-11-22", "2026-11-23"),
        ("this week", "2026-11-23", "2026-11-30"),
        ("last week", "2026-11-16", "2026-11-23"),
        ("last month", "2026-10-01", "2026-11-01"),
        ("last year", "2025-01-01", "2026-01-01"),
        ("in the last week", "2026-11-17", "2026-11-25"),
        ("over the past 3 days", "2026-11-21", "2026-11-25"),
        ("3 days ago", "2026-11-21", "2026-11-22"),
        ("two weeks ago", "2026-11-09", "2026-11-16"),
        ("a month ago", "2026-10-01", "2026-11-01"),
        ("11 months ago", "2025-12-01", "2026-01-01"),
        ("on Monday", "2026-11-23", "2026-11-24"),
        ("on tuesday", "2026-11-24", "2026-11-25"),
        ("last Tuesday", "2026-11-17", "2026-11-18"),
        ("on Wed", "2026-11-18", "2026-11-19"),
        ("in March", "2026-03-01", "2026-04-01"),
        ("in December", "2025-12-01", "2026-01-01"),
        ("in november", "2026-11-01", "2026-12-01"),
        ("last November", "2025-11-01", "2025-12-01"),
        ("in Sept 2024", "2024-09-01", "2024-10-01"),
        ("on 3 May", "2026-05-03", "2026-05-04"),
        ("on the 3rd of May", "2026-05-03", "2026-05-04"),
        ("on May 3rd, 2025", "2025-05-03", "2025-05-04"),
        ("on 25 November", "2025-11-25", "2025-11-26"),
        ("in 2025", "2025-01-01", "2026-01-01"),
        ("2026-11-01", "2026-11-01", "2026-11-02"),
        ("2026-02", "2026-02-01", "2026-03-01"),
        ("since Monday", "2026-11-23", ""),
        ("since the 3rd of May", "2026-05-03", ""),
        ("after 3 May", "2026-05-04", ""),
        ("before last Friday", "", "2026-11-20"),
        ("until yesterday", "", "2026-11-24"),
        ("between 3 May and May 10", "2026-05-03", "2026-05-11"),
        ("from Sunday to Monday", "2026-11-22", "2026-11-24"),
    ],
)
def test_what_people_say_means_whole_days_in_the_past(text: str, first: str, end: str) -> None:
    found = find_period(f"What did they say {text}, by the way?", now=NOW, zone=UTC)
    assert found is not None
    assert found.period == days(first, end)
    assert found.rest == "What did they say , by the way?"


@pytest.mark.parametrize(
    "text",
    [
        "May I?",
        "the second one",
        "sun and moon",
        "next week",
        "on 30 February",
        "see docs/2026-11-01.md",
        "20 of them",
        "tomorrow",
    ],
)
def test_words_that_only_look_like_a_time_are_none(text: str) -> None:
    assert find_period(text, now=NOW, zone=UTC) is None


def test_hours_are_counted_from_now() -> None:
    found = find_period("in the last 2 hours", now=NOW, zone=BERLIN)
    assert found is not None
    assert found.period.since == NOW - timedelta(hours=2)


def test_days_are_those_of_the_zone() -> None:
    late = datetime(2026, 11, 24, 23, 30, tzinfo=UTC)
    found = find_period("today", now=late, zone=BERLIN)
    assert found is not None
    assert found.period.since == datetime(2026, 11, 24, 23, 0, tzinfo=UTC)
    period = parse_period("2026-06-01", "2026-06-01T10:00", now=NOW, zone=BERLIN)
    assert period == Period(datetime(2026, 5, 31, 22, 0, tzinfo=UTC), datetime(2026, 6, 1, 8, 0, tzinfo=UTC))


def test_bounds_are_the_beginning_of_one_and_the_end_of_the_other() -> None:
    assert parse_period("last week", "", now=NOW, zone=UTC) == days("2026-11-16", "")
    assert parse_period("2026-11-01", "yesterday", now=NOW, zone=UTC) == days("2026-11-01", "2026-11-24")
    assert parse_period("since Monday", " ", now=NOW, zone=UTC) == days("2026-11-23", "")
    assert parse_period("", "", now=NOW, zone=UTC) == Period()
    assert parse_period("", "2026-12-31", now=NOW, zone=UTC).until == datetime(2027, 1, 1, tzinfo=UTC)
    offset = parse_period("2026-11-02T12:00:30+02:00", "", now=NOW, zone=BERLIN)
    assert offset.since == datetime(2026, 11, 2, 10, 0, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["soon", "next week", "2026-13-01", "31 June", "the other day", "x" * 500, "99999 days ago"]
)
def test_what_cannot_be_read_is_refused_with_all_that_fits(text: str) -> None:
    for bounds in ((text, ""), ("", text)):
        with pytest.raises(InvalidInput, match="no time that can be understood") as caught:
            parse_period(*bounds, now=NOW, zone=UTC)
        assert FORMS in caught.value.fix


def test_every_form_that_a_refusal_names_fits() -> None:
    for form in FORMS.split(", "):
        assert parse_period(form, "", now=NOW, zone=UTC).since is not None, form


def test_a_period_in_the_future_or_without_any_time_is_refused() -> None:
    with pytest.raises(InvalidInput, match="in the future") as caught:
        parse_period("2026-12-01", "", now=NOW, zone=BERLIN)
    assert "2026-11-24 10:30 (Europe/Berlin)" in caught.value.fix
    with pytest.raises(InvalidInput, match="'3 May' is before 'yesterday'"):
        parse_period("yesterday", "3 May", now=NOW, zone=UTC)


@given(st.text(alphabet="0123456789-:T agoinlstwekmyMarch,", max_size=30), st.datetimes(timezones=st.just(UTC)))
def test_whatever_is_written_is_read_or_refused(text: str, now: datetime) -> None:
    now = now.replace(year=2000 + now.year % 100, day=min(now.day, 28))
    find_period(text, now=now, zone=BERLIN)
    try:
        period = parse_period(text, "", now=now, zone=BERLIN)
    except InvalidInput:
        return
    assert period.since is None or period.since <= now
