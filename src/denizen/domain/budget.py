"""Budgets of money: who has one, for how long, and whether another request fits it. Pure.

A limit holds for one scope and one period of the calendar in UTC. What a request may cost at most is reserved before it
is sent; what is spent and what is reserved together never pass a limit. Reading and writing is `ports/spending`'s, and
`engine/budget/budgets.py` puts both together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum


class ScopeKind(StrEnum):
    """Whose money it is. SERVER is everything that this Denizen does."""

    SERVER = "server"
    GUILD = "guild"
    CHANNEL = "channel"
    USER = "user"
    AGENT = "agent"


@dataclass(frozen=True, slots=True, order=True)
class Scope:
    """One of a kind. `key` is `platform:id` for guilds and channels, a principal's key for users, a name for agents,
    and empty for the server.
    """

    kind: ScopeKind
    key: str = ""

    @property
    def id(self) -> str:
        """The last part of the key: what people know it by."""
        return self.key.rpartition(":")[2]


SERVER = Scope(ScopeKind.SERVER)


class Period(StrEnum):
    DAY = "day"
    MONTH = "month"


class WhenExhausted(StrEnum):
    STOP = "stop"
    CHEAPER = "cheaper"
    """The alias `cheap`, or `fast`, answers instead, as long as that fits."""


@dataclass(frozen=True, slots=True)
class Limits:
    """None is no limit; 0 lets only what is free through."""

    per_day_usd: Decimal | None = None
    per_month_usd: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Limit:
    """At most so much in each such period."""

    scope: Scope
    period: Period
    usd: Decimal


@dataclass(frozen=True, slots=True)
class Standing:
    """What a scope has spent today and this month, with how many requests, and what is reserved now."""

    day_usd: Decimal = Decimal(0)
    month_usd: Decimal = Decimal(0)
    reserved_usd: Decimal = Decimal(0)
    day_requests: int = 0
    month_requests: int = 0

    def spent(self, period: Period) -> Decimal:
        return self.day_usd if period is Period.DAY else self.month_usd


_NONE = Limits()


@dataclass(frozen=True, slots=True)
class BudgetPolicy:
    """What the configuration says. `special` are limits of single scopes, by key or by its last part; what one of
    them leaves open is as usual. `warn_at` is the share of a limit from which on it is near.
    """

    usual: Mapping[ScopeKind, Limits] = field(default_factory=dict[ScopeKind, Limits])
    special: Mapping[Scope, Limits] = field(default_factory=dict[Scope, Limits])
    warn_at: Decimal = Decimal("0.8")
    when_exhausted: WhenExhausted = WhenExhausted.STOP
    of_agents: Mapping[str, WhenExhausted] = field(default_factory=dict[str, WhenExhausted])

    def limits_of(self, scope: Scope) -> Limits:
        usual = self.usual.get(scope.kind, _NONE)
        own = self.special.get(scope) or self.special.get(Scope(scope.kind, scope.id), _NONE)
        return Limits(
            usual.per_day_usd if own.per_day_usd is None else own.per_day_usd,
            usual.per_month_usd if own.per_month_usd is None else own.per_month_usd,
        )

    def plan_limits(self, scopes: Sequence[Scope]) -> tuple[Limit, ...]:
        """Every limit that a request of these scopes has to fit."""
        found: list[Limit] = []
        for scope in scopes:
            limits = self.limits_of(scope)
            for period, usd in ((Period.DAY, limits.per_day_usd), (Period.MONTH, limits.per_month_usd)):
                if usd is not None:
                    found.append(Limit(scope, period, usd))
        return tuple(found)

    def when_exhausted_for(self, agent: str) -> WhenExhausted:
        return self.of_agents.get(agent, self.when_exhausted)


class Fit(StrEnum):
    OK = "ok"
    WARN = "warn"
    REFUSED = "refused"


def decide_budget(spent: Decimal, reserved: Decimal, limit: Decimal, wanted: Decimal, *, warn_at: Decimal) -> Fit:
    """Whether another request, which costs `wanted` at most, fits. What is free always does."""
    total = spent + reserved + wanted
    if wanted > 0 and total > limit:
        return Fit.REFUSED
    return Fit.WARN if limit > 0 and total >= warn_at * limit else Fit.OK


@dataclass(frozen=True, slots=True)
class Ruling:
    """`refused_by` is the limit that does not let the request through: of several the one that lasts longest.
    `near` are the scopes with a limit that is nearly reached, when it was let through.
    """

    refused_by: Limit | None = None
    near: tuple[Scope, ...] = ()


def decide_request(
    limits: Sequence[Limit], standings: Mapping[Scope, Standing], wanted: Decimal, *, warn_at: Decimal
) -> Ruling:
    """Whether a request fits all limits. A scope without a standing has spent nothing."""
    refused: list[Limit] = []
    near: dict[Scope, None] = {}
    for limit in limits:
        at = standings.get(limit.scope, Standing())
        fit = decide_budget(at.spent(limit.period), at.reserved_usd, limit.usd, wanted, warn_at=warn_at)
        if fit is Fit.REFUSED:
            refused.append(limit)
        elif fit is Fit.WARN:
            near[limit.scope] = None
    if refused:
        return Ruling(max(refused, key=lambda limit: limit.period is Period.MONTH))
    return Ruling(near=tuple(near))


def utc_day(time: datetime) -> str:
    """As `2026-11-22`; the first of its month is the smallest of them."""
    return time.astimezone(UTC).date().isoformat()


def first_of_month(time: datetime) -> str:
    """The day with which the month of that time begins, as `2026-11-01`."""
    return time.astimezone(UTC).date().replace(day=1).isoformat()


def renews_at(period: Period, now: datetime) -> datetime:
    """When the next day or month begins."""
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if period is Period.DAY:
        return today + timedelta(days=1)
    return (today.replace(day=1) + timedelta(days=32)).replace(day=1)
