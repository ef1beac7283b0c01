"""A moment to come, as people and models write it. Pure, and strict: what could mean two moments is refused with the
ways in which it can be written, never guessed.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from denizen.domain.errors import InvalidInput

FORMS = (
    "in 20 minutes, in 2 hours 30 minutes, in 3 days, in 3 days at 9:00, today 18:30, tomorrow 9:00, tomorrow at 9, "
    "tomorrow 9am, friday at 9:00, 24 December at 18:30, 2026-12-24T18:30"
)
MAX_CHARS = 100
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
WEEKDAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?"
"""A day of the week, written out or short."""
MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
DAY_OF_MONTH = r"(?:[12]\d|3[01]|[1-9])(?:st|nd|rd|th)?"
CLOCK = r"(?:\d{1,2}:\d{2}\s*(?:am|pm)?|\d{1,2}\s*(?:am|pm)|noon|midnight)"
"""A time of the day that needs no `at` before it."""
CLOCK_AFTER_AT = rf"(?:{CLOCK}|\d{{1,2}})"
"""After `at`, a number alone is an hour of the 24: `at 9` is nine in the morning."""

_UNITS = {"w": timedelta(weeks=1), "d": timedelta(days=1), "h": timedelta(hours=1), "m": timedelta(minutes=1)}
_AMOUNT = r"(?:\d{1,5}\s*|an?\s+)(?:weeks?|w|days?|d|hours?|hrs?|h|minutes?|mins?|m)(?![a-z])"
_SPAN = re.compile(rf"in\s+{_AMOUNT}(?:(?:\s*,\s*|\s+and\s+|\s*){_AMOUNT})*|in\s+half\s+an\s+hour")
_PIECE = re.compile(r"(?:(\d{1,5})\s*|\ban?\s+)([wdhm])")
_TIMED = re.compile(rf"(?P<day>.+?)(?:,?\s+at\s+(?P<at>{CLOCK_AFTER_AT})|,?\s+(?P<plain>{CLOCK}))")
_CLOCK = re.compile(r"(\d{1,2})(?::(\d{2}))?\s*(am|pm)?")
_DAYS_AHEAD = re.compile(r"in\s+(?:(\d{1,3})|an?)\s+(day|week)s?")
_WEEKDAY = re.compile(rf"(?:(?P<which>this|next)\s+|on\s+|this\s+coming\s+)?(?P<weekday>{WEEKDAY})")
_DATE = re.compile(
    rf"(?:on\s+)?(?:the\s+)?(?:(?P<day>{DAY_OF_MONTH})\s+(?:of\s+)?(?P<month>{MONTH})"
    rf"|(?P<month_first>{MONTH})\s+(?P<day_second>{DAY_OF_MONTH}))(?:,?\s+(?P<year>\d{{4}}))?"
)
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}[t ]\d{2}:\d{2}.*")
_ISO_DATE = re.compile(r"(?:on\s+)?(\d{4}-\d{2}-\d{2})")


def parse_moment(text: str, *, now: datetime, zone: tzinfo) -> datetime:
    """In UTC, and later than `now`. `zone` is that of days and times without an offset.

    Raises InvalidInput for what is none of `FORMS`, for what is over, and for a time that the clocks of the zone show
    twice or never on that day.
    """
    given = " ".join(text.casefold().split()) if len(text) <= MAX_CHARS * 2 else ""
    try:
        moment = _read(given, now, zone) if len(given) <= MAX_CHARS else None
    except (ValueError, OverflowError):
        moment = None
    if moment is None:
        raise _refuse(f"'{text.strip()[:60]}' is no time that can be understood.", f"Write one of: {FORMS}.")
    if moment <= now:
        raise _refuse(
            f"'{text.strip()[:60]}' is not in the future: it is read as {moment.astimezone(zone):%Y-%m-%d %H:%M}.",
            f"It is {now.astimezone(zone):%Y-%m-%d %H:%M} ({zone}) now.",
        )
    return moment


def read_clock(text: str) -> time | None:
    """Returns the time of the day that these words say; None where they say none."""
    if text in ("noon", "midnight"):
        return time(12 if text == "noon" else 0)
    found = _CLOCK.fullmatch(text)
    if found is None:
        return None
    hour, minute, half = int(found[1]), int(found[2] or 0), found[3]
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half == "pm" else 0)
    return time(hour, minute) if hour < 24 and minute < 60 else None


def read_weekday(word: str) -> int | None:
    """Returns the number of a day of the week, from Monday, 0, on; None for another word."""
    return next((number for number, name in enumerate(WEEKDAYS) if name[:3] == word[:3]), None)


def read_month(word: str) -> int:
    """Returns the number of a month that `MONTH` matches."""
    return next(number for number, name in enumerate(_MONTHS, 1) if name[:3] == word[:3])


def read_day_number(word: str) -> int:
    """Returns the number of a day that `DAY_OF_MONTH` matches."""
    return int(word.rstrip("stndrh"))


def convert_local(local: datetime, zone: tzinfo) -> datetime:
    """Converts the local time of a zone. Raises InvalidInput for one that comes twice, or never."""
    moment, other = (local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if moment != other:
        is_there = moment.astimezone(zone).replace(tzinfo=None) == local
        how = "comes twice" if is_there else "does not come"
        raise _refuse(
            f"{local:%Y-%m-%d %H:%M} {how} in {zone}, where the clocks change then.",
            "Write it with an offset, such as 2026-12-24T18:30+01:00.",
        )
    return moment


def _read(given: str, now: datetime, zone: tzinfo) -> datetime | None:
    """Raises ValueError and OverflowError for what has the form of a moment and is none."""
    if _SPAN.fullmatch(given):
        if given.endswith("half an hour"):
            return now + timedelta(minutes=30)
        amounts = ((int(number or 1), unit) for number, unit in _PIECE.findall(given[2:]))
        return now + sum((number * _UNITS[unit] for number, unit in amounts), timedelta())
    if _ISO.fullmatch(given):
        moment = datetime.fromisoformat(given.upper())
        return moment.astimezone(UTC) if moment.tzinfo else convert_local(moment, zone)
    if timed := _TIMED.fullmatch(given):
        clock = read_clock(timed["at"] or timed["plain"])
        return _on_day(timed["day"], clock, now.astimezone(zone), zone) if clock else None
    return None


def _on_day(words: str, clock: time, here: datetime, zone: tzinfo) -> datetime | None:
    """Returns the moment at which the clock shows that time on the day that the words name."""

    def find(day: date) -> datetime:
        return convert_local(datetime.combine(day, clock), zone)

    today = here.date()
    if words in ("today", "tomorrow", "the day after tomorrow", "day after tomorrow"):
        ahead = 0 if words == "today" else 1 if words == "tomorrow" else 2
        return find(today + timedelta(days=ahead))
    if found := _DAYS_AHEAD.fullmatch(words):
        return find(today + int(found[1] or 1) * timedelta(days=7 if found[2] == "week" else 1))
    if found := _WEEKDAY.fullmatch(words):
        return find(_find_weekday(found["weekday"], found["which"] or "", clock, here))
    if found := _ISO_DATE.fullmatch(words):
        return find(date.fromisoformat(found[1]))
    if found := _DATE.fullmatch(words):
        month = read_month(found["month"] or found["month_first"])
        number = read_day_number(found["day"] or found["day_second"])
        if found["year"]:
            return find(date(int(found["year"]), month, number))
        this_year = date(today.year, month, number)
        is_over = datetime.combine(this_year, clock) <= here.replace(tzinfo=None)
        return find(date(today.year + 1, month, number) if is_over else this_year)
    return None


def _find_weekday(word: str, which: str, clock: time, here: datetime) -> date:
    """Returns the next such day. Raises InvalidInput for `next friday` where some would mean this week's."""
    number = read_weekday(word) or 0
    ahead = (number - here.weekday()) % 7
    if which == "next" and ahead > 0 and number > here.weekday():
        near, far = (here.date() + timedelta(days=days) for days in (ahead, ahead + 7))
        raise _refuse(
            f"'next {word}' may be {near} or {far}.", f"Write '{word} at {clock:%H:%M}' for the first, or the date."
        )
    if ahead == 0 and (which == "next" or clock <= here.time()):
        return here.date() + timedelta(days=7)
    return here.date() + timedelta(days=ahead)


def _refuse(message: str, fix: str) -> InvalidInput:
    return InvalidInput(message, code="bad_moment", fix=fix)
