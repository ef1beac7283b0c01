"""Retention: what the operator's policy does not admit any more is deleted.

That is posts that are too old, a piece at a time so that nothing waits long, and what was kept of users and channels
before the configuration opted them out. What people opt out of themselves goes at once, in `privacy`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

import anyio

from denizen.domain.archiving import ArchivePolicy, OptOuts
from denizen.domain.clock import Clock
from denizen.domain.errors import Unavailable
from denizen.ports.store import Store

PIECE = 200
PAUSE_S = 0.05
INTERVAL_S = 3600.0

_log = logging.getLogger("denizen.archive")

Sleep = Callable[[float], Awaitable[None]]


class Retention:
    """`policy` is asked each time: it may change while Denizen runs."""

    def __init__(
        self, store: Store, policy: Callable[[], ArchivePolicy], clock: Clock, *, sleep: Sleep = anyio.sleep
    ) -> None:
        self._store = store
        self._policy = policy
        self._clock = clock
        self._sleep = sleep
        self._emptied: set[tuple[str, str]] = set()

    async def run(self, platforms: Sequence[str]) -> None:
        """Sweeps now and every hour, until it is cancelled."""
        while True:
            for platform in platforms:
                try:
                    await self.sweep(platform)
                except Unavailable as error:
                    _log.warning("retention waits for the store", extra={"platform": platform, "why": error.message})
            await self._sleep(INTERVAL_S)

    async def sweep(self, platform: str) -> int:
        """Also while nothing is archived any more; returns how many posts went."""
        policy = self._policy()
        total = await self._empty(platform, policy.opt_outs)
        horizon = policy.horizon(self._clock.now())
        if horizon is not None:
            total += await self._forget_before(platform, horizon)
        if total:
            _log.info("posts deleted", extra={"platform": platform, "posts": total})
        return total

    async def _forget_before(self, platform: str, horizon: datetime) -> int:
        total = 0
        while True:
            async with self._store.work() as work:
                gone = await work.archive.forget_before(platform, horizon, limit=PIECE)
            total += gone
            if gone < PIECE:
                return total
            await self._sleep(PAUSE_S)

    async def _empty(self, platform: str, opt_outs: OptOuts) -> int:
        """Once for each user and channel: nothing of theirs comes in any more."""
        total = 0
        for user in opt_outs.users:
            if (platform, user) not in self._emptied:
                async with self._store.work() as work:
                    total += await work.archive.forget_author(platform, user)
                self._emptied.add((platform, user))
        for channel in opt_outs.channels:
            if (platform, channel) not in self._emptied:
                async with self._store.work() as work:
                    total += await work.archive.forget_room(platform, channel)
                self._emptied.add((platform, channel))
        return total
