"""The store's promises about usage: reports, and sums that are the same whether or not a day was computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest

from denizen.domain.conversation import Place
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.statistics import FORGOTTEN, By, Chosen, Report, SideRequest, Span, Used
from denizen.domain.usage import Usage
from denizen.ports.store import Store, UnitOfWork
from denizen.testing.store_records import ANA, NOON, at, open_talk, step_of, turn_of

BO = Principal(PrincipalKind.API_KEY, "\ufdd0bo", "Bo \x00")
FRIDAY, SATURDAY, SUNDAY = date(2026, 11, 20), date(2026, 11, 21), date(2026, 11, 22)
DAYS = Span(FRIDAY, SUNDAY)
ONE = Usage(100, 10, 40, 5, Decimal("0.5"), 1)
REPORT = Report(
    id="use_1", reporter=BO.key, source="github-bot", reported_at=at(1), source_id="issue 7 \ufdd0", model="m2",
    usage=Usage(7, 3, requests=1), duration_ms=250, metadata={"repo": "a/b", "deep": [1, {"x": None}]},
)  # fmt: skip
ASIDE = SideRequest("denizen", ANA.key, "discord", "m3", Usage(11, 1, requests=1), at(2))
WAYS: Sequence[Sequence[By]] = [[By.DAY], [By.USER], [By.SOURCE], [By.MODEL], [By.DAY, By.SOURCE], list(By)]


async def fill(store: Store) -> None:
    """Three turns of two people in two places on two days, of which one asks two models; and what is beside them."""
    _, talk = await open_talk(store)
    _, elsewhere = await open_talk(store, Place("web", "here"))
    first, second = turn_of(talk, "t1"), turn_of(talk, "t2", principal=BO)
    third = turn_of(elsewhere, "t3", principal=replace(ANA, name="Ana B."))
    async with store.work() as work:
        for turn in (first, second, third):
            await work.turns.open(turn)
        for step in (
            step_of(first, 1, usage=ONE),
            step_of(first, 2, usage=ONE, model="m2", hours=0.5),
            step_of(second, 2, usage=Usage(1, requests=1), model="m2", hours=-24),
            step_of(third, 1, usage=ONE, hours=11.9),
        ):
            assert await work.turns.add_step(step)
        assert await work.statistics.add_report(REPORT)
        await work.statistics.add_side_request(ASIDE)


async def sums(store: Store, *by: By, chosen: Chosen | None = None, span: Span = DAYS) -> Mapping[str, Used]:
    async with store.work(write=False) as work:
        found = await work.statistics.sum_up(span, by, chosen or Chosen())
    return {" ".join(key): used for key, used in found.items()}


async def messages(store: Store, *by: By, chosen: Chosen | None = None, span: Span = DAYS) -> dict[str, int]:
    return {key: used.messages for key, used in (await sums(store, *by, chosen=chosen, span=span)).items()}


async def compute(store: Store, *days: date) -> list[int]:
    async with store.work() as work:
        return [await work.statistics.compute(day, now=at(40)) for day in days]


@pytest.mark.anyio
class StatisticsContract:
    @pytest.mark.proves("S-data-api-usage")
    async def test_a_report_is_kept_once_with_all_that_it_says(self, store: Store) -> None:
        async with store.work() as work:
            assert await work.statistics.add_report(REPORT)
            assert not await work.statistics.add_report(replace(REPORT, source="other"))
            assert await work.statistics.add_report(replace(REPORT, id="use_2", reported_at=at(3)))
        async with store.work(write=False) as work:
            assert await work.statistics.find_report("use_1") == REPORT
            assert await work.statistics.find_report("use_3") is None
            assert await work.statistics.count_reports(BO.key, since=at(1)) == 2
            assert await work.statistics.count_reports(BO.key, since=at(2)) == 1
            assert await work.statistics.count_reports(ANA.key, since=at(0)) == 0

    async def test_usage_is_summed_by_every_key_and_a_message_counts_once(self, store: Store) -> None:
        await fill(store)
        assert await messages(store, By.DAY) == {"2026-11-20": 1, "2026-11-21": 3}
        assert await messages(store, By.USER) == {ANA.key: 2, BO.key: 2}
        assert await messages(store, By.SOURCE) == {"discord": 2, "web": 1, "github-bot": 1}
        assert await messages(store, By.MODEL) == {"m1": 2, "m2": 2, "m3": 0}
        of_model = await sums(store, By.MODEL)
        assert of_model["m1"] == Used(2, ONE + ONE, 2468)
        assert of_model["m2"] == Used(2, ONE + REPORT.usage + Usage(1, requests=1), 2718)
        assert of_model["m3"] == Used(0, ASIDE.usage)

    async def test_sums_can_be_those_of_a_user_a_source_a_model_and_of_few_days(self, store: Store) -> None:
        await fill(store)
        for computed in ((), (FRIDAY, SATURDAY)):
            await compute(store, *computed)
            assert await messages(store, By.SOURCE, chosen=Chosen(user=ANA.key)) == {"discord": 1, "web": 1}
            assert await messages(store, By.USER, chosen=Chosen(user=BO.key)) == {BO.key: 2}
            assert await messages(store, By.MODEL, chosen=Chosen(source="discord")) == {"m1": 1, "m2": 1, "m3": 0}
            assert await messages(store, By.DAY, chosen=Chosen(source="web", model="m2")) == {}
            assert await messages(store, By.DAY, span=Span(SATURDAY, SATURDAY)) == {"2026-11-21": 3}
            assert await messages(store, By.DAY, span=Span(SUNDAY, SUNDAY)) == {}

    @pytest.mark.proves("S-data-usage-stats")
    async def test_computing_days_changes_no_sum(self, store: Store) -> None:
        await fill(store)
        before = [await sums(store, *by) for by in WAYS]
        for day in (FRIDAY, SATURDAY, SUNDAY):
            await compute(store, day)
            assert [await sums(store, *by) for by in WAYS] == before

    @pytest.mark.proves("SW9")
    async def test_a_day_that_is_computed_again_has_one_row_a_key(self, store: Store) -> None:
        await fill(store)
        before = [await sums(store, *by) for by in WAYS]
        # Of users: Ana m1 discord, m2 discord, m3 discord, m1 web; Bo m2 github-bot. Of everybody the same five.
        assert await compute(store, SATURDAY, SATURDAY, SATURDAY) == [10, 10, 10]
        assert await compute(store, FRIDAY, FRIDAY) == [2, 2]
        assert [await sums(store, *by) for by in WAYS] == before

    async def test_what_comes_late_is_counted_and_its_day_is_due_again(self, store: Store) -> None:
        await fill(store)
        async with store.work() as work:
            assert list(await work.statistics.list_due(before=SUNDAY)) == [FRIDAY, SATURDAY]
            assert list(await work.statistics.list_due(before=FRIDAY)) == []
        await compute(store, FRIDAY, SATURDAY)
        _, talk = await open_talk(store)

        async def a_step(work: UnitOfWork) -> None:
            await work.turns.add_step(step_of(turn_of(talk, "t1"), 3, hours=-20, usage=ONE))

        async def a_report(work: UnitOfWork) -> None:
            await work.statistics.add_report(replace(REPORT, id="use_9", reported_at=at(-20)))

        async def an_aside(work: UnitOfWork) -> None:
            await work.statistics.add_side_request(replace(ASIDE, asked_at=at(-20)))

        for number, add in enumerate((a_step, a_report, an_aside), 1):
            async with store.work() as work:
                assert list(await work.statistics.list_due(before=SUNDAY)) == []
                await add(work)
                assert list(await work.statistics.list_due(before=SUNDAY)) == [FRIDAY]
            requests = (await sums(store, By.DAY))["2026-11-20"].usage.requests
            assert requests == 1 + number
            await compute(store, FRIDAY)
            assert (await sums(store, By.DAY))["2026-11-20"].usage.requests == requests

    async def test_nothing_is_due_where_nothing_was_used(self, store: Store) -> None:
        async with store.work() as work:
            assert list(await work.statistics.list_due(before=SUNDAY)) == []
        assert await compute(store, SATURDAY) == [0]
        assert await sums(store, By.DAY) == {}

    async def test_usage_is_summed_by_the_hour_of_the_day(self, store: Store) -> None:
        await fill(store)
        for computed in ((), (FRIDAY,), (SATURDAY,)):
            await compute(store, *computed)
            async with store.work(write=False) as work:
                hours = await work.statistics.sum_hours(DAYS)
                of_web = await work.statistics.sum_hours(DAYS, source="web", model="m1")
            assert {hour: used.messages for hour, used in hours.items()} == {"12": 2, "13": 1, "14": 0, "23": 1}
            assert of_web == {"23": Used(1, ONE, 1234)}

    async def test_users_are_named_as_they_were_called_last(self, store: Store) -> None:
        await fill(store)
        async with store.work(write=False) as work:
            found = await work.statistics.find_names([ANA.key, BO.key, "web_user:9"])
        assert found == {ANA.key: "Ana B.", BO.key: BO.name}

    async def test_requests_beside_the_steps_are_in_the_ledger(self, store: Store) -> None:
        await fill(store)
        async with store.work(write=False) as work:
            rows = await work.ledger.list_usage(since=at(-48))
            mine = await work.ledger.list_usage(since=NOON, agent="denizen", principal=ANA.key)
            others = await work.ledger.list_usage(since=NOON, agent="scribe")
        assert [(row.day, row.model, row.usage.requests) for row in rows] == [
            ("2026-11-21", "m1", 2), ("2026-11-21", "m2", 1), ("2026-11-21", "m3", 1), ("2026-11-20", "m2", 1),
        ]  # fmt: skip
        assert [row.model for row in mine] == ["m1", "m2", "m3"]
        assert others == []

    async def test_what_somebody_used_who_is_forgotten_counts_and_tells_of_nobody(self, store: Store) -> None:
        await fill(store)
        total = sum((await sums(store, By.DAY)).values(), Used())
        await compute(store, FRIDAY)
        async with store.work() as work:
            await work.statistics.forget_user(BO.key)
        await compute(store, SATURDAY)
        async with store.work() as work:
            await work.statistics.forget_user(ANA.key)
            await work.statistics.forget_user(FORGOTTEN)
        for computed in ((), (FRIDAY, SATURDAY)):
            await compute(store, *computed)
            assert await messages(store, By.USER) == {FORGOTTEN: 4}
            assert await sums(store, By.DAY, chosen=Chosen(user=ANA.key)) == {}
            assert await messages(store, By.SOURCE) == {"discord": 2, "web": 1, "github-bot": 1}
            assert sum((await sums(store, By.USER)).values(), Used()) == total
        async with store.work(write=False) as work:
            assert await work.statistics.find_names([ANA.key, BO.key, FORGOTTEN]) == {}
            assert await work.statistics.count_reports(BO.key, since=at(0)) == 0
            assert await work.ledger.list_usage(since=at(-48), principal=ANA.key) == []
