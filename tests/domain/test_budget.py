"""Budgets of money: what fits, for how long, and that no order of events gets past a limit."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.budget import (
    SERVER,
    BudgetFit,
    BudgetLimit,
    BudgetLimits,
    BudgetPeriod,
    BudgetPolicy,
    BudgetScope,
    BudgetScopeKind,
    BudgetStatus,
    WhenExhausted,
    decide_budget,
    decide_request,
    month_start,
    renews_at,
    utc_day,
)

WARN_AT = Decimal("0.8")
ADA = BudgetScope(BudgetScopeKind.AGENT, "ada")
ANA = BudgetScope(BudgetScopeKind.USER, "platform_user:discord:1")
GUILD = BudgetScope(BudgetScopeKind.GUILD, "discord:7")


@pytest.mark.parametrize(
    ("spent", "reserved", "wanted", "fit"),
    [
        ("0", "0", "0.79", BudgetFit.OK),
        ("0.5", "0.2", "0.1", BudgetFit.WARN),
        ("0.5", "0.4", "0.1", BudgetFit.WARN),
        ("0.5", "0.4", "0.11", BudgetFit.REFUSED),
        ("2", "0", "0", BudgetFit.WARN),
    ],
)
def test_what_is_spent_and_reserved_and_wanted_together_has_to_fit(
    spent: str, reserved: str, wanted: str, fit: BudgetFit
) -> None:
    sums = (Decimal(spent), Decimal(reserved), Decimal(1), Decimal(wanted))
    assert decide_budget(*sums, warn_at=WARN_AT) is fit


def test_a_limit_of_nothing_lets_only_what_is_free_through() -> None:
    assert decide_budget(Decimal(0), Decimal(0), Decimal(0), Decimal(0), warn_at=WARN_AT) is BudgetFit.OK
    assert decide_budget(Decimal(0), Decimal(0), Decimal(0), Decimal("1e-9"), warn_at=WARN_AT) is BudgetFit.REFUSED


def test_of_several_limits_that_refuse_the_one_that_lasts_longest_is_named() -> None:
    limits = [BudgetLimit(SERVER, BudgetPeriod.DAY, Decimal(1)), BudgetLimit(ADA, BudgetPeriod.MONTH, Decimal(1))]
    full = BudgetStatus(Decimal(1), Decimal(1))
    assert decide_request(limits, {SERVER: full}, Decimal(1), warn_at=WARN_AT).refused_by == limits[0]
    assert decide_request(limits, {SERVER: full, ADA: full}, Decimal(1), warn_at=WARN_AT).refused_by == limits[1]


def test_a_scope_near_both_its_limits_is_named_once() -> None:
    limits = [BudgetLimit(ADA, BudgetPeriod.DAY, Decimal(1)), BudgetLimit(ADA, BudgetPeriod.MONTH, Decimal(1))]
    ruling = decide_request(limits, {ADA: BudgetStatus(Decimal("0.8"), Decimal("0.8"))}, Decimal(0), warn_at=WARN_AT)
    assert (ruling.refused_by, ruling.near) == (None, (ADA,))


def test_limits_of_one_stand_in_for_those_of_all_where_they_say_something() -> None:
    policy = BudgetPolicy(
        usual={
            BudgetScopeKind.USER: BudgetLimits(Decimal(1), Decimal(10)),
            BudgetScopeKind.SERVER: BudgetLimits(per_day_usd=Decimal(50)),
        },
        special={
            BudgetScope(BudgetScopeKind.USER, "1"): BudgetLimits(per_day_usd=Decimal(5)),
            ADA: BudgetLimits(Decimal(2)),
        },
        of_agents={"ada": WhenExhausted.CHEAPER},
    )
    assert policy.get_limits(ANA) == BudgetLimits(Decimal(5), Decimal(10))
    assert policy.get_limits(BudgetScope(BudgetScopeKind.USER, "platform_user:discord:2")) == BudgetLimits(
        Decimal(1), Decimal(10)
    )
    assert policy.plan_limits([SERVER, GUILD, ADA]) == (
        BudgetLimit(SERVER, BudgetPeriod.DAY, Decimal(50)),
        BudgetLimit(ADA, BudgetPeriod.DAY, Decimal(2)),
    )
    assert policy.when_exhausted_for("ada") is WhenExhausted.CHEAPER
    assert policy.when_exhausted_for("bob") is WhenExhausted.STOP


@pytest.mark.parametrize(
    ("period", "now", "renewed"),
    [
        (BudgetPeriod.DAY, "2026-11-22T23:59:59+00:00", "2026-11-23T00:00:00+00:00"),
        (BudgetPeriod.DAY, "2026-11-23T01:00:00+02:00", "2026-11-23T00:00:00+00:00"),
        (BudgetPeriod.MONTH, "2026-01-31T12:00:00+00:00", "2026-02-01T00:00:00+00:00"),
        (BudgetPeriod.MONTH, "2026-12-01T00:00:00+00:00", "2027-01-01T00:00:00+00:00"),
    ],
)
def test_a_limit_renews_with_the_next_day_or_month_of_utc(period: BudgetPeriod, now: str, renewed: str) -> None:
    assert renews_at(period, datetime.fromisoformat(now)) == datetime.fromisoformat(renewed)


class MemoryLedger:
    """The store's part, as simple as it can be: who reserved what until when, and what was spent on which day."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 29, 12, tzinfo=UTC)
        self.spent: dict[tuple[BudgetScope, str], Decimal] = {}
        self.reserved: dict[int, tuple[Decimal, tuple[BudgetScope, ...], datetime]] = {}

    def find_status(self, scope: BudgetScope) -> BudgetStatus:
        days = {day: usd for (whose, day), usd in self.spent.items() if whose == scope}
        month = [usd for day, usd in days.items() if day >= month_start(self.now)]
        held = [usd for usd, scopes, until in self.reserved.values() if scope in scopes and until > self.now]
        return BudgetStatus(days.get(utc_day(self.now), Decimal(0)), sum(month, Decimal(0)), sum(held, Decimal(0)))

    def settle(self, number: int, usd: Decimal) -> None:
        _, scopes, _ = self.reserved.pop(number)
        for scope in scopes:
            key = (scope, utc_day(self.now))
            self.spent[key] = self.spent.get(key, Decimal(0)) + usd


CENTS = st.integers(0, 60)
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("reserve"), CENTS, st.sampled_from([(SERVER, ADA), (SERVER, ADA, ANA), (SERVER, ANA)])),
        st.tuples(st.just("settle"), st.integers(0, 5), st.integers(0, 100)),
        st.tuples(st.just("die"), st.integers(0, 5), st.just(0)),
        st.tuples(st.just("wait"), st.sampled_from([1, 10, 60, 1440]), st.just(0)),
    ),
    max_size=40,
)
LIMITS = [
    BudgetLimit(SERVER, BudgetPeriod.DAY, Decimal(1)),
    BudgetLimit(SERVER, BudgetPeriod.MONTH, Decimal("1.5")),
    BudgetLimit(ADA, BudgetPeriod.MONTH, Decimal("0.9")),
    BudgetLimit(ANA, BudgetPeriod.DAY, Decimal("0.7")),
]


@given(EVENTS)
def test_no_order_of_reserving_settling_crashing_and_waiting_gets_past_a_limit(
    events: list[tuple[str, int, object]],
) -> None:
    """A request ends before its reservation does, and costs at most what was reserved; days and months pass."""
    book, count, alive = MemoryLedger(), 0, set[int]()
    for what, amount, more in events:
        if what == "reserve":
            assert isinstance(more, tuple)
            wanted = Decimal(amount) / 100
            limits = [limit for limit in LIMITS if limit.scope in more]
            statuses = {limit.scope: book.find_status(limit.scope) for limit in limits}
            if decide_request(limits, statuses, wanted, warn_at=WARN_AT).refused_by is None:
                count += 1
                book.reserved[count] = (wanted, more, book.now + timedelta(minutes=15))
                alive.add(count)
        elif what == "wait":
            until = book.now + timedelta(minutes=amount)
            for number in sorted(alive):  # those under way end in time, at their full price
                if book.reserved[number][2] <= until:
                    book.settle(number, book.reserved[number][0])
                    alive.remove(number)
            book.now = until
        elif alive:
            number = sorted(alive)[amount % len(alive)]
            alive.remove(number)
            if what == "settle":
                assert isinstance(more, int)
                book.settle(number, book.reserved[number][0] * more / 100)
        for limit in LIMITS:
            at = book.find_status(limit.scope)
            assert at.spent(limit.period) + at.reserved_usd <= limit.usd
