"""What `budgets` means."""

from __future__ import annotations

from decimal import Decimal

import pytest

from denizen.domain.budget import SERVER, BudgetLimits, BudgetPolicy, BudgetScope, BudgetScopeKind, WhenExhausted
from denizen.domain.errors import InvalidInput
from tests.app.home_folder import Home

WHOLE = """\
agents: {denizen: {}}
budgets:
  currency: usd
  server: {per_month_usd: 100}
  guild: {per_day_usd: 5}
  channel: {per_day_usd: 2}
  user: {per_day_usd: 0.1, per_month_usd: 1}
  agent: {per_day_usd: 3}
  guilds: {123456789012345678: {per_day_usd: 50}}
  channels: {"10": {per_month_usd: 7}}
  users: {1: {per_day_usd: 0}, "api_key:laptop": {per_day_usd: 9}}
  agents: {denizen: {per_day_usd: 4, when_exhausted: cheaper}}
  warn_at: 0.5
  when_exhausted: stop
"""


def test_every_key_of_the_budgets_has_its_meaning(home: Home) -> None:
    policy = home.load(WHOLE).budgets
    assert policy.get_limits(SERVER) == BudgetLimits(per_month_usd=Decimal(100))
    assert policy.get_limits(BudgetScope(BudgetScopeKind.GUILD, "discord:7")) == BudgetLimits(Decimal(5))
    assert policy.get_limits(BudgetScope(BudgetScopeKind.GUILD, "discord:123456789012345678")) == BudgetLimits(
        Decimal(50)
    )
    assert policy.get_limits(BudgetScope(BudgetScopeKind.CHANNEL, "discord:10")) == BudgetLimits(Decimal(2), Decimal(7))
    assert policy.get_limits(BudgetScope(BudgetScopeKind.USER, "platform_user:discord:1")) == BudgetLimits(
        Decimal(0), Decimal(1)
    )
    assert policy.get_limits(BudgetScope(BudgetScopeKind.USER, "platform_user:discord:2")) == BudgetLimits(
        Decimal("0.1"), Decimal(1)
    )
    assert policy.get_limits(BudgetScope(BudgetScopeKind.USER, "api_key:laptop")) == BudgetLimits(
        Decimal(9), Decimal(1)
    )
    assert policy.get_limits(BudgetScope(BudgetScopeKind.AGENT, "denizen")) == BudgetLimits(Decimal(4))
    assert (policy.warn_at, policy.when_exhausted_for("denizen")) == (Decimal("0.5"), WhenExhausted.CHEAPER)
    assert policy.when_exhausted_for("other") is WhenExhausted.STOP


def test_without_budgets_nothing_is_limited(home: Home) -> None:
    policy = home.load("").budgets
    every = [BudgetScope(kind, "x") for kind in BudgetScopeKind]
    assert policy.plan_limits(every) == ()
    assert (policy.warn_at, policy.when_exhausted) == (BudgetPolicy().warn_at, WhenExhausted.STOP)


@pytest.mark.parametrize(
    ("budgets", "said"),
    [
        ("{warn_at: 80}", "budgets.warn_at"),
        ("{when_exhausted: cheap}", "Did you mean 'cheaper'?"),
        ("{agents: {nobody: {per_day_usd: 1}}}", "there is no agent 'nobody'"),
        ("{users: {'': {per_day_usd: 1}}}", "must not be empty"),
        ("{currency: eur}", "budgets.currency"),
        ("{jobs: {per_day_usd: 1}}", "jobs"),
    ],
)
def test_what_a_budget_cannot_mean_is_refused(home: Home, budgets: str, said: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        home.load(f"agents: {{denizen: {{}}}}\nbudgets: {budgets}\n")
    assert said in refusal.value.explain()
