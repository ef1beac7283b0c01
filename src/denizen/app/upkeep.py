"""What Denizen tells of itself to the skill `system`, and being begun anew (inventory 1.6, system).

A restart is graceful and needs no supervisor: the server ends as it does on SIGTERM, which leaves turns that need
longer to the next process, everything is closed, and then the process replaces itself by the same command line
(`cli/run.py`). Under systemd or Docker it keeps its process id.
"""

from __future__ import annotations

from datetime import timedelta

import anyio

from denizen.domain.budget import SERVER
from denizen.domain.clock import Clock
from denizen.domain.errors import NotAllowed
from denizen.ports.store import Store
from denizen.skill.services import CacheUsage, SpendingSummary

CACHE_DAYS = 7


class Restart:
    """Asked for by a tool, heard by the server. `is_possible` once a server runs."""

    def __init__(self) -> None:
        self.is_possible = False
        self.wanted = anyio.Event()


class HomeUpkeep:
    """Implements `denizen.skill.InstanceControl`."""

    def __init__(self, store: Store, clock: Clock, restart: Restart) -> None:
        self._store = store
        self._clock = clock
        self._restart = restart

    async def spent(self) -> SpendingSummary:
        async with self._store.work(write=False) as work:
            at = (await work.spending.read([SERVER], now=self._clock.now()))[SERVER]
        return SpendingSummary(at.day_usd, at.month_usd, at.day_requests, at.month_requests)

    async def cache_usage(self) -> CacheUsage:
        since = self._clock.now() - timedelta(days=CACHE_DAYS)
        async with self._store.work(write=False) as work:
            used = await work.ledger.list_usage(since=since)
        rows = [row for row in used if row.agent]  # vectors are nobody's, and have no cache
        return CacheUsage(
            CACHE_DAYS,
            sum(row.usage.input_tokens for row in rows),
            sum(row.usage.cache_read_tokens for row in rows),
            sum(row.usage.cache_write_tokens for row in rows),
        )

    def restart(self) -> None:
        """Raises NotAllowed where nothing runs for long."""
        if not self._restart.is_possible:
            raise NotAllowed(
                "There is nothing to restart here.",
                code="restart_nothing",
                why="Only `denizen run` runs for long; a command in a terminal ends with its answer.",
                fix="Ask where Denizen runs as a server.",
            )
        self._restart.wanted.set()
