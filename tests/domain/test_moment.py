"""Moments to come: what is understood, and that nothing is guessed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.errors import InvalidInput
from denizen.domain.moment import FORMS, parse_moment
from tests.clock import NOON

ROME = ZoneInfo("Europe/Rome")


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("in 20 minutes", "2026-11-21T12:20Z"),
        ("In 1 hour", "2026-11-21T13:00Z"),
        ("in an hour", "2026-11-21T13:00Z"),
        ("in 2 hours 30 minutes", "2026-11-21T14:30Z"),
        ("in 2 hours, 30 min", "2026-11-21T14:30Z"),
        ("in 1 day and 2 h", "2026-11-22T14:00Z"),
        ("in 1h30m", "2026-11-21T13:30Z"),
        ("in a week", "2026-11-28T12:00Z"),
        ("today 18:30", "2026-11-21T17:30Z"),
        ("today at 18:30", "2026-11-21T17:30Z"),
        (" tomorrow 9:00 ", "2026-11-22T08:00Z"),
        ("tomorrow 9am", "2026-11-22T08:00Z"),
        ("tomorrow 9:15 PM", "2026-11-22T20:15Z"),
        ("tomorrow 12am", "2026-11-21T23:00Z"),
        ("tomorrow 12 pm", "2026-11-22T11:00Z"),
        ("2026-12-24T18:30", "2026-12-24T17:30Z"),
        ("2026-12-24 18:30", "2026-12-24T17:30Z"),
        ("2026-12-24T18:30:10", "2026-12-24T17:30:10Z"),
        ("2026-12-24T18:30Z", "2026-12-24T18:30Z"),
        ("2026-12-24T18:30-05:00", "2026-12-24T23:30Z"),
        ("2027-06-01T08:00", "2027-06-01T06:00Z"),
        ("in half an hour", "2026-11-21T12:30Z"),
        ("tomorrow at 9", "2026-11-22T08:00Z"),
        ("tomorrow at noon", "2026-11-22T11:00Z"),
        ("the day after tomorrow at 9:00", "2026-11-23T08:00Z"),
        ("in 3 days at 9:00", "2026-11-24T08:00Z"),
        ("in a week at 9am", "2026-11-28T08:00Z"),
        ("friday 9:00", "2026-11-27T08:00Z"),
        ("on Friday at 9", "2026-11-27T08:00Z"),
        ("saturday at 14:00", "2026-11-21T13:00Z"),
        ("saturday at 12:00", "2026-11-28T11:00Z"),
        ("next saturday at 14:00", "2026-11-28T13:00Z"),
        ("next monday at 9:00", "2026-11-23T08:00Z"),
        ("24 December at 18:30", "2026-12-24T17:30Z"),
        ("on December 24th at 6:30pm", "2026-12-24T17:30Z"),
        ("the 3rd of january at 9:00", "2027-01-03T08:00Z"),
        ("1 November 2027 at 9:00", "2027-11-01T08:00Z"),
        ("21 November at 9:00", "2027-11-21T08:00Z"),
        ("2026-12-24 at 18:30", "2026-12-24T17:30Z"),
    ],
)
def test_the_forms_that_are_offered_are_understood_in_the_zone(text: str, moment: str) -> None:
    assert parse_moment(text, now=NOON, zone=ROME) == datetime.fromisoformat(moment)


@pytest.mark.parametrize("text", FORMS.split(", "))
def test_every_form_that_an_error_names_is_one(text: str) -> None:
    assert parse_moment(text, now=NOON, zone=UTC) > NOON


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "tomorrow",
        "tomorrow 9",
        "9:00",
        "at 9:00",
        "monday at",
        "tomorrow at 25",
        "31 november at 9:00",
        "next tomorrow at 9:00",
        "next week",
        "in 5",
        "in 1 month",
        "in 5 mm",
        "2026-12-24",
        "24.12.2026 18:30",
        "12/24/2026 18:30",
        "2026-12-24T18",
        "2026-13-01T10:00",
        "today 25:00",
        "today 18:75",
        "tomorrow 0am",
        "tomorrow 13pm",
        "in 99999 weeks in",
        "in minutes",
        "20 minutes",
        "in -5 minutes",
        "in 5 minutesx",
        "x" * 5000,
        "in " + "1h" * 5000,
        "9999-12-31T23:59-12:00",
        "in 1.5 hours",
    ],
)
def test_what_could_mean_something_else_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_moment(text, now=NOON, zone=ROME)
    assert "tomorrow 9:00" in caught.value.fix
    assert len(caught.value.message) < 200


@pytest.mark.parametrize("text", ["in 0 minutes", "today 9:00", "2026-11-21T12:59", "2020-01-01T00:00"])
def test_what_is_over_is_refused_with_the_time_it_is(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_moment(text, now=NOON, zone=ROME)
    assert "not in the future: it is read as 20" in caught.value.message or text == "in 0 minutes"
    assert "2026-11-21 13:00 (Europe/Rome)" in caught.value.fix


def test_a_day_that_may_be_in_this_week_or_the_next_is_refused_with_both() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_moment("next sunday at 9:00", now=NOON, zone=ROME)
    assert "2026-11-22 or 2026-11-29" in caught.value.message
    assert "sunday at 09:00" in caught.value.fix


@pytest.mark.parametrize(("text", "how"), [("2027-03-28T02:30", "does not come"), ("2027-10-31T02:30", "comes twice")])
def test_a_time_that_the_clocks_show_twice_or_never_is_refused(text: str, how: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_moment(text, now=NOON, zone=ROME)
    assert how in caught.value.message
    assert parse_moment(f"{text}+01:00", now=NOON, zone=ROME).tzinfo is UTC


@given(st.integers(1, 50_000))
def test_spans_are_exact_whatever_the_clocks_do(minutes: int) -> None:
    assert parse_moment(f"in {minutes} minutes", now=NOON, zone=ROME) == NOON + timedelta(minutes=minutes)


@given(st.text(max_size=120))
def test_whatever_is_written_gives_a_moment_to_come_or_a_refusal(text: str) -> None:
    try:
        assert parse_moment(text, now=NOON, zone=ROME) > NOON
    except InvalidInput as error:
        assert error.fix
