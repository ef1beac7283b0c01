"""The times of cron expressions, by croniter, what daylight saving does to them, and what times in words mean.

croniter reckons with the clock on the wall, and this module finds the moments at which it shows a time. A job at 02:30
runs once on the day on which that comes twice (the first time), and at 03:00 on the day on which it does not come.
Expressions for every hour run every hour that passes, so croniter reckons with the zone itself there.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from denizen.domain.errors import InvalidInput
from denizen.domain.moment import FORMS, parse_moment
from denizen.domain.record import record
from denizen.domain.recurrence import RECURRENCE_FORMS, find_recurrence
from denizen.domain.schedule import PlannedTimes

if TYPE_CHECKING:
    from croniter import croniter

_FIELDS = re.compile(r"(?:(?:[0-9*?,/#-]|L|[A-Za-z]{3})+\s+){4}(?:[0-9*?,/#-]|L|[A-Za-z]{3})+|@[a-z]+")
"""Five fields, or a name such as `@daily`. croniter would take seconds and hours by chance, too."""
NAMES = ("@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually")
EXPECTED = "Write minute, hour, day, month and weekday, such as '0 9 * * mon-fri', or a name such as '@daily'."
_PARTS = (
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    ("day", "1 to 31 or L, the last"),
    ("month", "1 to 12 or jan to dec"),
    ("weekday", "0 to 7 or sun to sat"),
)
"""The fields in their order, with their values."""
_LOOKS_LIKE_CRON = re.compile(r"@.*|(?:[0-9*?,/-]+\s+){2}\S.*")
_MINUTE = timedelta(minutes=1)
_LONGEST_JUMP = timedelta(hours=3)
"""No clock is put back or forward by more, but once in a century by a day."""


@record
class CronFault:
    """A fault of an expression: the part that is wrong, a sentence about that part, and the remedy."""

    part: str
    message: str
    fix: str


def find_cron_fault(text: str) -> CronFault | None:
    """Returns why this is no cron expression that comes true some day; None when it is one."""
    from croniter import croniter

    text = text.strip()
    if _FIELDS.fullmatch(text) and croniter.is_valid(text, strict=True):
        return None
    if text.startswith("@"):
        near = difflib.get_close_matches(text.lower(), NAMES, n=1)
        meant = f"Did you mean {near[0]}? " if near else ""
        return CronFault(text, "is no name of times", f"{meant}Known names: {', '.join(NAMES)}.")
    parts = text.split()
    if len(parts) != len(_PARTS):
        has = f"has {len(parts)} field{'' if len(parts) == 1 else 's'}, and five are needed"
        return CronFault(text, has, EXPECTED)
    for position, (part, (name, values)) in enumerate(zip(parts, _PARTS, strict=True)):
        alone = " ".join(part if place == position else "*" for place in range(len(_PARTS)))
        if not (_FIELDS.fullmatch(alone) and croniter.is_valid(alone)):
            return CronFault(part, f"is no {name}", f"Write {values}, a list (1,2), a range (1-5), a step (*/2) or *.")
    return CronFault(text, "never comes true: no month has that day", "Write a day that the month has.")


class CroniterTimes:
    """Implements `denizen.ports.schedules.CronTimes`."""

    def list_after(self, cron: str, zone: str, after: datetime) -> Iterator[datetime]:
        at, latest = ZoneInfo(zone), after
        hourly = _is_hourly(cron)
        start = after.astimezone(at) if hourly else _show(after, at) - _LONGEST_JUMP
        times = _open(cron, start)
        while True:
            moment = _find_moment(times.get_next(datetime), at, is_exact=hourly)
            if moment > latest:
                latest = moment
                yield moment

    def find_latest(self, cron: str, zone: str, until: datetime) -> datetime:
        at, hourly = ZoneInfo(zone), _is_hourly(cron)
        start = until.astimezone(at) + _MINUTE if hourly else _show(until, at) + _LONGEST_JUMP
        times = _open(cron, start)
        while True:
            moment = _find_moment(times.get_prev(datetime), at, is_exact=hourly)
            if moment <= until:
                return moment

    def read(self, text: str, zone: str, now: datetime) -> PlannedTimes:
        try:
            at = ZoneInfo(zone)
        except (KeyError, ValueError, OSError):
            raise _refuse(f"'{zone[:60]}' is no time zone.", "Write a name such as UTC or Europe/Berlin.") from None
        text = text.strip()
        if _LOOKS_LIKE_CRON.fullmatch(text):
            _check_cron(text)
            return PlannedTimes(cron=text)
        if cron := find_recurrence(text):
            _check_cron(cron, said=text)
            return PlannedTimes(cron=cron, words=text)
        try:
            return PlannedTimes(at=parse_moment(text, now=now, zone=at), words=text)
        except InvalidInput as error:
            if error.code != "bad_moment" or FORMS not in error.fix:
                raise
            raise _refuse(
                error.message, f"Write one of: {RECURRENCE_FORMS}; once: {FORMS}; or a cron expression."
            ) from error


def _check_cron(cron: str, *, said: str = "") -> None:
    """Raises InvalidInput where the expression never comes true."""
    if fault := find_cron_fault(cron):
        told = f"'{said[:60]}' ({cron})" if said else f"this is no cron expression: '{fault.part[:60]}'"
        raise _refuse(f"{told} {fault.message}.", fault.fix)


def _refuse(message: str, fix: str) -> InvalidInput:
    return InvalidInput(message, code="schedule_invalid", fix=fix)


def find_moment(written: datetime, zone: ZoneInfo) -> datetime:
    """Returns the moment of a time with an offset, or of one that the clock of the zone shows: the first where it
    shows it twice, and when it has jumped where it never does.
    """
    return written.astimezone(UTC) if written.tzinfo else _find_moment(written, zone, is_exact=False)


def _open(cron: str, start: datetime) -> croniter:
    from croniter import croniter  # only where there are schedules

    return croniter(cron, start)


def _is_hourly(cron: str) -> bool:
    fields = cron.split()
    return fields[0] == "@hourly" or (len(fields) > 1 and fields[1] == "*")


def _show(moment: datetime, zone: ZoneInfo) -> datetime:
    """Returns what the clock on the wall shows."""
    return moment.astimezone(zone).replace(tzinfo=None)


def _find_moment(shown: datetime, zone: ZoneInfo, *, is_exact: bool) -> datetime:
    """Returns when the clock shows that time first, or has passed it by a jump."""
    if is_exact:
        return shown.astimezone(UTC)
    while True:
        moment = shown.replace(tzinfo=zone).astimezone(UTC)
        if _show(moment, zone) == shown:
            return moment
        shown += _MINUTE
