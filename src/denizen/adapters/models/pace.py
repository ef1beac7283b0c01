"""When to try again (inventory, section 6 "Retry"; TW16): three attempts, growing pauses, Retry-After obeyed.

Pure but for the injected sleep and chance. A loop of our own instead of a retry library: a retried attempt is a stream
whose events pass through, and it may be retried only as long as none has.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio

from denizen.adapters.models.failures import Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """`most_wait_s` caps a pause: a provider that wants a longer one is taken for unavailable at once.

    `chance` gives a number from 0 to 1, so that many clients do not come back together.
    """

    attempts: int = 3
    first_pause_s: float = 0.5
    most_wait_s: float = 60.0
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    chance: Callable[[], float] = random.random

    def plan_pause_s(self, failure: Failure, attempt: int, left_s: float) -> float | None:
        """How long to wait after the failed attempt (counted from 1); None to give up.

        `left_s` is what remains of the request's time.
        """
        if not failure.retryable or attempt >= self.attempts:
            return None
        pause_s = self.first_pause_s * 2 ** (attempt - 1) * (0.5 + self.chance() / 2)
        if failure.retry_after_s is not None:
            pause_s = max(pause_s, failure.retry_after_s)
        return pause_s if pause_s <= self.most_wait_s and pause_s < left_s else None
