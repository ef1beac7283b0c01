"""The rate limiter: it counts what rate limits bound, whoever or whatever they are about."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from denizen.domain.clock import Clock
from denizen.domain.rate_limit import RateLimit, RateLimitWait
from denizen.ports.store import Store


class RateLimiter:
    """Counts uses by key in sliding windows. The counts are in the store, so all processes of one store share them and
    a restart forgets none. Keys name people and addresses, so only their digests are stored.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def take(self, key: str, limits: Sequence[RateLimit]) -> RateLimitWait | None:
        """Counts one use, or counts none and returns how long to wait. Without limits nothing is counted."""
        if not limits:
            return None
        async with self._store.work() as work:
            return await work.rates.take(_digest(key), limits, now=self._clock.now())

    async def give_back(self, key: str) -> None:
        """Takes the newest use back: nothing came of it."""
        async with self._store.work() as work:
            await work.rates.give_back(_digest(key))


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()
