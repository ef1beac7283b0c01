"""How often something may be done: rate limits over sliding windows."""

from __future__ import annotations

from collections.abc import Sequence

from denizen.domain.record import record

HOUR_S = 3600
DAY_S = 24 * HOUR_S


@record
class RateLimit:
    """At most `calls` in `window_s` seconds."""

    calls: int
    window_s: float


@record
class RateLimitWait:
    """The limit that is used up, and the seconds until it is not."""

    limit: RateLimit
    wait_s: float


@record
class RateAllowance:
    """The limit that is nearest to being used up, and how many uses are left within it."""

    limit: RateLimit
    remaining: int


def find_allowance(uses: Sequence[float], limits: Sequence[RateLimit], *, now_s: float) -> RateAllowance | None:
    """Returns what is left of the limits; None without limits. `uses` are as for `find_wait`."""
    used = [sum(now_s - each.window_s < use <= now_s + each.window_s for use in uses) for each in limits]
    left = [RateAllowance(limit, max(limit.calls - count, 0)) for limit, count in zip(limits, used, strict=True)]
    return min(left, key=lambda each: each.remaining, default=None)


def find_wait(uses: Sequence[float], limits: Sequence[RateLimit], *, now_s: float) -> RateLimitWait | None:
    """Returns the longest wait until one more use is within all limits; None if it is now.

    `uses` are the times of those that counted, oldest first.
    """
    waits = [RateLimitWait(limit, _wait_s(uses, limit, now_s)) for limit in limits]
    longest = max(waits, key=lambda each: each.wait_s, default=None)
    return longest if longest is not None and longest.wait_s > 0 else None


def _wait_s(uses: Sequence[float], limit: RateLimit, now_s: float) -> float:
    """`calls` is 1 or more. Uses beyond the window ahead are of a clock that was wrong: they would never be over."""
    known = [use for use in uses if use <= now_s + limit.window_s]
    if len(known) < limit.calls:
        return 0.0
    return min(known[-limit.calls] + limit.window_s - now_s, limit.window_s)
