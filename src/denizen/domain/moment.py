"""A moment to come, as people and models write it. Pure, and strict: what could mean two moments is refused with the
ways in which it can be written, never guessed.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo

from denizen.domain.errors import InvalidInput

FORMS = "in 20 minutes, in 2 hours 30 minutes, in 3 days, today 18:30, tomorrow 9:00, tomorrow 9am, 2026-12-24T18:30"
MAX_CHARS = 100

_UNITS = {"w": timedelta(weeks=1), "d": timedelta(days=1), "h": timedelta(hours=1), "m": timedelta(minutes=1)}
_AMOUNT = r"(?:\d{1,5}\s*|an?\s+)(?:weeks?|w|days?|d|hours?|hrs?|h|minutes?|mins?|m)(?![a-z])"
_SPAN = re.compile(rf"in\s+{_AMOUNT}(?:(?:\s*,\s*|\s+and\s+|\s*){_AMOUNT})*")
_PIECE = re.compile(r"(?:(\d{1,5})\s*|\ban?\s+)([wdhm])")
_DAY = re.compile(r"(today|tomorrow)\s+(?:at\s+)?(\d{1,2})(?::(\d{2}))?\s*(am|pm)?")
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}[t ]\d{2}:\d{2}.*")


def parse_moment(text: str, *, now: datetime, zone: tzinfo) -> datetime:
    """In UTC, and later than `now`. `zone` is that of days and times without an offset.

    Raises InvalidInput for what is none of `FORMS`, for what is over, and for a time that the clocks of the zone show
    twice or never on that day.
    """
    given = text.strip().casefold()
    try:
        moment = _read(given, now, zone) if len(given) <= MAX_CHARS else None
    except (ValueError, OverflowError):
        moment = None
    if moment is None:
        raise _refuse(f"'{text.strip()[:60]}' is no time that can be understood.", f"Write one of: {FORMS}.")
    if moment <= now:
        raise _refuse(
            f"'{text.strip()[:60]}' is not in the future.", f"It is {now.astimezone(zone):%Y-%m-%d %H:%M} ({zone}) now."
        )
    return moment


def _read(given: str, now: datetime, zone: tzinfo) -> datetime | None:
    """Raises ValueError and OverflowError for what has the form of a moment and is none."""
    if _SPAN.fullmatch(given):
        amounts = ((int(number or 1), unit) for number, unit in _PIECE.findall(given[2:]))
        return now + sum((number * _UNITS[unit] for number, unit in amounts), timedelta())
    if day := _DAY.fullmatch(given):
        return _on_day(day, now.astimezone(zone), zone)
    if _ISO.fullmatch(given):
        moment = datetime.fromisoformat(given.upper())
        return moment.astimezone(UTC) if moment.tzinfo else _from_local(moment, zone)
    return None


def _on_day(day: re.Match[str], here: datetime, zone: tzinfo) -> datetime | None:
    name, hours, minutes, half = day.groups()
    hour = int(hours)
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half == "pm" else 0)
    elif minutes is None:  # `tomorrow 9` may be meant in the evening
        return None
    date = here.date() + timedelta(days=1 if name == "tomorrow" else 0)
    return _from_local(datetime(date.year, date.month, date.day, hour, int(minutes or 0)), zone)  # noqa: DTZ001


def _from_local(local: datetime, zone: tzinfo) -> datetime:
    """Converts the local time of a zone."""
    moment, other = (local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if moment != other:
        is_there = moment.astimezone(zone).replace(tzinfo=None) == local
        how = "comes twice" if is_there else "does not come"
        raise _refuse(
            f"{local:%Y-%m-%d %H:%M} {how} in {zone}, where the clocks change then.",
            "Write it with an offset, such as 2026-12-24T18:30+01:00.",
        )
    return moment


def _refuse(message: str, fix: str) -> InvalidInput:
    return InvalidInput(message, code="bad_moment", fix=fix)
