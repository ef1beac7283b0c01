"""Sums of usage: spans of days, ranks, trends, and that the parts come to the whole however it is divided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.errors import InvalidInput
from denizen.domain.json import Json
from denizen.domain.statistics import (
    MAX_METADATA_CHARS,
    DayRange,
    SideRequest,
    UsageFilter,
    UsageGrouping,
    UsageReport,
    UsageTotals,
    change_percent,
    check_report,
    fill_days,
    parse_day,
    rank_usage,
)
from denizen.domain.usage import Usage
from denizen.testing.temporary_store import TemporaryStore
from tests.clock import NOON

SPAN = DayRange(date(2026, 11, 18), date(2026, 11, 21))
REPORT = UsageReport("use_1", "api_key:ann", "sdk", NOON)

names = st.sampled_from(["a", "b", "c"])
usages = st.builds(
    Usage, *[st.integers(0, 10**9)] * 4, st.none() | st.decimals(0, 1000, places=12), st.integers(0, 100)
)
moments = st.integers(0, 4 * 24 * 60 - 1).map(lambda minutes: SPAN.starts_at + timedelta(minutes=minutes))
reports = st.builds(
    UsageReport,
    st.uuids().map(str),
    names.map(lambda name: f"api_key:{name}"),
    names,
    moments,
    model=names,
    usage=usages,
    duration_ms=st.integers(0, 10**6),
)
sides = st.builds(
    SideRequest,
    agent=names,
    user=names.map(lambda name: f"api_key:{name}"),
    source=names,
    model=names,
    usage=usages,
    asked_at=moments,
)


@given(
    st.lists(reports, max_size=12, unique_by=lambda report: report.id),
    st.lists(sides, max_size=6),
    st.lists(st.sampled_from(SPAN.days), max_size=3),
    st.lists(st.sampled_from(UsageGrouping), min_size=1, unique=True),
)
@pytest.mark.proves("S-data-usage-stats")
def test_the_sums_of_any_division_come_to_the_same_total(
    given_reports: Sequence[UsageReport],
    given_sides: Sequence[SideRequest],
    computed: Sequence[str],
    by: Sequence[UsageGrouping],
) -> None:
    async def check() -> None:
        store = TemporaryStore()
        async with store.work() as work:
            for report in given_reports:
                await work.statistics.add_report(report)
            for side in given_sides:
                await work.statistics.add_side_request(side)
            for day in computed:
                await work.statistics.compute(date.fromisoformat(day), now=NOON)
            parts = await work.statistics.sum_up(SPAN, by, UsageFilter())
            hours = await work.statistics.sum_hours(SPAN)
        total = sum((UsageTotals(1, each.usage, each.duration_ms) for each in given_reports), UsageTotals())
        total = sum((UsageTotals(usage=each.usage) for each in given_sides), total)
        assert sum(parts.values(), UsageTotals()) == total
        assert sum(hours.values(), UsageTotals()) == total
        await store.aclose()

    anyio.run(check)


@pytest.mark.parametrize(
    ("days", "first", "before"), [(1, "2026-11-21", "2026-11-20"), (30, "2026-10-23", "2026-09-23")]
)
def test_a_span_ends_today_and_the_one_before_is_as_long(days: int, first: str, before: str) -> None:
    span = DayRange.last_days(days, now=NOON)
    assert (span.first.isoformat(), span.last.isoformat()) == (first, "2026-11-21")
    assert span.before.first.isoformat() == before
    assert len(span.days) == len(span.before.days) == days
    assert span.before.ends_at == span.starts_at
    assert span.ends_at - span.starts_at == timedelta(days=days)


def test_days_and_hours_without_use_are_filled_with_nothing() -> None:
    rows = fill_days(["a", "b"], {"b": UsageTotals(1)})
    assert [(row.key, row.used.messages) for row in rows] == [("a", 0), ("b", 1)]


def test_those_with_most_messages_come_first_then_those_with_most_tokens() -> None:
    sums = {
        "few": UsageTotals(1),
        "big": UsageTotals(2, Usage(9, 9)),
        "small": UsageTotals(2, Usage(1)),
        "also": UsageTotals(2, Usage(1)),
    }
    assert [row.key for row in rank_usage(sums)] == ["big", "also", "small", "few"]
    assert [row.key for row in rank_usage(sums, limit=1)] == ["big"]


@pytest.mark.parametrize(
    ("now", "before", "percent"),
    [
        (3, 2, 50.0),
        (1, 3, -66.7),
        (0, 5, -100.0),
        (5, 0, None),
        (None, 1, None),
        (1, None, None),
        (Decimal("0.3"), Decimal("0.1"), 200.0),
    ],
)
def test_a_change_is_told_in_percent(
    now: int | Decimal | None, before: int | Decimal | None, percent: float | None
) -> None:
    assert change_percent(now, before) == percent


def test_a_report_is_checked_up_to_its_bounds() -> None:
    longest = replace(REPORT, source="x" * 50, metadata={"a": "x" * (MAX_METADATA_CHARS - len('{"a": ""}'))})
    check_report(longest)
    for wrong in (
        replace(REPORT, source=""),
        replace(REPORT, source="x" * 51),
        replace(REPORT, model=""),
        replace(longest, metadata={**longest.metadata, "b": 1}),
        replace(REPORT, duration_ms=-1),
        replace(REPORT, metadata={"a": float("nan")}),
        replace(REPORT, metadata={"a": [float("inf")]}),
        replace(REPORT, metadata={"a": nest_json(100_000)}),
        replace(REPORT, usage=Usage(output_tokens=-1)),
    ):
        with pytest.raises(InvalidInput) as raised:
            check_report(wrong)
        assert raised.value.why
        assert raised.value.fix


def nest_json(levels: int) -> Json:
    value: Json = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "20261121", "2026-W47-6", "2026-11-21T00:00"])
def test_a_day_is_read_as_its_date_or_not_at_all(text: str) -> None:
    assert parse_day("2026-11-21") == date(2026, 11, 21)
    with pytest.raises(InvalidInput):
        parse_day(text)
