"""A period of the past, as people and models write it: `yesterday`, `last week`, `in March`, `since Monday`. Pure.

The dozen of expressions that questions of a community have, in English, and ISO dates; models write everything else as
ISO. Libraries that read more dates also find them in words that mean none, such as `may` and `second`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta, tzinfo

from denizen.domain.errors import InvalidInput
from denizen.domain.record import record

FORMS = "2026-11-01, 2026-11, 2026-11-01T18:30, today, yesterday, last week, 3 days ago, Monday, March, 3 May, 2025"
MAX_CHARS = 60


@record
class Period:
    """From `since` until just before `until`, in UTC; None where it has no bound."""

    since: datetime | None = None
    until: datetime | None = None

    @property
    def is_bounded(self) -> bool:
        return self.since is not None or self.until is not None


@record
class PeriodMention:
    """A period that a text names, and the text without the words that name it."""

    period: Period
    rest: str


def parse_period(since: str, until: str, *, now: datetime, zone: tzinfo) -> Period:
    """Returns the period from the beginning of `since` to the end of `until`, each an expression or empty. `zone` is
    that of days, and of times without an offset.

    Raises InvalidInput for what is none of `FORMS`, and for a period that begins in the future or after its end.
    """
    first, last = _parse_bound(since, now, zone).since, _parse_bound(until, now, zone).until
    if first is not None and first > now:
        raise _refuse(
            f"'{_cut(since)}' is in the future.", f"It is {now.astimezone(zone):%Y-%m-%d %H:%M} ({zone}) now."
        )
    if first is not None and last is not None and first >= last:
        raise _refuse(f"'{_cut(until)}' is before '{_cut(since)}'.", "Exchange the two.")
    return Period(first, last)


def find_period(text: str, *, now: datetime, zone: tzinfo) -> PeriodMention | None:
    """Returns the first period that a sentence names, such as `last week` or `since Monday`; None where there is none.

    Names of days and months alone count only behind a word such as `in`, `on` or `since`.
    """
    line = " ".join(text.split())
    for pattern in (_RANGE, _BOUND, _FREE):
        for found in re.finditer(pattern, line, re.IGNORECASE):
            period = _read_mention(found, now, zone)
            if period is not None and (period.since is None or period.since <= now):
                rest = f"{line[: found.start()]} {line[found.end() :]}"
                return PeriodMention(period, " ".join(rest.split()))
    return None


def _parse_bound(text: str, now: datetime, zone: tzinfo) -> Period:
    given = _PREFIX.sub("", " ".join(text.split()))
    if not given:
        return Period()
    period = _read(given, now, zone) if len(given) <= MAX_CHARS else None
    if period is None:
        raise _refuse(f"'{_cut(text)}' is no time that can be understood.", f"Write one of: {FORMS}.")
    return period


def _read_mention(found: re.Match[str], now: datetime, zone: tzinfo) -> Period | None:
    parts = found.groupdict()
    first = _read(parts["when"] or parts["from"] or "", now, zone)
    if first is None:
        return None
    if parts.get("end"):
        last = _read(parts["end"], now, zone)
        if last is None or first.since is None or last.until is None:
            return None
        return Period(first.since, last.until if first.since < last.until else None)
    match (parts.get("bound") or "").lower():
        case "since":
            return Period(first.since, None)
        case "after":
            return Period(first.until, None)
        case "before":
            return Period(None, first.since)
        case "until" | "till" | "by":
            return Period(None, first.until)
        case _:
            return first


def _read(text: str, now: datetime, zone: tzinfo) -> Period | None:
    """Reads a whole expression; None for anything else, and for what has the form of a day and is none."""
    here = now.astimezone(zone)
    for pattern, read in _EXPRESSIONS:
        if found := re.fullmatch(pattern, text.lower()):
            try:
                first, end = read(found, here)
                return Period(_to_utc(first, zone), _to_utc(end, zone))
            except (ValueError, OverflowError):
                return None
    return None


def _to_utc(when: date, zone: tzinfo) -> datetime:
    """Converts a moment, a local one without an offset, or the beginning of a local day."""
    if not isinstance(when, datetime):
        when = datetime(when.year, when.month, when.day)  # noqa: DTZ001 - local, as below
    return (when if when.tzinfo else when.replace(tzinfo=zone)).astimezone(UTC)


def _refuse(message: str, fix: str) -> InvalidInput:
    return InvalidInput(message, code="bad_period", fix=fix)


def _cut(text: str) -> str:
    return text.strip()[:MAX_CHARS]


# --- expressions: each gives the first day and the day after the last, or two moments --------------------------------

_Span = tuple[date, date]

_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}


def _read_moment(found: re.Match[str], here: datetime) -> _Span:
    del here
    moment = datetime.fromisoformat(found[0].upper())
    return moment, moment


def _read_iso_day(found: re.Match[str], here: datetime) -> _Span:
    del here
    return _day(date.fromisoformat(found[0]))


def _read_iso_month(found: re.Match[str], here: datetime) -> _Span:
    del here
    return _month(int(found["year"]), int(found["month"]))


def _read_near_day(found: re.Match[str], here: datetime) -> _Span:
    """Reads `yesterday evening` as the whole day: people are not exact about the hour."""
    is_today = found[0].startswith(("today", "this"))
    back = 2 if "before" in found[0] else 0 if is_today else 1
    return _day(here.date() - timedelta(days=back))


def _read_whole(found: re.Match[str], here: datetime) -> _Span:
    """Reads `this week`, `last month`: weeks from Monday, whole months and years."""
    return _whole(found["unit"], here.date(), 0 if found["which"] == "this" else 1)


def _read_ago(found: re.Match[str], here: datetime) -> _Span:
    """Reads `3 days ago`: the whole of that day, week, month or year."""
    number = _number(found)
    if found["unit"] == "hour":
        return here - timedelta(hours=number + 1), here - timedelta(hours=number - 1)
    return _whole(found["unit"], here.date(), number)


def _read_until_now(found: re.Match[str], here: datetime) -> _Span:
    """Reads `the last 3 days`: until today, and today too."""
    number, unit, today = _number(found), found["unit"], here.date()
    if unit == "hour":
        return here - timedelta(hours=number), here + timedelta(minutes=1)
    days = {"day": 1, "week": 7, "month": 30, "year": 365}[unit]
    return today - timedelta(days=number * days), today + timedelta(days=1)


def _read_weekday(found: re.Match[str], here: datetime) -> _Span:
    """Reads `Monday`: the latest one. `last Monday` is never today."""
    back = (here.weekday() - _WEEKDAYS.index(found["weekday"][:3])) % 7
    return _day(here.date() - timedelta(days=back or (7 if found["last"] else 0)))


def _read_month(found: re.Match[str], here: datetime) -> _Span:
    """Reads `March 2026`, and `March`: the latest one. `last March` is over."""
    month = _MONTHS.index(found["name"][:3]) + 1
    if found["year"]:
        return _month(int(found["year"]), month)
    is_past = month < here.month or (month == here.month and not found["last"])
    return _month(here.year - (not is_past), month)


def _read_day(found: re.Match[str], here: datetime) -> _Span:
    """Reads `3 May 2026`, and `3 May`: the latest one."""
    month, day = _MONTHS.index(found["name"][:3]) + 1, int(found["day"])
    year = int(found["year"] or here.year)
    if not found["year"] and (month, day) > (here.month, here.day):
        year -= 1
    return _day(date(year, month, day))


def _read_year(found: re.Match[str], here: datetime) -> _Span:
    del here
    return _year(int(found["year"]))


def _number(found: re.Match[str]) -> int:
    text = found["number"] or "1"
    return _NUMBERS.get(text) or int(text)


def _whole(unit: str, today: date, back: int) -> _Span:
    match unit:
        case "day":
            return _day(today - timedelta(days=back))
        case "week":
            first = today - timedelta(days=today.weekday() + 7 * back)
            return first, first + timedelta(days=7)
        case "month":
            years, month = divmod(today.year * 12 + today.month - 1 - back, 12)
            return _month(years, month + 1)
        case _:
            return _year(today.year - back)


def _day(day: date) -> _Span:
    return day, day + timedelta(days=1)


def _month(year: int, month: int) -> _Span:
    first = date(year, month, 1)
    return first, date(year + month // 12, month % 12 + 1, 1)


def _year(year: int) -> _Span:
    return date(year, 1, 1), date(year + 1, 1, 1)


_UNIT = r"(?P<unit>hour|day|week|month|year)s?"
_SOME = rf"(?P<number>[1-9]\d{{0,2}}|{'|'.join(_NUMBERS)})"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_OF_YEAR = rf"(?:,? {_YEAR})?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_HOURS = r"(?:morning|afternoon|evening|night)"
_WEEKDAY = (
    r"(?P<weekday>mon(?:day)?|tue(?:s|sday)?|wed(?:nesday)?|thu(?:rs|rsday)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?)"
)
_MONTH = (
    r"(?P<name>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)


_Read = Callable[[re.Match[str], datetime], _Span]

_CLEAR: tuple[tuple[str, _Read], ...] = (
    (r"\d{4}-\d\d-\d\d[t ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:z|[+-]\d\d:\d\d)?", _read_moment),
    (r"\d{4}-\d\d-\d\d", _read_iso_day),
    (r"(?P<year>\d{4})-(?P<month>\d\d)", _read_iso_month),
    (rf"(?:the )?day before yesterday|yesterday(?: {_HOURS})?|last night|today|this {_HOURS}", _read_near_day),
    (rf"{_SOME} {_UNIT} ago", _read_ago),
    (rf"(?:the )?(?:last|past) {_SOME} {_UNIT}", _read_until_now),
    (rf"(?:the last|(?:the )?past) (?P<number>){_UNIT}", _read_until_now),
    (r"(?P<which>this|last|(?:the )?previous) (?P<unit>week|month|year)", _read_whole),
    (rf"{_DAY} (?:of )?{_MONTH}{_OF_YEAR}", _read_day),
    (rf"{_MONTH} {_DAY}{_OF_YEAR}", _read_day),
    (rf"(?P<last>last) {_WEEKDAY}", _read_weekday),
    (rf"(?P<last>last) {_MONTH}(?P<year>)", _read_month),
    (rf"(?P<last>){_MONTH},? {_YEAR}", _read_month),
)
"""These mean a time wherever they stand."""
_VAGUE: tuple[tuple[str, _Read], ...] = (
    (rf"(?P<last>){_WEEKDAY}", _read_weekday),
    (rf"(?P<last>){_MONTH}(?P<year>)", _read_month),
    (_YEAR, _read_year),
)
# Patterns are texts, which `re` compiles when a question first needs them: that takes 12 ms.
_EXPRESSIONS = (*_CLEAR, *_VAGUE)
_THE = r"(?:the (?!last|past|previous|day before))?"
_PREFIX = re.compile(rf"^(?:(?:in|on|at|during|since|from|after|before|until|till) )?{_THE}", re.IGNORECASE)


def _find_any(expressions: Iterable[tuple[str, _Read]]) -> str:
    """A pattern of any of them, without the names of their groups, which a pattern can have once only."""
    return "|".join(re.sub(r"\(\?P<\w+>", "(?:", text) for text, _ in expressions)


_ANY = _find_any(_EXPRESSIONS)
_EDGE, _END = r"(?<![\w./-])", r"(?![\w/-]|\.\w)"
_RANGE = (
    rf"{_EDGE}(?:between {_THE}(?P<when>{_ANY}) and|from {_THE}(?P<from>{_ANY}) (?:to|till|until))"
    rf" {_THE}(?P<end>{_ANY}){_END}"
)
_BOUND = (
    rf"{_EDGE}(?P<bound>in|on|during|over|within|at|around|since|from|after|(?<!day )before|until|till|by)"
    rf" {_THE}(?P<when>{_ANY}){_END}"
)
_FREE = rf"{_EDGE}(?P<when>{_find_any(_CLEAR)}){_END}"
