"""Times that come again and again, in English words, as cron expressions. Pure, and as strict as `moment`: what no
expression can say is refused, with what was understood of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import time

from denizen.domain.errors import InvalidInput
from denizen.domain.moment import (
    CLOCK,
    CLOCK_AFTER_AT,
    DAY_OF_MONTH,
    MAX_CHARS,
    MONTH,
    WEEKDAY,
    read_clock,
    read_day_number,
    read_month,
    read_weekday,
)

RECURRENCE_FORMS = (
    "every 15 minutes, every 2 hours, every day at 9:00, every weekday at 18:30, every Monday and Thursday at 9, "
    "every Monday to Friday at 9am, every first Monday of the month at 9:00, every month on the 1st at 9:00, "
    "every last day of the month at 17:00, every year on 24 December at 18:00"
)
_SAYS_AGAIN = re.compile(
    r"\b(?:every|hourly|daily|weekly|monthly|yearly|annually|weekdays|weekends|(?:mon|tues|wednes|thurs|fri|satur|sun)"
    r"days|of (?:month|year))\b"
)
_ALIKE = (
    (r"\beach\b", "every"),
    (r"\bthe\b\s*", ""),
    (r"\bof (?:every )?month\b", "of month"),
    (r"\b(?:every month|monthly)(?: on)? (.+)", r"\1 of month"),
    (r"\b(?:every year|yearly|annually)(?: on)? (.+)", r"\1 of year"),
    (r"\b(?:every week|weekly)(?: on)? (.+)", r"every \1"),
    (r"\bdaily\b", "every day"),
    (r"\bhourly\b", "every hour"),
)
"""Forms that say the same, each as the one that is read."""
_AND = r"(?:,? and |, ?)"
_TIMES = rf"(?:at (?P<at>{CLOCK_AFTER_AT}(?:{_AND}{CLOCK_AFTER_AT})*)|(?P<plain>{CLOCK}(?:{_AND}{CLOCK})*))"
_TIMES_LAST = re.compile(rf"(?P<days>.+?),? {_TIMES}")
_TIMES_FIRST = re.compile(rf"{_TIMES},? (?P<days>.+)")
_SPAN = re.compile(r"every (?:(\d{1,4}) )?(minute|hour)s?")
_WEEKDAYS = re.compile(rf"{WEEKDAY}s?(?:{_AND}{WEEKDAY}s?)*")
_WEEKDAY_RANGE = re.compile(rf"({WEEKDAY})s?(?: to | through | ?- ?)({WEEKDAY})s?")
_DAYS_OF_MONTH = re.compile(rf"(?:day )?({DAY_OF_MONTH}(?:{_AND}{DAY_OF_MONTH})*)(?: day)? of month")
_NTH_DAY = re.compile(rf"(first|1st|second|2nd|third|3rd|fourth|4th|last) ({WEEKDAY}|day) of month")
_NTH = {"first": 1, "second": 2, "third": 3, "fourth": 4}
_DATE = re.compile(rf"(?:({DAY_OF_MONTH})(?: of)? ({MONTH})|({MONTH}) ({DAY_OF_MONTH}))(?: of year)?")
_DIVIDED = {"minute": 60, "hour": 24}


def find_recurrence(text: str) -> str | None:
    """Returns the cron expression that these words say; None for words that speak of one time, or of none.

    Raises InvalidInput (`bad_recurrence`) for times that come again but not as an expression can say, and for days
    without a time.
    """
    words = " ".join(text.casefold().split())
    if len(words) > MAX_CHARS:
        return None
    days, times = _split_times(words)
    for pattern, replacement in _ALIKE:
        days = re.sub(pattern, replacement, days)
    if not _SAYS_AGAIN.search(days):
        return None
    if span := _SPAN.fullmatch(days):
        if times:
            raise _refuse(text, "a span has no time of the day", "Take the time out, or write 'every day at ...'.")
        return _plan_span(text, int(span[1] or 1), span[2])
    fields = _read_days(days.removeprefix("every ").removeprefix("on "))
    if fields is None:
        known = f"its days are understood neither as days of the week nor of the month: '{days[:60]}'"
        raise _refuse(text, known, f"Write one of: {RECURRENCE_FORMS}. Or write a cron expression.")
    if not times:
        raise _refuse(text, "it says no time of the day", f"Write '{text.strip()[:60]} at 9:00'.")
    return f"{_write_times(text, times)} {fields}"


def _split_times(words: str) -> tuple[str, str]:
    """Returns the days, and the times of the day, empty where there are none."""
    found = _TIMES_LAST.fullmatch(words) or _TIMES_FIRST.fullmatch(words)
    return (found["days"], found["at"] or found["plain"]) if found else (words, "")


def _plan_span(text: str, number: int, unit: str) -> str:
    """Spans are counted from the full hour, and from midnight, so those that divide them are the only even ones."""
    whole = _DIVIDED[unit]
    if not 0 < number <= whole // 2 or whole % number:
        if (number, unit) == (60, "minute"):
            return "0 * * * *"
        even = ", ".join(str(each) for each in range(1, whole // 2 + 1) if whole % each == 0)
        raise _refuse(text, f"{number} {unit}s do not divide {whole} evenly", f"Write one of: {even} {unit}s.")
    step = "*" if number == 1 else f"*/{number}"
    return f"{step} * * * *" if unit == "minute" else f"0 {step} * * *"


def _read_days(words: str) -> str | None:
    """Returns day of the month, month and weekday as fields of an expression; None for what is none."""
    if words == "day":
        return "* * *"
    if words in ("weekday", "weekdays", "weekend", "weekends"):
        return f"* * {'mon-fri' if words.startswith('weekday') else 'sat,sun'}"
    if _WEEKDAYS.fullmatch(words):
        return f"* * {','.join(_short_day(each) for each in re.split(_AND, words))}"
    if found := _WEEKDAY_RANGE.fullmatch(words):
        first, last = (read_weekday(each) or 0 for each in found.groups())
        numbers = range(first, last + 1 if first <= last else last + 8)
        return f"* * {','.join(str((number + 1) % 7) for number in numbers)}"
    if found := _DAYS_OF_MONTH.fullmatch(words):
        return f"{','.join(str(read_day_number(each)) for each in re.split(_AND, found[1]))} * *"
    if found := _NTH_DAY.fullmatch(words):
        return _plan_nth(found[1], found[2])
    if found := _DATE.fullmatch(words):
        day, month = found[1] or found[4], found[2] or found[3]
        return f"{read_day_number(day)} {read_month(month)} *"
    return None


def _plan_nth(which: str, day: str) -> str:
    if day == "day":
        return "L * *" if which == "last" else f"{_NTH.get(which) or int(which[0])} * *"
    if which == "last":
        return f"* * L{((read_weekday(day) or 0) + 1) % 7}"
    return f"* * {_short_day(day)}#{_NTH.get(which) or int(which[0])}"


def _short_day(word: str) -> str:
    return word[:3]


def _write_times(text: str, words: str) -> str:
    """Returns minute and hour as fields of an expression, which has one minute for all hours."""
    times = _read_times(text, re.split(_AND, words))
    minutes = sorted({each.minute for each in times})
    hours = sorted({each.hour for each in times})
    if len(minutes) > 1 and len(hours) > 1:
        raise _refuse(text, "its times have different minutes", "Write a schedule for each of them.")
    return f"{','.join(map(str, minutes))} {','.join(map(str, hours))}"


def _read_times(text: str, words: Sequence[str]) -> Sequence[time]:
    found: list[time] = []
    for each in words:
        clock = read_clock(each)
        if clock is None:
            raise _refuse(text, f"'{each}' is no time of the day", "Write 9:00, 9am or 18:30.")
        found.append(clock)
    return found


def _refuse(text: str, understood: str, fix: str) -> InvalidInput:
    return InvalidInput(
        f"'{text.strip()[:60]}' comes again and again, but cannot be planned: {understood}.",
        code="bad_recurrence",
        fix=fix,
    )
