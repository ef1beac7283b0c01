"""The store's promises about money: what is spent, what is reserved, and that those who reserve at once see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import anyio
import pytest

from denizen.domain.budget import SERVER, Limit, Period, Scope, ScopeKind, Standing, decide_request
from denizen.domain.statistics import FORGOTTEN
from denizen.domain.usage import Usage
from denizen.ports.store import Store
from denizen.ports.usage import Reservation, SpendRow
from denizen.testing.store_records import USAGE, at, open_talk, step_of, turn_of

ANA = Scope(ScopeKind.USER, "platform_user:discord:1")
BEN = Scope(ScopeKind.USER, "platform_user:discord:2")
ADA = Scope(ScopeKind.AGENT, "ada")
GENERAL = Scope(ScopeKind.CHANNEL, "discord:10")
HARBOUR = Scope(ScopeKind.GUILD, "discord:7")
MINE = (SERVER, ADA, ANA, GENERAL, HARBOUR)


def cents(amount: int, *, requests: int = 1) -> Usage:
    return Usage(10, 5, cost_usd=Decimal(amount) / 100, requests=requests)


def hold(key: str, amount: int, *, scopes: tuple[Scope, ...] = MINE, hours: float = 1) -> Reservation:
    return Reservation(key, Decimal(amount) / 100, scopes, at(hours))


async def reserve(store: Store, reservation: Reservation, limits: Sequence[Limit]) -> bool:
    """As the engine does it: lock, look, decide, reserve, in one unit of work."""
    scopes = list(dict.fromkeys(limit.scope for limit in limits))
    async with store.work() as work:
        await work.spending.lock(scopes)
        standings = await work.spending.read(scopes, now=at(0), besides=reservation.id)
        if decide_request(limits, standings, reservation.usd, warn_at=Decimal(1)).refused_by is not None:
            return False
        await work.spending.reserve(reservation, now=at(0))
        return True


@pytest.mark.anyio
class SpendingContract:
    async def test_what_is_spent_counts_on_its_day_and_in_its_month_for_each_scope(self, store: Store) -> None:
        async with store.work() as work:
            await work.spending.add([ADA, ANA], cents(5), at=at(0))
            await work.spending.add([ADA], cents(7, requests=2), at=at(1))
            await work.spending.add([ADA], cents(100), at=at(-24 * 10))
            await work.spending.add([ADA], cents(1000), at=at(-24 * 25))
        async with store.work(write=False) as work:
            found = await work.spending.read([ADA, ANA, BEN], now=at(2))
        assert found == {
            ADA: Standing(Decimal("0.12"), Decimal("1.12"), day_requests=3, month_requests=4),
            ANA: Standing(Decimal("0.05"), Decimal("0.05"), day_requests=1, month_requests=1),
            BEN: Standing(),
        }

    async def test_money_of_requests_is_added_exactly_and_an_unknown_cost_stays_unknown(self, store: Store) -> None:
        async with store.work() as work:
            for _ in range(10):
                await work.spending.add([ADA], Usage(1, 2, 3, 4, Decimal("0.000000000001"), 1), at=at(0))
            await work.spending.add([ADA], Usage(1, requests=1), at=at(0))
            await work.spending.add([BEN], Usage(1, requests=1), at=at(0))
            await work.spending.add([BEN], Usage(1, requests=1), at=at(0))
        async with store.work(write=False) as work:
            assert await work.spending.list_spend(ScopeKind.AGENT, since=at(0)) == [
                SpendRow("2026-11-21", ADA, Usage(11, 20, 30, 40, Decimal("0.00000000001"), 11))
            ]
            assert await work.spending.list_spend(ScopeKind.USER, since=at(0)) == [
                SpendRow("2026-11-21", BEN, Usage(2, requests=2))
            ]

    async def test_spend_is_listed_by_kind_the_newest_day_first_from_the_given_day_on(self, store: Store) -> None:
        async with store.work() as work:
            for hours in (0, -24, -48):
                await work.spending.add([BEN, ANA, ADA], cents(1), at=at(hours))
        async with store.work(write=False) as work:
            rows = await work.spending.list_spend(ScopeKind.USER, since=at(-24))
        assert [(row.day, row.scope) for row in rows] == [
            ("2026-11-21", ANA), ("2026-11-21", BEN), ("2026-11-20", ANA), ("2026-11-20", BEN),
        ]  # fmt: skip

    async def test_a_reservation_counts_in_all_its_scopes_until_it_is_released(self, store: Store) -> None:
        async with store.work() as work:
            await work.spending.reserve(hold("t1:1", 5), now=at(0))
            await work.spending.reserve(hold("t2:1", 3, scopes=(SERVER, ADA, BEN)), now=at(0))
        async with store.work(write=False) as work:
            found = await work.spending.read([*MINE, BEN], now=at(0))
            apart = await work.spending.read([ADA], now=at(0), besides="t1:1")
        assert {scope: int(100 * found[scope].reserved_usd) for scope in found} == {
            SERVER: 8, ADA: 8, ANA: 5, GENERAL: 5, HARBOUR: 5, BEN: 3,
        }  # fmt: skip
        assert apart[ADA].reserved_usd == Decimal("0.03")
        async with store.work() as work:
            await work.spending.release("t1:1")
            await work.spending.release("t1:1")
        async with store.work(write=False) as work:
            found = await work.spending.read([SERVER, ANA], now=at(0))
        assert [found[scope].reserved_usd for scope in (SERVER, ANA)] == [Decimal("0.03"), Decimal(0)]

    async def test_a_reservation_expires_and_the_same_one_again_takes_its_place(self, store: Store) -> None:
        async with store.work() as work:
            await work.spending.reserve(hold("t1:1", 5), now=at(0))
            await work.spending.reserve(hold("t1:1", 9, hours=2), now=at(0))
        async with store.work(write=False) as work:
            assert (await work.spending.read([ADA], now=at(1)))[ADA].reserved_usd == Decimal("0.09")
            assert (await work.spending.read([ADA], now=at(2)))[ADA].reserved_usd == 0
        async with store.work() as work:
            await work.spending.reserve(hold("t2:1", 1, hours=9), now=at(3))
            # What had expired is gone, even for one whose clock is behind.
            assert (await work.spending.read([ADA], now=at(0)))[ADA].reserved_usd == Decimal("0.01")

    async def test_of_many_who_reserve_at_once_only_as_many_get_through_as_fit(self, store: Store) -> None:
        limits = [Limit(SERVER, Period.DAY, Decimal("0.30")), Limit(ADA, Period.MONTH, Decimal(1))]
        async with store.work() as work:
            await work.spending.add([SERVER], cents(5), at=at(0))
        passed: list[bool] = []

        async def ask(number: int) -> None:
            passed.append(await reserve(store, hold(f"t{number}:1", 10), limits))

        async with anyio.create_task_group() as tasks:
            for number in range(8):
                tasks.start_soon(ask, number)
        assert sorted(passed) == [False] * 6 + [True] * 2

    async def test_a_unit_that_fails_has_reserved_and_spent_nothing(self, store: Store) -> None:
        async def fail() -> None:
            async with store.work() as work:
                await work.spending.lock([ADA])
                await work.spending.reserve(hold("t1:1", 5), now=at(0))
                await work.spending.add([ADA], cents(5), at=at(0))
                assert await work.spending.note_warning(ADA, day="2026-11-21")
                raise LookupError

        with pytest.raises(LookupError):
            await fail()
        async with store.work() as work:
            assert await work.spending.read([ADA], now=at(0)) == {ADA: Standing()}
            assert await work.spending.note_warning(ADA, day="2026-11-21")

    async def test_a_scope_is_warned_once_a_day(self, store: Store) -> None:
        told: list[bool] = []
        for day in ("2026-11-21", "2026-11-21", "2026-11-22"):
            async with store.work() as work:
                told.append(await work.spending.note_warning(ADA, day=day))
        assert told == [True, False, True]

    async def test_what_somebody_spent_who_is_forgotten_is_nobodys_once_the_month_is_over(self, store: Store) -> None:
        bo, ana = (Scope(ScopeKind.USER, f"platform_user:{number}") for number in (1, 2))
        november, december = at(0), at(24 * 15)

        async def rows() -> dict[tuple[str, str], Decimal | None]:
            async with store.work(write=False) as work:
                found = await work.spending.list_spend(ScopeKind.USER, since=at(-24 * 90))
            return {(row.scope.key, row.day): row.usage.cost_usd for row in found}

        async with store.work() as work:
            for days in (-30, -31):
                await work.spending.add([ADA, bo, ana], cents(5), at=at(24 * days))
            await work.spending.add([bo, ana], cents(2), at=november)
            await work.spending.forget_users(bo.key, now=november)
            await work.spending.forget_users(ana.key, FORGOTTEN, now=november)
            await work.spending.add([bo], cents(1), at=at(24))
        assert await rows() == {
            (FORGOTTEN, "2026-10-21"): Decimal("0.1"), (FORGOTTEN, "2026-10-22"): Decimal("0.1"),
            (bo.key, "2026-11-21"): Decimal("0.02"), (bo.key, "2026-11-22"): Decimal("0.01"),
            (ana.key, "2026-11-21"): Decimal("0.02"),
        }  # fmt: skip
        async with store.work() as work:
            assert (await work.spending.read([bo], now=at(24)))[bo].month_usd == Decimal("0.03")
            await work.spending.add([bo], cents(4), at=december)
            await work.spending.forget_users(now=december)
            await work.spending.forget_users(now=at(24 * 80))
        assert (await rows()).items() >= {
            (FORGOTTEN, "2026-11-21"): Decimal("0.04"), (bo.key, "2026-11-22"): Decimal("0.01"),
            (bo.key, "2026-12-06"): Decimal("0.04"),
        }.items()  # fmt: skip
        assert (ana.key, "2026-11-21") not in await rows()

    async def test_a_step_that_is_written_again_says_that_it_is_not_new(self, store: Store) -> None:
        _, session = await open_talk(store)
        step = step_of(turn_of(session, "t1"), 1)
        async with store.work() as work:
            await work.turns.open(turn_of(session, "t1"))
            assert await work.turns.add_step(step)
            assert not await work.turns.add_step(replace(step, model="other"))
        async with store.work() as work:
            assert not await work.turns.add_step(step)
            assert await work.turns.add_step(step_of(turn_of(session, "t1"), 2, usage=USAGE))

    async def test_texts_of_any_kind_are_keys_of_scopes(self, store: Store) -> None:
        odd = Scope(ScopeKind.USER, "api_key:\x00 \ud83d ё'\"")
        async with store.work() as work:
            await work.spending.lock([odd])
            await work.spending.add([odd], cents(5), at=at(0))
            await work.spending.reserve(hold("t1:1", 2, scopes=(odd,)), now=at(0) - timedelta(hours=1))
        async with store.work(write=False) as work:
            found = await work.spending.read([odd], now=at(0))
            (row,) = await work.spending.list_spend(ScopeKind.USER, since=at(0))
        assert (found[odd].day_usd, found[odd].reserved_usd) == (Decimal("0.05"), Decimal("0.02"))
        assert row.scope == odd
