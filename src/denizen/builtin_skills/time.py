"""The date and time, and spans between two times. The time comes from the context's clock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from difflib import get_close_matches
from typing import Annotated
from zoneinfo import ZoneInfo, available_timezones

from denizen.skill import Skill, Tier, ToolContext, ToolError


@dataclass(frozen=True, slots=True)
class TimeSettings:
    """`timezone` is the IANA zone that is meant when none is named."""

    timezone: str = "UTC"

    def __post_init__(self) -> None:
        """Raises ValueError for a zone that does not exist."""
        try:
            _zone(self.timezone)
        except ToolError as error:
            raise ValueError(str(error)) from error


skill = Skill("time", description="The date, the time, and spans of time.", settings=TimeSettings)

Zone = Annotated[str, "IANA name such as Europe/Rome"]
Moment = Annotated[str, "ISO date or date and time, or now"]


@skill.tool(tier=Tier.HARMLESS, read_only=True)
async def current_time(context: ToolContext, timezone: Zone = "") -> str:
    """The date and time now."""
    name = timezone or context.settings(TimeSettings).timezone
    now = context.clock.now().astimezone(_zone(name))
    return f"{now:%A}, {now:%Y-%m-%d %H:%M:%S} {name} (UTC{_offset(now)})"


@skill.tool(tier=Tier.HARMLESS, read_only=True)
async def time_between(context: ToolContext, start: Moment, end: Moment = "now", timezone: Zone = "") -> str:
    """Counts days, hours and minutes between two dates or times; negative when end is earlier."""
    zone = _zone(timezone or context.settings(TimeSettings).timezone)
    now = context.clock.now()
    first, last = (_moment(text, zone, now) for text in (start, end))
    seconds = round((last - first).total_seconds())
    return f"{_span(seconds)} ({seconds} seconds, {seconds / 86_400:.2f} days)"


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        # People say `Rome` and `new york`: zones with that city, or with a similar name, are suggested.
        zones = sorted(available_timezones())
        wanted = name.strip().replace(" ", "_").casefold()
        cities = [zone for zone in zones if zone.casefold().rpartition("/")[2] == wanted]
        near = cities or get_close_matches(name, zones, n=3, cutoff=0.7)
        hint = f"Did you mean {' or '.join(near[:3])}?" if near else "Use an IANA name such as Europe/Rome."
        raise ToolError(f"There is no time zone `{name[:60]}`. {hint}") from error


def _moment(text: str, zone: tzinfo, now: datetime) -> datetime:
    if text.strip().casefold() == "now":
        return now
    try:
        moment = datetime.fromisoformat(text.strip())
        return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ToolError(f"`{text[:60]}` is not a date or time. Write 2026-12-24, 2026-12-24T18:30 or now.") from error


def _offset(moment: datetime) -> str:
    text = f"{moment:%z}"
    return f"{text[:3]}:{text[3:5]}"


def _span(seconds: int) -> str:
    days, rest = divmod(abs(seconds), 86_400)
    hours, rest = divmod(rest, 3600)
    minutes, left = divmod(rest, 60)
    parts = [
        f"{number} {unit}" for number, unit in ((days, "d"), (hours, "h"), (minutes, "min"), (left, "s")) if number
    ]
    return ("-" if seconds < 0 else "") + (" ".join(parts) or "0 s")
