"""The usage contract of the store: money spent and reserved, reports whose sums are the same whether or not a day was
computed, and the audit log as one chain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal

import anyio
import pytest

from denizen.domain.audit import AuditEvent, AuditHead, AuditKind, find_chain_fault
from denizen.domain.budget import (
    SERVER,
    BudgetLimit,
    BudgetPeriod,
    BudgetScope,
    BudgetScopeKind,
    BudgetStatus,
    decide_request,
)
from denizen.domain.conversation import Place
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.rate_limit import HOUR_S, RateLimit, RateLimitWait
from denizen.domain.statistics import (
    FORGOTTEN,
    DayRange,
    SideRequest,
    UsageFilter,
    UsageGrouping,
    UsageReport,
    UsageTotals,
)
from denizen.domain.usage import Usage
from denizen.ports.store import AuditSearch, Store, UnitOfWork
from denizen.ports.usage import Reservation, SpendRow
from tests.contracts.store.records import ANA, NOON, USAGE, at, make_step, make_turn, open_conversation

ANA_SCOPE = BudgetScope(BudgetScopeKind.USER, "platform_user:discord:1")
BEN_SCOPE = BudgetScope(BudgetScopeKind.USER, "platform_user:discord:2")
ADA_SCOPE = BudgetScope(BudgetScopeKind.AGENT, "ada")
GENERAL_SCOPE = BudgetScope(BudgetScopeKind.CHANNEL, "discord:10")
GUILD_SCOPE = BudgetScope(BudgetScopeKind.GUILD, "discord:7")
SCOPES = (SERVER, ADA_SCOPE, ANA_SCOPE, GENERAL_SCOPE, GUILD_SCOPE)


def cents(amount: int, *, requests: int = 1) -> Usage:
    return Usage(10, 5, cost_usd=Decimal(amount) / 100, requests=requests)


def make_reservation(
    key: str, amount: int, *, scopes: tuple[BudgetScope, ...] = SCOPES, hours: float = 1
) -> Reservation:
    return Reservation(key, Decimal(amount) / 100, scopes, at(hours))


async def reserve(store: Store, reservation: Reservation, limits: Sequence[BudgetLimit]) -> bool:
    """As the engine does it: lock, look, decide, reserve, in one unit of work."""
    scopes = list(dict.fromkeys(limit.scope for limit in limits))
    async with store.work() as work:
        await work.spending.lock(scopes)
        statuses = await work.spending.read(scopes, now=at(0), besides=reservation.id)
        if decide_request(limits, statuses, reservation.usd, warn_at=Decimal(1)).refused_by is not None:
            return False
        await work.spending.reserve(reservation, now=at(0))
        return True


async def take(store: Store, key: str, now: datetime, *limits: RateLimit) -> RateLimitWait | None:
    async with store.work() as work:
        return await work.rates.take(key, limits, now=now)


@pytest.mark.anyio
class RateContract:
    async def test_all_windows_count_and_a_refused_use_does_not(self, store: Store) -> None:
        limits = RateLimit(2, HOUR_S), RateLimit(3, 10 * HOUR_S)
        waits = [await take(store, "ana", at(hours), *limits) for hours in (0, 0, 0.5, 1, 5)]
        assert waits == [None, None, RateLimitWait(limits[0], HOUR_S / 2), None, RateLimitWait(limits[1], 5 * HOUR_S)]
        assert await take(store, "bob", at(5), *limits) is None
        assert await take(store, "ana", at(10), *limits) is None

    async def test_the_newest_use_can_be_given_back(self, store: Store) -> None:
        async with store.work() as work:
            await work.rates.give_back("ana")
        assert await take(store, "ana", at(0), RateLimit(1, 60)) is None
        async with store.work() as work:
            await work.rates.give_back("ana")
        assert await take(store, "ana", at(0), RateLimit(1, 60)) is None
        assert await take(store, "ana", at(0), RateLimit(1, 60)) is not None

    async def test_the_uses_that_count_are_listed(self, store: Store) -> None:
        for hours in (0, 1):
            await take(store, "ana", at(hours), RateLimit(2, HOUR_S * 10))
        await take(store, "ana", at(2), RateLimit(2, HOUR_S * 10))
        async with store.work(write=False) as work:
            assert await work.rates.list_uses("ana") == [at(0).timestamp(), at(1).timestamp()]
            assert list(await work.rates.list_uses("bob")) == []

    async def test_of_several_units_that_want_the_last_use_at_once_one_gets_it(self, store: Store) -> None:
        waits: list[RateLimitWait | None] = []

        async def want() -> None:
            waits.append(await take(store, "ana", at(0), RateLimit(2, 60)))

        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(want)
        assert waits.count(None) == 2


@pytest.mark.anyio
class SpendingContract:
    async def test_what_is_spent_counts_on_its_day_and_in_its_month_for_each_scope(self, store: Store) -> None:
        async with store.work() as work:
            await work.spending.add([ADA_SCOPE, ANA_SCOPE], cents(5), at=at(0))
            await work.spending.add([ADA_SCOPE], cents(7, requests=2), at=at(1))
            await work.spending.add([ADA_SCOPE], cents(100), at=at(-24 * 10))
            await work.spending.add([ADA_SCOPE], cents(1000), at=at(-24 * 25))
        async with store.work(write=False) as work:
            found = await work.spending.read([ADA_SCOPE, ANA_SCOPE, BEN_SCOPE], now=at(2))
        assert found == {
            ADA_SCOPE: BudgetStatus(Decimal("0.12"), Decimal("1.12"), day_requests=3, month_requests=4),
            ANA_SCOPE: BudgetStatus(Decimal("0.05"), Decimal("0.05"), day_requests=1, month_requests=1),
            BEN_SCOPE: BudgetStatus(),
        }

    async def test_money_of_requests_is_added_exactly_and_an_unknown_cost_stays_unknown(self, store: Store) -> None:
        async with store.work() as work:
            for _ in range(10):
                await work.spending.add([ADA_SCOPE], Usage(1, 2, 3, 4, Decimal("0.000000000001"), 1), at=at(0))
            await work.spending.add([ADA_SCOPE], Usage(1, requests=1), at=at(0))
            await work.spending.add([BEN_SCOPE], Usage(1, requests=1), at=at(0))
            await work.spending.add([BEN_SCOPE], Usage(1, requests=1), at=at(0))
        async with store.work(write=False) as work:
            assert await work.spending.list_spend(BudgetScopeKind.AGENT, since=at(0)) == [
                SpendRow("2026-11-21", ADA_SCOPE, Usage(11, 20, 30, 40, Decimal("0.00000000001"), 11))
            ]
            assert await work.spending.list_spend(BudgetScopeKind.USER, since=at(0)) == [
                SpendRow("2026-11-21", BEN_SCOPE, Usage(2, requests=2))
            ]

    async def test_spend_is_listed_by_kind_the_newest_day_first_from_the_given_day_on(self, store: Store) -> None:
        async with store.work() as work:
            for hours in (0, -24, -48):
                await work.spending.add([BEN_SCOPE, ANA_SCOPE, ADA_SCOPE], cents(1), at=at(hours))
        async with store.work(write=False) as work:
            rows = await work.spending.list_spend(BudgetScopeKind.USER, since=at(-24))
        assert [(row.day, row.scope) for row in rows] == [
            ("2026-11-21", ANA_SCOPE),
            ("2026-11-21", BEN_SCOPE),
            ("2026-11-20", ANA_SCOPE),
            ("2026-11-20", BEN_SCOPE),
        ]

    async def test_a_reservation_counts_in_all_its_scopes_until_it_is_released(self, store: Store) -> None:
        async with store.work() as work:
            await work.spending.reserve(make_reservation("t1:1", 5), now=at(0))
            await work.spending.reserve(make_reservation("t2:1", 3, scopes=(SERVER, ADA_SCOPE, BEN_SCOPE)), now=at(0))
        async with store.work(write=False) as work:
            found = await work.spending.read([*SCOPES, BEN_SCOPE], now=at(0))
            apart = await work.spending.read([ADA_SCOPE], now=at(0), besides="t1:1")
        assert {scope: int(100 * found[scope].reserved_usd) for scope in found} == {
            SERVER: 8,
            ADA_SCOPE: 8,
            ANA_SCOPE: 5,
            GENERAL_SCOPE: 5,
            GUILD_SCOPE: 5,
            BEN_SCOPE: 3,
        }
        assert apart[ADA_SCOPE].reserved_usd == Decimal("0.03")
        async with store.work() as work:
            await work.spending.release("t1:1")
            await work.spending.release("t1:1")
        async with store.work(write=False) as work:
            found = await work.spending.read([SERVER, ANA_SCOPE], now=at(0))
        assert [found[scope].reserved_usd for scope in (SERVER, ANA_SCOPE)] == [Decimal("0.03"), Decimal(0)]

    @pytest.mark.proves("X-storage")
    async def test_a_reservation_expires_and_the_same_one_again_takes_its_place(self, store: Store) -> None:
        async with store.work() as work:
            await work.spending.reserve(make_reservation("t1:1", 5), now=at(0))
            await work.spending.reserve(make_reservation("t1:1", 9, hours=2), now=at(0))
        async with store.work(write=False) as work:
            assert (await work.spending.read([ADA_SCOPE], now=at(1)))[ADA_SCOPE].reserved_usd == Decimal("0.09")
            assert (await work.spending.read([ADA_SCOPE], now=at(2)))[ADA_SCOPE].reserved_usd == 0
        async with store.work() as work:
            await work.spending.reserve(make_reservation("t2:1", 1, hours=9), now=at(3))
            # What had expired is gone, even for one whose clock is behind.
            assert (await work.spending.read([ADA_SCOPE], now=at(0)))[ADA_SCOPE].reserved_usd == Decimal("0.01")

    async def test_of_many_who_reserve_at_once_only_as_many_get_through_as_fit(self, store: Store) -> None:
        limits = [
            BudgetLimit(SERVER, BudgetPeriod.DAY, Decimal("0.30")),
            BudgetLimit(ADA_SCOPE, BudgetPeriod.MONTH, Decimal(1)),
        ]
        async with store.work() as work:
            await work.spending.add([SERVER], cents(5), at=at(0))
        passed: list[bool] = []

        async def ask(number: int) -> None:
            passed.append(await reserve(store, make_reservation(f"t{number}:1", 10), limits))

        async with anyio.create_task_group() as tasks:
            for number in range(8):
                tasks.start_soon(ask, number)
        assert sorted(passed) == [False] * 6 + [True] * 2

    async def test_a_unit_that_fails_has_reserved_and_spent_nothing(self, store: Store) -> None:
        async def fail() -> None:
            async with store.work() as work:
                await work.spending.lock([ADA_SCOPE])
                await work.spending.reserve(make_reservation("t1:1", 5), now=at(0))
                await work.spending.add([ADA_SCOPE], cents(5), at=at(0))
                assert await work.spending.note_warning(ADA_SCOPE, day="2026-11-21")
                raise LookupError

        with pytest.raises(LookupError):
            await fail()
        async with store.work() as work:
            assert await work.spending.read([ADA_SCOPE], now=at(0)) == {ADA_SCOPE: BudgetStatus()}
            assert await work.spending.note_warning(ADA_SCOPE, day="2026-11-21")

    async def test_a_scope_is_warned_once_a_day(self, store: Store) -> None:
        told: list[bool] = []
        for day in ("2026-11-21", "2026-11-21", "2026-11-22"):
            async with store.work() as work:
                told.append(await work.spending.note_warning(ADA_SCOPE, day=day))
        assert told == [True, False, True]

    async def test_what_somebody_spent_who_is_forgotten_is_nobodys_once_the_month_is_over(self, store: Store) -> None:
        bo, ana = (BudgetScope(BudgetScopeKind.USER, f"platform_user:{number}") for number in (1, 2))
        november, december = at(0), at(24 * 15)

        async def rows() -> dict[tuple[str, str], Decimal | None]:
            async with store.work(write=False) as work:
                found = await work.spending.list_spend(BudgetScopeKind.USER, since=at(-24 * 90))
            return {(row.scope.key, row.day): row.usage.cost_usd for row in found}

        async with store.work() as work:
            for days in (-30, -31):
                await work.spending.add([ADA_SCOPE, bo, ana], cents(5), at=at(24 * days))
            await work.spending.add([bo, ana], cents(2), at=november)
            await work.spending.forget_users(bo.key, now=november)
            await work.spending.forget_users(ana.key, FORGOTTEN, now=november)
            await work.spending.add([bo], cents(1), at=at(24))
        assert await rows() == {
            (FORGOTTEN, "2026-10-21"): Decimal("0.1"),
            (FORGOTTEN, "2026-10-22"): Decimal("0.1"),
            (bo.key, "2026-11-21"): Decimal("0.02"),
            (bo.key, "2026-11-22"): Decimal("0.01"),
            (ana.key, "2026-11-21"): Decimal("0.02"),
        }
        async with store.work() as work:
            assert (await work.spending.read([bo], now=at(24)))[bo].month_usd == Decimal("0.03")
            await work.spending.add([bo], cents(4), at=december)
            await work.spending.forget_users(now=december)
            await work.spending.forget_users(now=at(24 * 80))
        assert (await rows()).items() >= {
            (FORGOTTEN, "2026-11-21"): Decimal("0.04"),
            (bo.key, "2026-11-22"): Decimal("0.01"),
            (bo.key, "2026-12-06"): Decimal("0.04"),
        }.items()
        assert (ana.key, "2026-11-21") not in await rows()

    async def test_a_step_that_is_written_again_says_that_it_is_not_new(self, store: Store) -> None:
        _, session = await open_conversation(store)
        step = make_step(make_turn(session, "t1"), 1)
        async with store.work() as work:
            await work.turns.open(make_turn(session, "t1"))
            assert await work.turns.add_step(step)
            assert not await work.turns.add_step(replace(step, model="other"))
        async with store.work() as work:
            assert not await work.turns.add_step(step)
            assert await work.turns.add_step(make_step(make_turn(session, "t1"), 2, usage=USAGE))

    async def test_texts_of_any_kind_are_keys_of_scopes(self, store: Store) -> None:
        odd = BudgetScope(BudgetScopeKind.USER, "api_key:\x00 \ud83d ё'\"")
        async with store.work() as work:
            await work.spending.lock([odd])
            await work.spending.add([odd], cents(5), at=at(0))
            await work.spending.reserve(make_reservation("t1:1", 2, scopes=(odd,)), now=at(0) - timedelta(hours=1))
        async with store.work(write=False) as work:
            found = await work.spending.read([odd], now=at(0))
            (row,) = await work.spending.list_spend(BudgetScopeKind.USER, since=at(0))
        assert (found[odd].day_usd, found[odd].reserved_usd) == (Decimal("0.05"), Decimal("0.02"))
        assert row.scope == odd


BO = Principal(PrincipalKind.API_KEY, "\ufdd0bo", "Bo \x00")
FRIDAY, SATURDAY, SUNDAY = date(2026, 11, 20), date(2026, 11, 21), date(2026, 11, 22)
DAYS = DayRange(FRIDAY, SUNDAY)
ONE = Usage(100, 10, 40, 5, Decimal("0.5"), 1)
REPORT = UsageReport(
    id="use_1",
    reporter=BO.key,
    source="github-bot",
    reported_at=at(1),
    source_id="issue 7 \ufdd0",
    model="m2",
    usage=Usage(7, 3, requests=1),
    duration_ms=250,
    metadata={"repo": "a/b", "deep": [1, {"x": None}]},
)
SIDE_REQUEST = SideRequest(
    agent="denizen", user=ANA.key, source="discord", model="m3", usage=Usage(11, 1, requests=1), asked_at=at(2)
)
WAYS: Sequence[Sequence[UsageGrouping]] = [
    [UsageGrouping.DAY],
    [UsageGrouping.USER],
    [UsageGrouping.SOURCE],
    [UsageGrouping.MODEL],
    [UsageGrouping.DAY, UsageGrouping.SOURCE],
    list(UsageGrouping),
]


async def fill_statistics(store: Store) -> None:
    """Three turns of two people in two places on two days, of which one asks two models; and what is beside them."""
    _, talk = await open_conversation(store)
    _, elsewhere = await open_conversation(store, Place("web", "here"))
    first, second = make_turn(talk, "t1"), make_turn(talk, "t2", principal=BO)
    third = make_turn(elsewhere, "t3", principal=replace(ANA, name="Ana B."))
    async with store.work() as work:
        for turn in (first, second, third):
            await work.turns.open(turn)
        for step in (
            make_step(first, 1, usage=ONE),
            make_step(first, 2, usage=ONE, model="m2", hours=0.5),
            make_step(second, 2, usage=Usage(1, requests=1), model="m2", hours=-24),
            make_step(third, 1, usage=ONE, hours=11.9),
        ):
            assert await work.turns.add_step(step)
        assert await work.statistics.add_report(REPORT)
        await work.statistics.add_side_request(SIDE_REQUEST)


async def get_sums(
    store: Store, *by: UsageGrouping, chosen: UsageFilter | None = None, span: DayRange = DAYS
) -> Mapping[str, UsageTotals]:
    async with store.work(write=False) as work:
        found = await work.statistics.sum_up(span, by, chosen or UsageFilter())
    return {" ".join(key): used for key, used in found.items()}


async def count_messages(
    store: Store, *by: UsageGrouping, chosen: UsageFilter | None = None, span: DayRange = DAYS
) -> dict[str, int]:
    return {key: used.messages for key, used in (await get_sums(store, *by, chosen=chosen, span=span)).items()}


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
            assert await work.statistics.find_report("use_2") == replace(REPORT, id="use_2", reported_at=at(3))
            assert await work.statistics.find_report("use_3") is None

    @pytest.mark.proves("S-data-usage-stats")
    async def test_usage_is_summed_by_every_key_and_a_message_counts_once(self, store: Store) -> None:
        await fill_statistics(store)
        assert await count_messages(store, UsageGrouping.DAY) == {"2026-11-20": 1, "2026-11-21": 3}
        assert await count_messages(store, UsageGrouping.USER) == {ANA.key: 2, BO.key: 2}
        assert await count_messages(store, UsageGrouping.SOURCE) == {"discord": 2, "web": 1, "github-bot": 1}
        assert await count_messages(store, UsageGrouping.MODEL) == {"m1": 2, "m2": 2, "m3": 0}
        of_model = await get_sums(store, UsageGrouping.MODEL)
        assert of_model["m1"] == UsageTotals(2, ONE + ONE, 2468)
        assert of_model["m2"] == UsageTotals(2, ONE + REPORT.usage + Usage(1, requests=1), 2718)
        assert of_model["m3"] == UsageTotals(0, SIDE_REQUEST.usage)

    async def test_sums_can_be_those_of_a_user_a_source_a_model_and_of_few_days(self, store: Store) -> None:
        await fill_statistics(store)
        for computed in ((), (FRIDAY, SATURDAY)):
            await compute(store, *computed)
            assert await count_messages(store, UsageGrouping.SOURCE, chosen=UsageFilter(user=ANA.key)) == {
                "discord": 1,
                "web": 1,
            }
            assert await count_messages(store, UsageGrouping.USER, chosen=UsageFilter(user=BO.key)) == {BO.key: 2}
            assert await count_messages(store, UsageGrouping.MODEL, chosen=UsageFilter(source="discord")) == {
                "m1": 1,
                "m2": 1,
                "m3": 0,
            }
            assert await count_messages(store, UsageGrouping.DAY, chosen=UsageFilter(source="web", model="m2")) == {}
            assert await count_messages(store, UsageGrouping.DAY, span=DayRange(SATURDAY, SATURDAY)) == {
                "2026-11-21": 3
            }
            assert await count_messages(store, UsageGrouping.DAY, span=DayRange(SUNDAY, SUNDAY)) == {}

    @pytest.mark.proves("S-data-usage-stats")
    async def test_computing_days_changes_no_sum(self, store: Store) -> None:
        await fill_statistics(store)
        before = [await get_sums(store, *by) for by in WAYS]
        for day in (FRIDAY, SATURDAY, SUNDAY):
            await compute(store, day)
            assert [await get_sums(store, *by) for by in WAYS] == before

    @pytest.mark.proves("SW9", "S-data-usage-stats")
    async def test_a_day_that_is_computed_again_has_one_row_a_key(self, store: Store) -> None:
        await fill_statistics(store)
        before = [await get_sums(store, *by) for by in WAYS]
        # Of users: Ana m1 discord, m2 discord, m3 discord, m1 web; Bo m2 github-bot. Of everybody the same five.
        assert await compute(store, SATURDAY, SATURDAY, SATURDAY) == [10, 10, 10]
        assert await compute(store, FRIDAY, FRIDAY) == [2, 2]
        assert [await get_sums(store, *by) for by in WAYS] == before

    async def test_what_comes_late_is_counted_and_its_day_is_due_again(self, store: Store) -> None:
        await fill_statistics(store)
        async with store.work() as work:
            assert list(await work.statistics.list_due(before=SUNDAY)) == [FRIDAY, SATURDAY]
            assert list(await work.statistics.list_due(before=FRIDAY)) == []
        await compute(store, FRIDAY, SATURDAY)
        _, talk = await open_conversation(store)

        async def a_step(work: UnitOfWork) -> None:
            await work.turns.add_step(make_step(make_turn(talk, "t1"), 3, hours=-20, usage=ONE))

        async def a_report(work: UnitOfWork) -> None:
            await work.statistics.add_report(replace(REPORT, id="use_9", reported_at=at(-20)))

        async def an_aside(work: UnitOfWork) -> None:
            await work.statistics.add_side_request(replace(SIDE_REQUEST, asked_at=at(-20)))

        for number, add in enumerate((a_step, a_report, an_aside), 1):
            async with store.work() as work:
                assert list(await work.statistics.list_due(before=SUNDAY)) == []
                await add(work)
                assert list(await work.statistics.list_due(before=SUNDAY)) == [FRIDAY]
            requests = (await get_sums(store, UsageGrouping.DAY))["2026-11-20"].usage.requests
            assert requests == 1 + number
            await compute(store, FRIDAY)
            assert (await get_sums(store, UsageGrouping.DAY))["2026-11-20"].usage.requests == requests

    async def test_nothing_is_due_where_nothing_was_used(self, store: Store) -> None:
        async with store.work() as work:
            assert list(await work.statistics.list_due(before=SUNDAY)) == []
        assert await compute(store, SATURDAY) == [0]
        assert await get_sums(store, UsageGrouping.DAY) == {}

    async def test_usage_is_summed_by_the_hour_of_the_day(self, store: Store) -> None:
        await fill_statistics(store)
        for computed in ((), (FRIDAY,), (SATURDAY,)):
            await compute(store, *computed)
            async with store.work(write=False) as work:
                hours = await work.statistics.sum_hours(DAYS)
                of_web = await work.statistics.sum_hours(DAYS, source="web", model="m1")
            assert {hour: used.messages for hour, used in hours.items()} == {"12": 2, "13": 1, "14": 0, "23": 1}
            assert of_web == {"23": UsageTotals(1, ONE, 1234)}

    async def test_users_are_named_as_they_were_called_last(self, store: Store) -> None:
        await fill_statistics(store)
        async with store.work(write=False) as work:
            found = await work.statistics.find_names([ANA.key, BO.key, "web_user:9"])
        assert found == {ANA.key: "Ana B.", BO.key: BO.name}

    async def test_requests_beside_the_steps_are_in_the_ledger(self, store: Store) -> None:
        await fill_statistics(store)
        async with store.work(write=False) as work:
            rows = await work.ledger.list_usage(since=at(-48))
            mine = await work.ledger.list_usage(since=NOON, agent="denizen", principal=ANA.key)
            others = await work.ledger.list_usage(since=NOON, agent="scribe")
        assert [(row.day, row.model, row.usage.requests) for row in rows] == [
            ("2026-11-21", "m1", 2),
            ("2026-11-21", "m2", 1),
            ("2026-11-21", "m3", 1),
            ("2026-11-20", "m2", 1),
        ]
        assert [row.model for row in mine] == ["m1", "m2", "m3"]
        assert others == []

    async def test_what_somebody_used_who_is_forgotten_counts_and_tells_of_nobody(self, store: Store) -> None:
        await fill_statistics(store)
        total = sum((await get_sums(store, UsageGrouping.DAY)).values(), UsageTotals())
        await compute(store, FRIDAY)
        async with store.work() as work:
            await work.statistics.forget_user(BO.key)
        await compute(store, SATURDAY)
        async with store.work() as work:
            await work.statistics.forget_user(ANA.key)
            await work.statistics.forget_user(FORGOTTEN)
        for computed in ((), (FRIDAY, SATURDAY)):
            await compute(store, *computed)
            assert await count_messages(store, UsageGrouping.USER) == {FORGOTTEN: 4}
            assert await get_sums(store, UsageGrouping.DAY, chosen=UsageFilter(user=ANA.key)) == {}
            assert await count_messages(store, UsageGrouping.SOURCE) == {"discord": 2, "web": 1, "github-bot": 1}
            assert sum((await get_sums(store, UsageGrouping.USER)).values(), UsageTotals()) == total
        async with store.work(write=False) as work:
            assert await work.statistics.find_names([ANA.key, BO.key, FORGOTTEN]) == {}
            kept = await work.statistics.find_report("use_1")
            assert kept is not None and kept.reporter == FORGOTTEN
            assert await work.ledger.list_usage(since=at(-48), principal=ANA.key) == []


def make_call_event(tool: str, hours: float = 0) -> AuditEvent:
    return AuditEvent(
        AuditKind.CALL, at(hours), "platform_user:1", tool, {"tier": 3, "args": "ab", "chain": ["x", None]}
    )


@pytest.mark.anyio
class AuditContract:
    async def test_entries_are_chained_and_read_back_as_they_were_written(self, store: Store) -> None:
        odd = AuditEvent(AuditKind.SWITCH, at(2), "local:operator", "obs\x00erver \ud800", {"to": "\ufdd0", "n": 1.5})
        async with store.work() as work:
            assert await work.audit.head() == AuditHead()
            first = await work.audit.add([make_call_event("ban"), make_call_event("kick", 1)])
        async with store.work() as work:
            last = await work.audit.add([odd])
        async with store.work(write=False) as work:
            entries = await work.audit.list_entries()
            assert await work.audit.head() == last
        assert [entry.number for entry in entries] == [1, 2, 3]
        assert [entry.event for entry in entries] == [make_call_event("ban"), make_call_event("kick", 1), odd]
        assert (first.number, first.digest) == (2, entries[1].digest)
        assert find_chain_fault(entries) == ""

    async def test_entries_are_read_in_pages(self, store: Store) -> None:
        async with store.work() as work:
            await work.audit.add([make_call_event(f"tool{n}") for n in range(5)])
            assert [entry.number for entry in await work.audit.list_entries(after=1, limit=2)] == [2, 3]
            assert await work.audit.list_entries(after=5) == []

    async def test_a_search_finds_kinds_and_words_newest_first(self, store: Store) -> None:
        switch = AuditEvent(AuditKind.SWITCH, at(1), "local:Operator", "ob%server")
        async with store.work() as work:
            await work.audit.add([make_call_event("ban"), switch, make_call_event("banner"), make_call_event("kick")])
        found: list[list[int]] = []
        for wanted in (
            AuditSearch(),
            AuditSearch(limit=2),
            AuditSearch(before=3),
            AuditSearch(kind=AuditKind.SWITCH),
            AuditSearch(words="BAN"),
            AuditSearch(words="operator"),
            AuditSearch(words="b%s"),
            AuditSearch(words="b%n"),
            AuditSearch(kind=AuditKind.CALL, words="platform_user:1", before=4, limit=1),
        ):
            async with store.work(write=False) as work:
                found.append([entry.number for entry in await work.audit.search(wanted)])
        assert found == [[4, 3, 2, 1], [4, 3], [2, 1], [2], [3, 1], [2], [2], [], [3]]

    async def test_what_is_rolled_back_leaves_no_gap(self, store: Store) -> None:
        async def fail() -> None:
            async with store.work() as work:
                await work.audit.add([make_call_event("ban")])
                raise RuntimeError("no")

        with pytest.raises(RuntimeError, match="no"):
            await fail()
        async with store.work() as work:
            assert (await work.audit.add([make_call_event("kick")])).number == 1
            assert find_chain_fault(await work.audit.list_entries()) == ""

    async def test_nothing_added_moves_nothing(self, store: Store) -> None:
        async with store.work() as work:
            assert await work.audit.add([]) == AuditHead()

    async def test_those_who_add_at_once_make_one_chain(self, store: Store) -> None:
        async def add(name: str) -> None:
            for n in range(5):
                async with store.work() as work:
                    await work.audit.add([make_call_event(f"{name}{n}")])

        async with anyio.create_task_group() as tasks:
            for name in "abc":
                tasks.start_soon(add, name)
        async with store.work(write=False) as work:
            entries = await work.audit.list_entries()
        assert len(entries) == 15
        assert find_chain_fault(entries) == ""
