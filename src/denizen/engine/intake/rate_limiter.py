"""The rate limiter: it counts what rate limits bound, whoever or whatever they are about.

The counts are in the store, so all processes of one store share them and a restart forgets none. Keys name people and
addresses, so only their digests are stored.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from datetime import datetime

from denizen.domain.clock import Clock
from denizen.domain.errors import LimitExceeded
from denizen.domain.principal import Principal
from denizen.domain.rate_limit import HOUR_S, RateAllowance, RateLimit, RateLimitWait, find_allowance
from denizen.ports.store import Store, UnitOfWork


async def take_rate(work: UnitOfWork, key: str, limits: Sequence[RateLimit], *, now: datetime) -> RateLimitWait | None:
    """Counts one use with what else the unit of work writes, or counts none and returns how long to wait. Without
    limits nothing is counted.
    """
    return await work.rates.take(_digest(key), limits, now=now) if limits else None


def turn_rate_key(principal: Principal) -> str:
    """Returns the key under which what a principal asks is counted: that of its payer."""
    return f"turn\x00{principal.payer.key}"


def rate_error(excess: RateLimitWait) -> LimitExceeded:
    """Returns the error for somebody who asks too often."""
    window = "hour" if excess.limit.window_s <= HOUR_S else "day"
    minutes = math.ceil(excess.wait_s / 60)
    wait = f"{minutes} min" if minutes < 120 else f"{math.ceil(minutes / 60)} h"
    return LimitExceeded(
        f"You have asked {excess.limit.calls} times within the {window}. Please come back in {wait}.",
        code="rate_limited",
    )


class RateLimiter:
    """Counts uses in units of work of its own."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def take(self, key: str, limits: Sequence[RateLimit]) -> RateLimitWait | None:
        """Counts one use, or counts none and returns how long to wait."""
        async with self._store.work() as work:
            return await take_rate(work, key, limits, now=self._clock.now())

    async def find_allowance(self, key: str, limits: Sequence[RateLimit]) -> RateAllowance | None:
        """Returns what is left of the limits, and counts nothing; None without limits."""
        if not limits:
            return None
        async with self._store.work(write=False) as work:
            uses = await work.rates.list_uses(_digest(key))
        return find_allowance(uses, limits, now_s=self._clock.now().timestamp())

    async def give_back(self, key: str) -> None:
        """Takes the newest use back: nothing came of it."""
        async with self._store.work() as work:
            await work.rates.give_back(_digest(key))


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()
