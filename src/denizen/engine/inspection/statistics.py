"""Usage: reports of other programs, the sums of days, and overviews of them.

The server keeps the sums up (`run`): those of yesterday once a day, of days on which it was down, and anew of those to
which something came late. Overviews are right without that, but then cost a look at every record. Used by the web, the
command line and `app`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import anyio

from denizen.domain.chat import VoteCount
from denizen.domain.clock import Clock
from denizen.domain.errors import Conflict, InvalidInput, LimitExceeded
from denizen.domain.rate_limit import DAY_S, RateLimit
from denizen.domain.statistics import (
    HOURS,
    DayRange,
    UsageFilter,
    UsageGrouping,
    UsageRanking,
    UsageReport,
    UsageSummary,
    UsageTotals,
    check_report,
    fill_days,
    rank_usage,
)
from denizen.engine.configuration.generation import Runtime
from denizen.engine.intake.rate_limiter import take_rate
from denizen.ports.store import Store, UnitOfWork

REPORTS = (RateLimit(calls=120, window_s=60.0), RateLimit(calls=5000, window_s=DAY_S))
"""The limits of one key: with the longest texts a day's reports are 25 MB."""

TOP_USERS = 10
TOP_NAMES = 100
"""Models and sources: programs that report choose the names."""

LOOK_EVERY_S = 600.0
PAUSE_S = 0.05
"""Between two days, so that others may write."""

_log = logging.getLogger("denizen.statistics")

Sleep = Callable[[float], Awaitable[None]]


class UsageStatistics:
    """`overview` tells of everybody: its callers check who asks."""

    def __init__(self, store: Store, clock: Clock, runtime: Runtime, *, sleep: Sleep = anyio.sleep) -> None:
        self._store = store
        self._clock = clock
        self._runtime = runtime
        self._sleep = sleep

    # --- reports -----------------------------------------------------------------------------------------------------

    async def report(self, report: UsageReport) -> UsageReport:
        """Keeps it, with what it cost where that is known. The same id again changes nothing.

        Raises InvalidInput for what cannot be kept, Conflict for an id that stands for another report, LimitExceeded
        when its reporter has reported too much.
        """
        check_report(report)
        priced = replace(report, usage=replace(report.usage, cost_usd=await self._estimate(report)))
        async with self._store.work() as work:
            known = await work.statistics.find_report(report.id)
            if known is None:
                await _take_rate(work, report)
                await work.statistics.add_report(priced)
        if known is not None and _said(known) != _said(report):
            raise Conflict(
                "This key stands for another report.",
                code="idempotency_conflict",
                why="what was reported with it before differs",
                fix="Send a new Idempotency-Key with each report.",
            )
        return known or priced

    async def _estimate(self, report: UsageReport) -> Decimal | None:
        """By the prices of a configured model of that name."""
        models = self._runtime.current.models
        if report.model not in {model.name for model in models.list_models()}:
            return None
        return await models.get(report.model).estimate_cost_usd(report.usage.input_tokens, report.usage.output_tokens)

    # --- sums of days ------------------------------------------------------------------------------------------------

    async def compute(self, day: date | None = None) -> tuple[date, int]:
        """Sums up a day anew, yesterday by default; tells which, and in how many rows. Raises InvalidInput for one that
        is not over.
        """
        today = self._today()
        chosen = day or today - timedelta(days=1)
        if chosen >= today:
            raise InvalidInput(
                f"{chosen} is not over.",
                code="day_not_over",
                why=f"it is {today} now (UTC), and more may come",
                fix="Choose an earlier day. Statistics of today need nothing to be computed.",
            )
        async with self._store.work() as work:
            return chosen, await work.statistics.compute(chosen, now=self._clock.now())

    async def catch_up(self) -> Sequence[date]:
        """Computes all days that are over and due; tells which. What forgotten people spent in months that are over
        counts for nobody from then on.
        """
        async with self._store.work(write=False) as work:
            due = await work.statistics.list_due(before=self._today())
        for day in due:
            await self.compute(day)
            await self._sleep(PAUSE_S)
        if due:
            async with self._store.work() as work:
                await work.spending.forget_users(now=self._clock.now())
            _log.info("usage computed", extra={"days": len(due), "last": due[-1].isoformat()})
        return due

    async def run(self) -> None:
        """Keeps up, until it is cancelled."""
        while True:
            await self.catch_up()
            await self._sleep(LOOK_EVERY_S)

    # --- overviews ---------------------------------------------------------------------------------------------------

    async def overview(self, days: int, *, source: str = "", model: str = "") -> UsageSummary:
        """Returns the usage of everybody, with those who used most by name."""
        span, chosen = DayRange.last_days(days, now=self._clock.now()), UsageFilter(source=source, model=model)
        async with self._store.work(write=False) as work:
            found = await _overview(work, span, chosen)
            users = rank_usage(await _sums(work, span, UsageGrouping.USER, chosen), limit=TOP_USERS)
            names = await work.statistics.find_names([row.key for row in users])
            hours = await work.statistics.sum_hours(span, source=source, model=model)
            votes = await work.chats.count_votes(since=span.starts_at, until=span.ends_at)
        named = [UsageRanking(row.key, row.used, names.get(row.key, row.key.partition(":")[2])) for row in users]
        feedback = None if source or model else [votes.get(day, VoteCount()) for day in span.days]
        return replace(found, users=named, hourly=fill_days(HOURS, hours), feedback=feedback)

    async def get_user_overview(self, user: str, days: int) -> UsageSummary:
        """Returns the usage of one user, by their principal's key."""
        span = DayRange.last_days(days, now=self._clock.now())
        async with self._store.work(write=False) as work:
            return await _overview(work, span, UsageFilter(user=user))

    async def sum_up(self, days: int, by: Sequence[UsageGrouping]) -> Mapping[tuple[str, ...], UsageTotals]:
        """Sums up the stored usage of everybody."""
        span = DayRange.last_days(days, now=self._clock.now())
        async with self._store.work(write=False) as work:
            return await work.statistics.sum_up(span, by, UsageFilter())

    def _today(self) -> date:
        return self._clock.now().astimezone(UTC).date()


async def _take_rate(work: UnitOfWork, report: UsageReport) -> None:
    excess = await take_rate(work, f"report\x00{report.reporter}", REPORTS, now=report.reported_at)
    if excess is not None:
        span = "day" if excess.limit.window_s == DAY_S else "minute"
        raise LimitExceeded(
            f"That is more than {excess.limit.calls} reports a {span}.",
            code="reports_exhausted",
            why="each report is kept, and nobody may fill the disk",
            fix="Report sums, such as one for each answer or each hour.",
        )


def _said(report: UsageReport) -> UsageReport:
    """Without when it came, and what it was thought to cost then."""
    return replace(report, reported_at=datetime.min.replace(tzinfo=UTC), usage=replace(report.usage, cost_usd=None))


async def _overview(work: UnitOfWork, span: DayRange, chosen: UsageFilter) -> UsageSummary:
    daily = await _sums(work, span, UsageGrouping.DAY, chosen)
    before = await _sums(work, span.before, UsageGrouping.DAY, chosen)
    return UsageSummary(
        span=span,
        total=sum(daily.values(), UsageTotals()),
        before=sum(before.values(), UsageTotals()),
        models=rank_usage(await _sums(work, span, UsageGrouping.MODEL, chosen), limit=TOP_NAMES),
        sources=rank_usage(await _sums(work, span, UsageGrouping.SOURCE, chosen), limit=TOP_NAMES),
        daily=fill_days(span.days, daily),
    )


async def _sums(work: UnitOfWork, span: DayRange, by: UsageGrouping, chosen: UsageFilter) -> Mapping[str, UsageTotals]:
    return {key: used for (key,), used in (await work.statistics.sum_up(span, [by], chosen)).items()}
