"""Sums of usage that keep themselves up, and reports with their price."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest

from denizen.domain.agent import Agent
from denizen.domain.archiving import ArchivePolicy
from denizen.domain.errors import Conflict, InvalidInput, LimitExceeded
from denizen.domain.ids import AgentName
from denizen.domain.rate_limit import DAY_S, RateLimit
from denizen.domain.statistics import FORGOTTEN, SideRequest, UsageGrouping, UsageReport, UsageTotals
from denizen.domain.usage import Usage
from denizen.engine.archive.mirror import ArchiveMirror
from denizen.engine.archive.removal import ArchiveRemoval
from denizen.engine.configuration.generation import Generation, Runtime
from denizen.engine.inspection import statistics
from denizen.engine.inspection.statistics import LOOK_EVERY_S, UsageStatistics
from denizen.testing.scripted_model import ScriptedModel, ScriptedModels
from denizen.testing.temporary_store import TemporaryStore
from tests.clock import NOON, ManualClock

pytestmark = pytest.mark.anyio

REPORT = UsageReport("use_1", "api_key:ann", "sdk", NOON, model="lab/m1", usage=Usage(1000, 10, requests=1))
USED = Usage(7, 3, requests=1)


class StopRunError(Exception):
    """The test has waited as long as it wanted to."""


@dataclass
class StatisticsFixture:
    """Statistics on a memory store; sleeping moves the clock, until it is late enough."""

    clock: ManualClock = field(default_factory=ManualClock)
    store: TemporaryStore = field(default_factory=TemporaryStore)
    runtime: Runtime = field(default_factory=Runtime)
    slept_s: list[float] = field(default_factory=list[float])
    until: datetime = NOON + timedelta(days=999)

    @property
    def statistics(self) -> UsageStatistics:
        return UsageStatistics(self.store, self.clock, self.runtime, sleep=self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)
        self.clock.advance(seconds)
        if self.clock.time >= self.until:
            raise StopRunError

    async def due(self) -> list[date]:
        async with self.store.work() as work:
            return list(await work.statistics.list_due(before=self.clock.time.date()))


@asynccontextmanager
async def open_kit() -> AsyncGenerator[StatisticsFixture]:
    kit, name = StatisticsFixture(), AgentName("ada")
    models = ScriptedModels(ScriptedModel(name="lab/m1", price_usd=(Decimal("0.001"), Decimal("0.001"))))
    await kit.runtime.swap(
        Generation(number=1, agents={name: Agent(name)}, default_agent=name, models=models, toolsets=())
    )
    yield kit
    await kit.runtime.aclose()


async def test_days_on_which_nobody_computed_are_made_up_for_at_once() -> None:
    async with open_kit() as kit:
        await kit.statistics.report(REPORT)
        kit.clock.advance(days=3)
        assert await kit.statistics.catch_up() == [date(2026, 11, day) for day in (21, 22, 23)]
        assert await kit.statistics.catch_up() == []
        assert await kit.due() == []


@pytest.mark.proves("S-data-usage-stats")
async def test_the_server_computes_yesterday_by_itself_soon_after_midnight() -> None:
    async with open_kit() as kit:
        await kit.statistics.report(REPORT)
        kit.until = NOON + timedelta(hours=12, seconds=LOOK_EVERY_S)
        with pytest.raises(StopRunError):
            await kit.statistics.run()
        assert kit.clock.time.date() == date(2026, 11, 22)
        assert await kit.due() == []
        assert await kit.statistics.compute() == (date(2026, 11, 21), 2)


@pytest.mark.proves("S-http-stats-get")
async def test_a_report_costs_what_its_model_costs_where_that_is_configured() -> None:
    async with open_kit() as kit:
        known = await kit.statistics.report(REPORT)
        other = await kit.statistics.report(replace(REPORT, id="use_2", model="lab/m2"))
        found = await kit.statistics.sum_up(1, [UsageGrouping.MODEL])
    assert known.usage.cost_usd == Decimal("1.01")
    assert other.usage.cost_usd is None
    assert {key: used.usage.cost_usd for key, used in found.items()} == {
        ("lab/m1",): Decimal("1.01"),
        ("lab/m2",): None,
    }


async def test_a_report_that_is_sent_again_later_is_the_same_and_another_one_is_refused() -> None:
    async with open_kit() as kit:
        first = await kit.statistics.report(REPORT)
        assert await kit.statistics.report(replace(REPORT, reported_at=NOON + timedelta(hours=1))) == first
        for other in (
            replace(REPORT, source="cli"),
            replace(REPORT, usage=Usage(1, 1, requests=1)),
            replace(REPORT, metadata={"a": 1}),
        ):
            with pytest.raises(Conflict):
                await kit.statistics.report(other)


@pytest.mark.proves("X-rate-limit")
async def test_a_sliding_day_has_room_for_so_many_reports_and_those_sent_twice_or_refused_do_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(statistics, "REPORTS", (RateLimit(3, DAY_S),))

    def report(number: int, *, hours: int) -> UsageReport:
        return replace(REPORT, id=f"use_{number}", reported_at=NOON + timedelta(hours=hours))

    async with open_kit() as kit:
        for number in (0, 1, 1, 2):
            await kit.statistics.report(report(number, hours=number))
        for hours in (3, 23):
            with pytest.raises(LimitExceeded, match="3 reports a day"):
                await kit.statistics.report(report(9, hours=hours))
        await kit.statistics.report(report(9, hours=24))


async def test_a_day_that_is_not_over_is_not_computed() -> None:
    async with open_kit() as kit:
        for day in (NOON.date(), NOON.date() + timedelta(days=1)):
            with pytest.raises(InvalidInput) as raised:
                await kit.statistics.compute(day)
            assert raised.value.code == "day_not_over"


@pytest.mark.parametrize("way", ["forget_user", "opt_out_user"])
async def test_who_is_forgotten_is_in_no_statistics(way: str) -> None:
    async with open_kit() as kit:
        kim, lee = (
            SideRequest(
                agent="ada", user=f"platform_user:discord:{who}", source="discord", model="m", usage=USED, asked_at=NOON
            )
            for who in ("1", "2")
        )
        async with kit.store.work() as work:
            await work.statistics.add_side_request(kim)
            await work.statistics.add_side_request(lee)
        mirror = ArchiveMirror(kit.store, ArchivePolicy, kit.clock)
        await getattr(ArchiveRemoval(mirror, kit.clock), way)("discord", "1")
        found = await kit.statistics.sum_up(1, [UsageGrouping.USER])
        assert (await kit.statistics.get_user_overview(kim.user, 30)).total == UsageTotals()
        top = (await kit.statistics.overview(30)).users or []
    assert set(found) == {(FORGOTTEN,), (lee.user,)}
    assert {row.key: row.name for row in top} == {FORGOTTEN: "", lee.user: "discord:2"}
