"""Budgets of money: who has one, for how long, and whether another request fits it. Pure.

A limit holds for one scope and one period of the calendar in UTC. What a request may cost at most is reserved before it
is sent; what is spent and what is reserved together never pass a limit. Reading and writing is `ports/usage`'s, and
`engine/budget/budgets.py` puts both together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum

from denizen.domain.record import record


class BudgetScopeKind(StrEnum):
    """Whose money it is. SERVER is everything that this Denizen does; JOB a schedule, and RUN one run of it."""

    SERVER = "server"
    GUILD = "guild"
    CHANNEL = "channel"
    USER = "user"
    AGENT = "agent"
    JOB = "job"
    RUN = "run"


@dataclass(frozen=True, slots=True, order=True)
class BudgetScope:
    """One of a kind. `key` is `platform:id` for guilds and channels, a principal's key for users, a name for agents,
    the id of a schedule for jobs, that of a turn for runs, and empty for the server.
    """

    kind: BudgetScopeKind
    key: str = ""

    @property
    def id(self) -> str:
        """The last part of the key: what people know it by."""
        return self.key.rpartition(":")[2]


SERVER = BudgetScope(BudgetScopeKind.SERVER)


class BudgetPeriod(StrEnum):
    """The span, in UTC, over which a budget counts what was spent."""

    DAY = "day"
    MONTH = "month"


class WhenExhausted(StrEnum):
    """The consequence for a turn whose budget is used up: it stops, or a cheaper model answers."""

    STOP = "stop"
    CHEAPER = "cheaper"
    """The alias `cheap`, or `fast`, answers instead, as long as that fits."""


@record
class BudgetLimits:
    """None is no limit; 0 lets only what is free through."""

    per_day_usd: Decimal | None = None
    per_month_usd: Decimal | None = None


@record
class BudgetLimit:
    """At most so much in each such period."""

    scope: BudgetScope
    period: BudgetPeriod
    usd: Decimal


@record
class BudgetStatus:
    """The spending of a scope today and this month, its number of requests, and the amount reserved now."""

    day_usd: Decimal = Decimal(0)
    month_usd: Decimal = Decimal(0)
    reserved_usd: Decimal = Decimal(0)
    day_requests: int = 0
    month_requests: int = 0

    def spent(self, period: BudgetPeriod) -> Decimal:
        return self.day_usd if period is BudgetPeriod.DAY else self.month_usd


_NONE = BudgetLimits()


@record
class BudgetPolicy:
    """The budgets of the configuration. `special` are limits of single scopes, by key or by its last part; what one of
    them leaves open is as usual. `warn_at` is the share of a limit from which on it is near.
    """

    usual: Mapping[BudgetScopeKind, BudgetLimits] = field(default_factory=dict[BudgetScopeKind, BudgetLimits])
    special: Mapping[BudgetScope, BudgetLimits] = field(default_factory=dict[BudgetScope, BudgetLimits])
    warn_at: Decimal = Decimal("0.8")
    when_exhausted: WhenExhausted = WhenExhausted.STOP
    of_agents: Mapping[str, WhenExhausted] = field(default_factory=dict[str, WhenExhausted])

    def get_limits(self, scope: BudgetScope) -> BudgetLimits:
        usual = self.usual.get(scope.kind, _NONE)
        own = self.special.get(scope) or self.special.get(BudgetScope(scope.kind, scope.id), _NONE)
        return BudgetLimits(
            usual.per_day_usd if own.per_day_usd is None else own.per_day_usd,
            usual.per_month_usd if own.per_month_usd is None else own.per_month_usd,
        )

    def plan_limits(self, scopes: Sequence[BudgetScope]) -> tuple[BudgetLimit, ...]:
        """Every limit that a request of these scopes has to fit."""
        found: list[BudgetLimit] = []
        for scope in scopes:
            limits = self.get_limits(scope)
            for period, usd in ((BudgetPeriod.DAY, limits.per_day_usd), (BudgetPeriod.MONTH, limits.per_month_usd)):
                if usd is not None:
                    found.append(BudgetLimit(scope, period, usd))
        return tuple(found)

    def when_exhausted_for(self, agent: str) -> WhenExhausted:
        return self.of_agents.get(agent, self.when_exhausted)


class BudgetFit(StrEnum):
    """Whether a request fits its budgets. WARN: it fits, and the share at which people are warned is reached."""

    OK = "ok"
    WARN = "warn"
    REFUSED = "refused"


def decide_budget(spent: Decimal, reserved: Decimal, limit: Decimal, wanted: Decimal, *, warn_at: Decimal) -> BudgetFit:
    """Whether another request, which costs `wanted` at most, fits. What is free always does."""
    total = spent + reserved + wanted
    if wanted > 0 and total > limit:
        return BudgetFit.REFUSED
    return BudgetFit.WARN if limit > 0 and total >= warn_at * limit else BudgetFit.OK


@record
class BudgetRuling:
    """`refused_by` is the limit that does not let the request through: of several the one that lasts longest.
    `near` are the scopes with a limit that is nearly reached, when it was let through.
    """

    refused_by: BudgetLimit | None = None
    near: tuple[BudgetScope, ...] = ()


def decide_request(
    limits: Sequence[BudgetLimit], standings: Mapping[BudgetScope, BudgetStatus], wanted: Decimal, *, warn_at: Decimal
) -> BudgetRuling:
    """Whether a request fits all limits. A scope without a standing has spent nothing."""
    refused: list[BudgetLimit] = []
    near: dict[BudgetScope, None] = {}
    for limit in limits:
        at = standings.get(limit.scope, BudgetStatus())
        fit = decide_budget(at.spent(limit.period), at.reserved_usd, limit.usd, wanted, warn_at=warn_at)
        if fit is BudgetFit.REFUSED:
            refused.append(limit)
        elif fit is BudgetFit.WARN:
            near[limit.scope] = None
    if refused:
        return BudgetRuling(max(refused, key=lambda limit: limit.period is BudgetPeriod.MONTH))
    return BudgetRuling(near=tuple(near))


def utc_day(time: datetime) -> str:
    """As `2026-11-22`; the first of its month is the smallest of them."""
    return time.astimezone(UTC).date().isoformat()


def month_start(time: datetime) -> str:
    """The day with which the month of that time begins, as `2026-11-01`."""
    return time.astimezone(UTC).date().replace(day=1).isoformat()


def renews_at(period: BudgetPeriod, now: datetime) -> datetime:
    """When the next day or month begins."""
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if period is BudgetPeriod.DAY:
        return today + timedelta(days=1)
    return (today.replace(day=1) + timedelta(days=32)).replace(day=1)
