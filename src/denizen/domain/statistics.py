"""Usage as people look at it: sums by day, user, source and model, and what other programs report of theirs. Pure.

A day is one of UTC. A source is the platform where a message came in (`web`, `api`, `discord`, `terminal`, ...), or
the name under which a program reported. `ports/usage` reads and writes; `engine/inspection/statistics.py`
puts both together.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum

from denizen.domain.chat import VoteCount
from denizen.domain.errors import InvalidInput
from denizen.domain.json import Json
from denizen.domain.record import record
from denizen.domain.usage import Usage

EVERYBODY = ""
"""In the place of a user: the sum of all. No principal's key is empty."""

FORGOTTEN = "forgotten"
"""In the place of everybody who was forgotten. No principal's key is without a colon."""

UNKNOWN_MODEL = "unknown"
HOURS = tuple(f"{hour:02d}" for hour in range(24))

MAX_SOURCE_CHARS = 50
MAX_NAME_CHARS = 200
"""The limit for a model's name and for the names in a program's report."""
MAX_REPORTED_TOKENS = 1_000_000_000
MAX_DURATION_MS = 7 * 86_400_000
MAX_METADATA_CHARS = 4000


class UsageGrouping(StrEnum):
    """By what usage is told apart."""

    DAY = "day"
    USER = "user"
    SOURCE = "source"
    MODEL = "model"


@record
class UsageTotals:
    """`messages` are those that a model answered, each counted once, and the reports; `duration_ms` is the time that
    the requests took.
    """

    messages: int = 0
    usage: Usage = field(default_factory=Usage)
    duration_ms: int = 0

    def __add__(self, other: UsageTotals) -> UsageTotals:
        return UsageTotals(
            self.messages + other.messages, self.usage + other.usage, self.duration_ms + other.duration_ms
        )


@record
class DayRange:
    """Days, the last one included."""

    first: date
    last: date

    @classmethod
    def last_days(cls, days: int, *, now: datetime) -> DayRange:
        """So many, with today."""
        today = now.astimezone(UTC).date()
        return cls(today - timedelta(days=days - 1), today)

    @property
    def before(self) -> DayRange:
        """As many days, just before."""
        length = self.last - self.first + timedelta(days=1)
        return DayRange(self.first - length, self.last - length)

    @property
    def days(self) -> Sequence[str]:
        return [
            (self.first + timedelta(days=number)).isoformat() for number in range((self.last - self.first).days + 1)
        ]

    @property
    def starts_at(self) -> datetime:
        return datetime.combine(self.first, time(), UTC)

    @property
    def ends_at(self) -> datetime:
        """The first moment after it."""
        return datetime.combine(self.last + timedelta(days=1), time(), UTC)


@record
class UsageFilter:
    """The filter of a sum of usage. `user` is a principal's key, or EVERYBODY; an empty source or model is any."""

    user: str = EVERYBODY
    source: str = ""
    model: str = ""


@record
class UsageReport:
    """Usage that somebody's program reports itself. `reporter` is the key of who reported it."""

    id: str
    reporter: str
    source: str
    reported_at: datetime
    source_id: str = ""
    model: str = UNKNOWN_MODEL
    usage: Usage = field(default_factory=Usage)
    duration_ms: int = 0
    metadata: Mapping[str, Json] = field(default_factory=dict[str, Json])


@record(kw_only=True)
class SideRequest:
    """A request to a model that is no step of a turn: the observer's, one that sums up, one that was broken off.
    `user` is the key of whoever it was for.
    """

    agent: str
    user: str
    source: str
    model: str
    usage: Usage
    asked_at: datetime


def check_report(report: UsageReport) -> None:
    """Raises InvalidInput for what cannot be kept, or would take too much room."""
    _check_text("source", report.source, 1, MAX_SOURCE_CHARS)
    _check_text("source_id", report.source_id, 0, MAX_NAME_CHARS)
    _check_text("model", report.model, 1, MAX_NAME_CHARS)
    _check_count("input_tokens", report.usage.input_tokens, MAX_REPORTED_TOKENS)
    _check_count("output_tokens", report.usage.output_tokens, MAX_REPORTED_TOKENS)
    _check_count("duration_ms", report.duration_ms, MAX_DURATION_MS)
    _check_metadata(report.metadata)


def _check_metadata(metadata: Mapping[str, Json]) -> None:
    try:
        size = len(json.dumps(dict(metadata), ensure_ascii=False, allow_nan=False))
    except (ValueError, RecursionError):
        why = "it has a number that JSON has no word for, or is nested too deeply"
    else:
        if size <= MAX_METADATA_CHARS:
            return
        why = f"it has {size} characters as JSON, and {MAX_METADATA_CHARS} are kept at most"
    raise InvalidInput(
        "The metadata cannot be kept.",
        code="field_invalid",
        why=why,
        fix="Send what tells the reports apart, and keep the rest yourself.",
        field="metadata",
    )


def _check_text(name: str, text: str, least: int, most: int) -> None:
    if least <= len(text) <= most and text.isprintable():
        return
    why = "it has characters that cannot be printed" if least <= len(text) <= most else f"it has {len(text)} characters"
    raise InvalidInput(
        f"'{name}' must have {least} to {most} printable characters.",
        code="field_invalid",
        why=why,
        fix="Send a short name, such as github-bot." if name == "source" else "Shorten it.",
        field=name,
    )


def _check_count(name: str, number: int, most: int) -> None:
    if not 0 <= number <= most:
        raise InvalidInput(
            f"'{name}' must be from 0 to {most}.",
            code="field_invalid",
            why="it is less" if number < 0 else "it is more",
            fix="Report each request, or each answer, by itself.",
            field=name,
        )


@record
class UsageRanking:
    """The usage under one name: a model, a source, a user by their key with the `name` that people know."""

    key: str
    used: UsageTotals
    name: str = ""


@record
class UsageSummary:
    """The usage of some days. `before` is that of as many days just before them. `daily` has every day, `hourly` every
    hour of the day (UTC), in order. Those of one user tell neither `users` nor `hourly`. `feedback` are the votes on
    the answers of each day, in order; None for a filtered sum, since a vote is on an answer, whoever had a part in it.
    """

    span: DayRange
    total: UsageTotals
    before: UsageTotals
    models: Sequence[UsageRanking]
    sources: Sequence[UsageRanking]
    daily: Sequence[UsageRanking]
    users: Sequence[UsageRanking] | None = None
    hourly: Sequence[UsageRanking] | None = None
    feedback: Sequence[VoteCount] | None = None

    @property
    def feedback_score(self) -> float | None:
        """The share of positive votes; None without votes."""
        return sum(self.feedback or (), VoteCount()).score


def rank_usage(sums: Mapping[str, UsageTotals], *, limit: int | None = None) -> list[UsageRanking]:
    """Those with most messages first, then by tokens and name."""

    def order(row: UsageRanking) -> tuple[int, int, str]:
        usage = row.used.usage
        return -row.used.messages, -(usage.input_tokens + usage.output_tokens), row.key

    return sorted((UsageRanking(key, used) for key, used in sums.items()), key=order)[:limit]


def fill_days(keys: Sequence[str], sums: Mapping[str, UsageTotals]) -> list[UsageRanking]:
    """One for each key, in order, also where nothing was used."""
    return [UsageRanking(key, sums.get(key, UsageTotals())) for key in keys]


def change_percent(now: int | Decimal | None, before: int | Decimal | None) -> float | None:
    """How much more it is than before; None where there was nothing to compare with."""
    if not before or now is None:
        return None
    return round(float((Decimal(now) - Decimal(before)) / Decimal(before) * 100), 1)


def parse_day(text: str) -> date:
    """As `2026-11-21`. Raises InvalidInput."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = None
    if day is None or day.isoformat() != text:
        raise InvalidInput(
            f"'{text[:30]}' is no date.",
            code="field_invalid",
            why="a day is named by its date (UTC)",
            fix="Send it as 2026-11-21.",
            field="date",
        )
    return day
