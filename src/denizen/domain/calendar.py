"""Calendars and their events, and how people's times are read. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from denizen.domain.errors import InvalidInput
from denizen.domain.record import record

MAX_EVENTS = 100
MAX_GUESTS = 20
DEFAULT_LENGTH = timedelta(hours=1)

Moment = datetime | date
"""A point in time, aware, or a day: an event that lasts whole days has days."""


@record(kw_only=True)
class CalendarInfo:
    """A calendar of the account. `is_default` is the one that is meant when none is named."""

    id: str
    name: str
    is_default: bool = False
    is_writable: bool = True


@record(kw_only=True)
class CalendarEvent:
    """An event, or one time of a recurring one. `end` is the first moment, or the first day, after it."""

    id: str
    title: str
    start: Moment
    end: Moment
    place: str = ""
    text: str = ""
    guests: Sequence[str] = ()
    is_recurring: bool = False


@record(kw_only=True)
class EventDraft:
    """The fields of an event to make. Of a change, None leaves a field as it is; `start` and `end` are given
    together.
    """

    title: str | None = None
    start: Moment | None = None
    end: Moment | None = None
    place: str | None = None
    text: str | None = None
    guests: Sequence[str] | None = None


@record(kw_only=True)
class EventQuery:
    """Events that overlap the time from `since` to `until`; with `words`, those with all of them somewhere."""

    since: datetime
    until: datetime
    words: str = ""
    limit: int = MAX_EVENTS


def read_moment(text: str, zone: tzinfo) -> Moment:
    """Returns the day, or the time, that `text` says in ISO 8601; a time without an offset is one of `zone`. Raises
    InvalidInput.
    """
    text = text.strip()
    try:
        if len(text) == 10:
            return date.fromisoformat(text)
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInput(
            f"'{text[:40]}' is no time.",
            code="calendar_time",
            fix="Write a day such as 2026-12-24, or a time such as 2026-12-24T18:00.",
        ) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)


def read_span(start: str, end: str, zone: tzinfo) -> tuple[Moment, Moment]:
    """Returns when an event begins and ends; without an `end` it lasts an hour, or a day. The last day is given, and
    the one after it is returned. Raises InvalidInput.
    """
    first = read_moment(start, zone)
    last = read_moment(end, zone) if end.strip() else None
    if isinstance(first, datetime):
        # Added in UTC, so that an hour is an hour also when the clocks change.
        last = last or (first.astimezone(UTC) + DEFAULT_LENGTH).astimezone(first.tzinfo)
        is_right = isinstance(last, datetime) and last > first
    else:
        last = last or first
        is_right = not isinstance(last, datetime) and last >= first
        last = last + timedelta(days=1)
    if not is_right:
        raise InvalidInput(
            "The event ends before it begins.",
            code="calendar_time",
            fix="Give two days, or two times, of which the end is the later one.",
        )
    return first, last


def to_instant(moment: Moment, zone: tzinfo) -> datetime:
    """Returns the time; of a day, its beginning in `zone`."""
    return moment if isinstance(moment, datetime) else datetime.combine(moment, time(), zone)


def describe_span(start: Moment, end: Moment, zone: tzinfo) -> str:
    """Returns when an event is, in `zone`."""
    if isinstance(start, datetime):
        first, last = start.astimezone(zone), to_instant(end, zone).astimezone(zone)
        until = f"{last:%H:%M}" if last.date() == first.date() else f"{last:%Y-%m-%d %H:%M}"
        return f"{first:%a %Y-%m-%d %H:%M} to {until}"
    last = end - timedelta(days=1)
    return f"{start:%a %Y-%m-%d}" + (f" to {last:%a %Y-%m-%d}" if last > start else "") + ", all day"


def describe_event(event: CalendarEvent, zone: tzinfo) -> str:
    """Returns the event in a line: when it is in `zone`, its title, and its id."""
    more = [event.place, f"with {', '.join(event.guests)}" if event.guests else "", event.text]
    about = "; ".join(" ".join(each.split())[:300] for each in more if each)
    repeated = ", recurring" if event.is_recurring else ""
    when = describe_span(event.start, event.end, zone)
    return f"{when}: {event.title}{f' ({about})' if about else ''} [id {event.id}{repeated}]"
