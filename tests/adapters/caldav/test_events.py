"""Events of iCalendar: each time of a recurring one, over the change of the clocks, and changes of one of them."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from denizen.adapters.caldav.events import EventResource, build_event
from denizen.domain.calendar import EventDraft
from denizen.domain.errors import InvalidInput, NotFound
from tests.caldav_server import make_event

ROME = ZoneInfo("Europe/Rome")
SINCE, UNTIL = datetime(2026, 10, 1, tzinfo=ROME), datetime(2026, 12, 1, tzinfo=ROME)
NOW = datetime(2026, 11, 1, tzinfo=UTC)
WEEKLY = ("SUMMARY:Tea", "DTSTART;TZID=Europe/Rome:20261013T180000", "DTEND;TZID=Europe/Rome:20261013T190000")


def times(text: str, since: datetime = SINCE, until: datetime = UNTIL) -> list[str]:
    """Returns when the times begin, as a clock in Rome shows it."""
    return [
        f"{each.start.astimezone(ROME):%m-%d %H:%M}" if isinstance(each.start, datetime) else f"{each.start:%m-%d}"
        for each in EventResource(text, ROME).expand(since, until)
    ]


def test_a_weekly_event_stays_at_its_hour_when_the_clocks_change() -> None:
    text = make_event("a", *WEEKLY, "RRULE:FREQ=WEEKLY;COUNT=4")
    assert times(text) == ["10-13 18:00", "10-20 18:00", "10-27 18:00", "11-03 18:00"]
    found = EventResource(text, ROME).expand(SINCE, UNTIL)
    assert [each.start.astimezone(UTC).hour for each in found if isinstance(each.start, datetime)] == [16, 16, 17, 17]
    assert [each.key for each in found] == [
        "20261013T160000Z",
        "20261020T160000Z",
        "20261027T170000Z",
        "20261103T170000Z",
    ]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((*WEEKLY,), ["10-13 18:00"]),
        ((*WEEKLY, "RRULE:FREQ=WEEKLY;UNTIL=20261027T170000Z"), ["10-13 18:00", "10-20 18:00", "10-27 18:00"]),
        ((*WEEKLY, "RRULE:FREQ=WEEKLY;UNTIL=20261027T165959Z"), ["10-13 18:00", "10-20 18:00"]),
        (
            (*WEEKLY, "RRULE:FREQ=WEEKLY;COUNT=3", "EXDATE;TZID=Europe/Rome:20261020T180000"),
            ["10-13 18:00", "10-27 18:00"],
        ),
        ((*WEEKLY, "RDATE;TZID=Europe/Rome:20261101T090000"), ["10-13 18:00", "11-01 09:00"]),
        (
            (
                *WEEKLY,
                "RRULE:FREQ=WEEKLY;COUNT=2",
                "--",
                "SUMMARY:Later",
                "RECURRENCE-ID;TZID=Europe/Rome:20261020T180000",
                "DTSTART;TZID=Europe/Rome:20261122T200000",
                "DTEND;TZID=Europe/Rome:20261122T210000",
            ),
            ["11-22 20:00", "10-13 18:00"],
        ),
        (
            (
                *WEEKLY,
                "RRULE:FREQ=WEEKLY;COUNT=2",
                "--",
                "STATUS:CANCELLED",
                "RECURRENCE-ID:20261020T160000Z",
                "DTSTART:20261020T160000Z",
            ),
            ["10-13 18:00"],
        ),
        (("SUMMARY:Birthday", "DTSTART;VALUE=DATE:19801124", "RRULE:FREQ=YEARLY"), ["11-24"]),
        (("SUMMARY:Trip", "DTSTART;VALUE=DATE:20260920", "DTEND;VALUE=DATE:20261002"), ["09-20"]),
        (("SUMMARY:Trip", "DTSTART;VALUE=DATE:20260920", "DTEND;VALUE=DATE:20261001"), []),
        (("SUMMARY:Floating", "DTSTART:20261101T120000", "DURATION:PT1H"), ["11-01 12:00"]),
        (("SUMMARY:In UTC", "DTSTART:20261101T120000Z", "RRULE:FREQ=DAILY;COUNT=2"), ["11-01 13:00", "11-02 13:00"]),
        (("SUMMARY:Often", "DTSTART:20261101T120000Z", "RRULE:FREQ=SECONDLY"), ["11-01 13:00"]),
        (("SUMMARY:Never", "DTSTART:20261101T120000Z", "RRULE:FREQ=DAILY;INTERVAL=0"), ["11-01 13:00"]),
        (("SUMMARY:Alone", "RECURRENCE-ID:20261101T120000Z", "DTSTART:20261101T130000Z"), ["11-01 14:00"]),
    ],
)
def test_times_are_those_that_the_rules_give(lines: tuple[str, ...], expected: list[str]) -> None:
    assert times(make_event("a", *lines)) == expected


def test_one_time_is_changed_and_the_others_stay() -> None:
    resource = EventResource(make_event("a", *WEEKLY, "RRULE:FREQ=WEEKLY;COUNT=3"), ROME)
    start = datetime(2026, 10, 27, 20, tzinfo=ROME)
    change = EventDraft(title="Late tea", start=start, end=start.replace(hour=21))
    changed = resource.change("20261027T170000Z", change, now=NOW)
    assert (changed.to_event("a.ics").title, changed.to_event("a.ics").id) == ("Late tea", "a.ics#20261027T170000Z")
    text = resource.to_text()
    assert sorted(times(text)) == ["10-13 18:00", "10-20 18:00", "10-27 20:00"]
    again = EventResource(text, ROME)
    again.change("20261027T170000Z", EventDraft(place="Garden"), now=NOW)
    found = again.find("20261027T170000Z").to_event("a.ics")
    assert (found.title, found.place, found.start) == ("Late tea", "Garden", start)
    assert again.to_text().count("BEGIN:VEVENT") == 2
    assert "RECURRENCE-ID;TZID=Europe/Rome:20261027T180000" in again.to_text()


def test_one_time_is_removed_also_one_that_was_changed() -> None:
    resource = EventResource(make_event("a", *WEEKLY, "RRULE:FREQ=WEEKLY;COUNT=3"), ROME)
    resource.change("20261027T170000Z", EventDraft(title="Late tea"), now=NOW)
    assert resource.remove("20261027T170000Z", now=NOW)
    assert resource.remove("20261013T160000Z", now=NOW)
    assert times(resource.to_text()) == ["10-20 18:00"]
    with pytest.raises(NotFound):
        resource.remove("20261027T170000Z", now=NOW)


def test_the_whole_event_is_removed_without_a_key_and_a_changed_time_without_its_event_at_last() -> None:
    assert not EventResource(make_event("a", *WEEKLY), ROME).remove("", now=NOW)
    alone = make_event("a", "SUMMARY:Alone", "RECURRENCE-ID:20261101T120000Z", "DTSTART:20261101T130000Z")
    assert not EventResource(alone, ROME).remove("20261101T120000Z", now=NOW)


def test_a_change_of_the_event_counts_its_sequence_and_empties_what_is_given_empty() -> None:
    resource = EventResource(make_event("a", *WEEKLY, "LOCATION:Garden", "SEQUENCE:4", "DESCRIPTION:x"), ROME)
    days = EventDraft(start=date(2026, 11, 24), end=date(2026, 11, 26), place="", guests=["ben@example.net"])
    found = resource.change("", days, now=NOW).to_event("a.ics")
    assert (found.start, found.end, found.place, found.text) == (date(2026, 11, 24), date(2026, 11, 26), "", "x")
    assert found.guests == ("ben@example.net",)
    assert "SEQUENCE:5" in resource.to_text()


def test_a_new_event_has_its_zone_its_guests_and_its_organizer() -> None:
    start = datetime(2026, 11, 24, 18, tzinfo=ROME)
    draft = EventDraft(title="Чай; at 5, or\n6", start=start, end=start.replace(hour=19), guests=["ben@example.net"])
    text = build_event("uid", draft, organizer="ada@example.org", now=NOW)
    assert "DTSTART;TZID=Europe/Rome:20261124T180000" in text and "BEGIN:VTIMEZONE" in text
    assert "ORGANIZER:mailto:ada@example.org" in text
    [found] = EventResource(text, ZoneInfo("Asia/Tokyo")).expand(SINCE, UNTIL)
    assert (found.to_event("a").title, found.start) == ("Чай; at 5, or\n6", start)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "BEGIN:VCALENDAR\nEND:VCALENDAR\n",
        make_event("a", "SUMMARY:x"),
        make_event("a", "DTSTART:yesterday"),
        make_event("a", "DTSTART;TZID=Europe:20261101T120000"),
    ],
)
def test_what_is_no_event_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        EventResource(text, ROME).expand(SINCE, UNTIL)


LINES = (
    "SUMMARY:Tea",
    "DTSTART;TZID=Europe/Rome:20261013T180000",
    "DTSTART;VALUE=DATE:20261013",
    "DTEND:20261013T170000Z",
    "DURATION:-PT5H",
    "RRULE:FREQ=MONTHLY;BYMONTHDAY=31;COUNT=5",
    "RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
    "RDATE;VALUE=PERIOD:20261101T090000Z/PT1H",
    "EXDATE;VALUE=DATE:20261013",
    "RECURRENCE-ID:20261027T170000Z",
    "SEQUENCE:x",
    "STATUS:CANCELLED",
    "--",
)


@given(st.lists(st.sampled_from(LINES), max_size=8), st.integers(0, 400), st.text(alphabet=":;=,TZ09-\n", max_size=3))
@settings(max_examples=150, deadline=None)
def test_whatever_a_server_sends_is_read_or_refused(lines: list[str], at: int, more: str) -> None:
    text = make_event("a", *lines)
    with suppress(InvalidInput):
        resource = EventResource(text[:at] + more + text[at:], ROME)
        for each in resource.expand(SINCE, UNTIL)[:1]:
            assert each.to_event("a.ics").heading
            resource.change(each.key, EventDraft(title="Coffee"), now=NOW)
            resource.remove(each.key, now=NOW)
            resource.to_text()
