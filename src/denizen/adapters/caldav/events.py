"""Events in iCalendar (RFC 5545): reading them, each time of a recurring one, and changing one time or all of them.

A resource of a calendar holds one event: the main component with its rule, and a component for each time that differs
from it, which names by RECURRENCE-ID the time that it replaces. Rules are expanded in the event's own zone, so that
18:00 stays 18:00 when the clocks change.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import islice
from typing import Any, TypeAlias, cast

from denizen.domain.calendar import CalendarEvent, EventDraft, Moment, to_instant
from denizen.domain.errors import InvalidInput, NotFound
from denizen.domain.record import record

Component: TypeAlias = Any
"""A component of icalendar. Only the name of a property tells the type of its value."""

MAX_TIMES = 100_000
"""How many times of one rule are looked through: each day of 270 years."""
PRODUCT = "-//Denizen//Denizen//EN"
_FREQUENCIES = frozenset({"DAILY", "WEEKLY", "MONTHLY", "YEARLY"})
"""Rules that recur more often are shown as their first time: they would take long to expand."""
_ONE_DAY = timedelta(days=1)
_LAST_SECOND = time(23, 59, 59)
_RECURRENCE = ("RRULE", "RDATE", "EXDATE", "EXRULE")


@record(kw_only=True)
class Occurrence:
    """One time of an event. `key` names it within the resource: the time that the rule gives it. It is empty for an
    event that does not recur.
    """

    component: Component
    key: str
    start: Moment
    end: Moment

    def to_event(self, resource: str) -> CalendarEvent:
        """Returns it as people see it; its id is that of the resource with the key."""
        return CalendarEvent(
            id=f"{resource}#{self.key}" if self.key else resource,
            title=_text(self.component, "SUMMARY"),
            start=self.start,
            end=self.end,
            place=_text(self.component, "LOCATION"),
            text=_text(self.component, "DESCRIPTION"),
            guests=tuple(str(each).removeprefix("mailto:").removeprefix("MAILTO:") for each in self._guests()),
            is_recurring=bool(self.key),
        )

    def _guests(self) -> Sequence[object]:
        return _list(self.component.get("ATTENDEE"))


class EventResource:
    """One resource of a calendar. `zone` is that of times that name none. Raises InvalidInput for what is no event."""

    def __init__(self, data: str, zone: tzinfo) -> None:
        from icalendar import Calendar

        with _faults():
            self._calendar: Component = Calendar.from_ical(data)
            self._main, self._changed = self._sort(self._calendar, zone)
        self._zone = zone

    @staticmethod
    def _sort(calendar: Component, zone: tzinfo) -> tuple[Component | None, dict[str, Component]]:
        if calendar.name != "VCALENDAR":
            raise ValueError("it is no calendar")
        main: Component | None = None
        changed: dict[str, Component] = {}
        for each in calendar.walk("VEVENT"):
            if "RECURRENCE-ID" in each:
                changed[_key(each["RECURRENCE-ID"].dt, zone)] = each
            else:
                main = each
        if main is None and not changed:
            raise ValueError("it holds no event")
        return main, changed

    def expand(self, since: datetime, until: datetime) -> list[Occurrence]:
        """Returns the times that overlap the span, without cancelled ones. Raises InvalidInput."""
        with _faults():
            return [
                each
                for each in self._expand(since, until)
                if _overlaps(each, since, until, self._zone) and not _is_cancelled(each)
            ]

    def _expand(self, since: datetime, until: datetime) -> Iterator[Occurrence]:
        yield from (self._describe(component, key) for key, component in self._changed.items())
        if self._main is None:
            return
        first, length = _read_start(self._main, self._zone), _read_length(self._main, self._zone)
        if not self.is_recurring:
            yield self._describe(self._main, "")
            return
        for start in _list_starts(self._main, first, since - length - _ONE_DAY, until + _ONE_DAY, self._zone):
            key = _key(start, self._zone)
            if key not in self._changed:
                yield Occurrence(component=self._main, key=key, start=start, end=_add(start, length))

    @property
    def is_recurring(self) -> bool:
        return self._main is not None and any(name in self._main for name in ("RRULE", "RDATE"))

    def find(self, key: str) -> Occurrence:
        """Returns the time of that key, of a recurring event without a key its first one. Raises NotFound, and
        InvalidInput.
        """
        with _faults():
            if not key and self._main is not None:
                return self._describe(self._main, "")
            if key in self._changed:
                return self._describe(self._changed[key], key)
        at = to_instant(_read_key(key), self._zone)
        for each in self.expand(at - _ONE_DAY, at + _ONE_DAY):
            if each.key == key:
                return each
        raise NotFound("This time of the event is not there.", code="calendar_not_found")

    def change(self, key: str, change: EventDraft, *, now: datetime) -> Occurrence:
        """Changes the time of that key, or the event, and returns it. Raises as `find`."""
        found = self.find(key)
        with _faults():
            component = found.component
            if key and key not in self._changed:
                component = self._add_changed(found)
            write_fields(component, change)
            _mark_changed(component, now)
            self._calendar.add_missing_timezones(*_years(component["DTSTART"].dt))
            return self._describe(component, key)

    def remove(self, key: str, *, now: datetime) -> bool:
        """Takes out the time of that key. False where nothing is left then, or without a key: the resource is to be
        deleted. Raises as `find`.
        """
        found = self.find(key)
        if not key:
            return False
        if key in self._changed:
            self._calendar.subcomponents.remove(self._changed.pop(key))
        if self._main is None:
            return bool(self._changed)
        with _faults():
            self._main.add("EXDATE", self._original_start(key, found))
            _mark_changed(self._main, now)
        return True

    def to_text(self) -> str:
        """Returns the resource as servers take it. Raises InvalidInput."""
        with _faults():
            return self._calendar.to_ical().decode()

    def _describe(self, component: Component, key: str) -> Occurrence:
        start = _read_start(component, self._zone)
        return Occurrence(
            component=component, key=key, start=start, end=_add(start, _read_length(component, self._zone))
        )

    def _add_changed(self, found: Occurrence) -> Component:
        from icalendar import Event

        component: Component = Event.from_ical(found.component.to_ical())
        for name in (*_RECURRENCE, "DTSTART", "DTEND", "DURATION"):
            component.pop(name, None)
        component.add("RECURRENCE-ID", self._original_start(found.key, found))
        write_fields(component, EventDraft(start=found.start, end=found.end))
        self._calendar.add_component(component)
        self._changed[found.key] = component
        return component

    def _original_start(self, key: str, found: Occurrence) -> Moment:
        """Returns the start that the rule gives, in the zone of the event itself."""
        start = _read_key(key)
        main: Any = self._main["DTSTART"].dt if self._main is not None else found.start
        if not isinstance(start, datetime):
            return start
        if main.tzinfo is None:
            return start.astimezone(self._zone).replace(tzinfo=None)
        return start.astimezone(main.tzinfo)


@contextmanager
def _faults() -> Generator[None]:
    """Raises InvalidInput for what the library cannot read. An OSError is that of a zone with the name of a folder."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, OSError) as error:
        raise InvalidInput(
            "This event cannot be read.", code="calendar_event", why=f"{type(error).__name__}: {error}"[:200]
        ) from error


def build_event(uid: str, event: EventDraft, *, organizer: str, now: datetime) -> str:
    """Returns the text of a new resource. The organizer's address is told to guests; empty where it is not known."""
    from icalendar import Calendar, Event

    calendar: Component = Calendar()
    component: Component = Event()
    calendar.add("PRODID", PRODUCT)
    calendar.add("VERSION", "2.0")
    component.add("UID", uid)
    component.add("CREATED", now)
    if organizer and event.guests:
        component.add("ORGANIZER", f"mailto:{organizer}")
    write_fields(component, event)
    _mark_changed(component, now, is_new=True)
    calendar.add_component(component)
    calendar.add_missing_timezones(*_years(component["DTSTART"].dt))
    return calendar.to_ical().decode()


def write_fields(component: Component, change: EventDraft) -> None:
    """Writes the fields that are given."""
    texts = {"SUMMARY": change.title, "LOCATION": change.place, "DESCRIPTION": change.text}
    for name, value in texts.items():
        if value is not None:
            component.pop(name, None)
            if value:
                component.add(name, value)
    if change.start is not None and change.end is not None:
        for name in ("DTSTART", "DTEND", "DURATION"):
            component.pop(name, None)
        component.add("DTSTART", _to_named_zone(change.start))
        component.add("DTEND", _to_named_zone(change.end))
    if change.guests is not None:
        component.pop("ATTENDEE", None)
        for guest in change.guests:
            component.add("ATTENDEE", f"mailto:{guest}", parameters={"RSVP": "TRUE", "PARTSTAT": "NEEDS-ACTION"})


def _list_starts(main: Component, first: Moment, since: datetime, until: datetime, zone: tzinfo) -> Iterator[Moment]:
    """Yields the starts that the rules give between the two times. Rules count in local time."""
    from dateutil.rrule import rrule, rruleset, rrulestr

    local = first if isinstance(first, datetime) else datetime.combine(first, time())
    own_zone, local = local.tzinfo, local.replace(tzinfo=None)
    rules = rruleset()
    if "RRULE" not in main:
        rules.rdate(local)
    for rule in _list(main.get("RRULE")):
        rules.rrule(cast("rrule", rrulestr(_write_rule(rule, own_zone), dtstart=local)))
    for name, add in (("RDATE", rules.rdate), ("EXDATE", rules.exdate)):
        for each in _list(main.get(name)):
            for value in each.dts:
                add(_to_local(value.dt, own_zone, zone))
    begin, end = (_to_local(each, own_zone, zone) for each in (since, until))
    for start in islice(rules, MAX_TIMES):
        if start > end:
            return
        if start >= begin:
            yield start.replace(tzinfo=own_zone) if isinstance(first, datetime) else start.date()


def _write_rule(rule: Mapping[str, Any], zone: tzinfo | None) -> str:
    """Returns the rule in local time; one that recurs too often, or never, has one time."""
    from icalendar import vRecur

    known = {name: value for name, value in rule.items() if name not in {"UNTIL", "WKST"}}
    frequency = str(_list(rule.get("FREQ", ""))[0]).upper()
    if frequency not in _FREQUENCIES or any(int(each) < 1 for each in _list(rule.get("INTERVAL", 1))):
        return "FREQ=DAILY;COUNT=1"
    for last in _list(rule.get("UNTIL")):
        at = last if isinstance(last, datetime) else datetime.combine(last, _LAST_SECOND)
        known["UNTIL"] = [(at.astimezone(zone) if at.tzinfo and zone else at).replace(tzinfo=None)]
    if week := _list(rule.get("WKST")):
        known["WKST"] = week
    return vRecur(known).to_ical().decode()


def _to_local(value: Moment | tuple[Moment, Moment], own_zone: tzinfo | None, zone: tzinfo) -> datetime:
    """Returns the time without a zone, as the event's own zone tells it; of a day or a period its beginning."""
    start = value[0] if isinstance(value, tuple) else value
    if not isinstance(start, datetime):
        return datetime.combine(start, time())
    return start.astimezone(own_zone or zone).replace(tzinfo=None) if start.tzinfo else start


def _read_start(component: Component, zone: tzinfo) -> Moment:
    start = component["DTSTART"].dt
    return start.replace(tzinfo=zone) if isinstance(start, datetime) and start.tzinfo is None else start


def _read_length(component: Component, zone: tzinfo) -> timedelta:
    """Returns how long the event is: to its end, by its duration, or else a day or no time at all."""
    start = _read_start(component, zone)
    if "DTEND" in component:
        end = component["DTEND"].dt
        if isinstance(start, datetime):
            end = to_instant(end if not isinstance(end, datetime) or end.tzinfo else end.replace(tzinfo=zone), zone)
            return max(end.astimezone(UTC) - start.astimezone(UTC), timedelta())
        return max((end.date() if isinstance(end, datetime) else end) - start, _ONE_DAY)
    if "DURATION" in component:
        return max(component["DURATION"].dt, timedelta())
    return timedelta() if isinstance(start, datetime) else _ONE_DAY


def _add(start: Moment, length: timedelta) -> Moment:
    """Adds in UTC, so that an hour is an hour also when the clocks change."""
    if isinstance(start, datetime):
        return (start.astimezone(UTC) + length).astimezone(start.tzinfo)
    return start + length


def _overlaps(each: Occurrence, since: datetime, until: datetime, zone: tzinfo) -> bool:
    start, end = to_instant(each.start, zone), to_instant(each.end, zone)
    return start < until and (end > since or start == end >= since)


def _is_cancelled(each: Occurrence) -> bool:
    return _text(each.component, "STATUS").upper() == "CANCELLED"


def _key(moment: Moment, zone: tzinfo) -> str:
    if not isinstance(moment, datetime):
        return f"{moment:%Y%m%d}"
    aware = moment if moment.tzinfo else moment.replace(tzinfo=zone)
    return f"{aware.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def _read_key(key: str) -> Moment:
    try:
        if len(key) == 8:
            return datetime.strptime(key, "%Y%m%d").date()  # noqa: DTZ007 - a day has no zone
        return datetime.strptime(key, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError as error:
        raise NotFound("This time of the event is not there.", code="calendar_not_found") from error


def _to_named_zone(moment: Moment) -> Moment:
    """Times of a zone that has no name are written in UTC."""
    if not isinstance(moment, datetime):
        return moment
    return moment if getattr(moment.tzinfo, "key", None) else moment.astimezone(UTC)


def _mark_changed(component: Component, now: datetime, *, is_new: bool = False) -> None:
    number = 0 if is_new else int(component.get("SEQUENCE", 0)) + 1
    for name, value in (("SEQUENCE", number), ("DTSTAMP", now), ("LAST-MODIFIED", now)):
        component.pop(name, None)
        component.add(name, value)


def _years(moment: Moment) -> tuple[date, date]:
    """Returns the span for which zones are described: a year before, twenty after."""
    return date(moment.year - 1, 1, 1), date(moment.year + 20, 1, 1)


def _text(component: Component, name: str) -> str:
    found = _list(component.get(name))
    return str(found[0]) if found else ""


def _list(value: Any) -> list[Any]:  # noqa: ANN401 - untyped values of the library
    if value is None:
        return []
    return list(cast("list[Any]", value)) if isinstance(value, list) else [value]
