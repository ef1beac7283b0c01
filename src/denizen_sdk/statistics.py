"""Usage as clients see it: sums over days.

Plain dataclasses, as in `records`; may be imported from `wire`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UsageSum:
    """What was used under `key`: a model, a source, a user's key, a day, an hour (`00` to `23`); empty for a total.
    `name` is what a user is called. `messages` were answered by a model, or reported; `input_tokens` includes the
    cached ones. `cost_usd` is an estimate by list prices, None when no price is known.
    """

    key: str
    messages: int
    requests: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    duration_ms: int
    cost_usd: str | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class UsageTrend:
    """How much more than in as many days before, in percent; None where there was nothing to compare with."""

    messages_percent: float | None
    tokens_percent: float | None
    cost_percent: float | None


@dataclass(frozen=True, slots=True)
class UsageOverview:
    """Usage of `days` days (UTC), with today. `daily` has all of them and `hourly` all hours of a day, in order; the
    others come with most messages first, at most 100 models and sources, and 10 users. One's own have neither
    `top_users` nor `hourly`. `feedback_score` is the share of good votes among all, from 0 to 1; None while there are
    none.
    """

    days: int
    first_day: str
    last_day: str
    totals: UsageSum
    previous: UsageSum
    trend: UsageTrend
    by_model: tuple[UsageSum, ...]
    by_source: tuple[UsageSum, ...]
    daily: tuple[UsageSum, ...]
    top_users: tuple[UsageSum, ...] | None = None
    hourly: tuple[UsageSum, ...] | None = None
    feedback_score: float | None = None
