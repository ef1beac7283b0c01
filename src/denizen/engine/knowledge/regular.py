"""Reading all sources again from time to time. Run by the server, for as long as it runs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import anyio

from denizen.domain.clock import Clock
from denizen.engine.knowledge.reading import Sleep
from denizen.engine.knowledge.sources import Catalog
from denizen.engine.knowledge.sync import Sync

LOOK_EVERY_S = 20.0


class RegularSync:
    """`every` is asked each time, None for never. The last sync counts whoever asked for it, before a restart too."""

    def __init__(
        self,
        sync: Sync,
        catalog: Catalog,
        clock: Clock,
        every: Callable[[], timedelta | None],
        *,
        sleep: Sleep = anyio.sleep,
    ) -> None:
        self._sync = sync
        self._catalog = catalog
        self._clock = clock
        self._every = every
        self._sleep = sleep

    async def run(self) -> None:
        while True:
            if await self.is_due():
                await self._sync.wait(await self._sync.start())
            await self._sleep(LOOK_EVERY_S)

    async def is_due(self) -> bool:
        every = self._every()
        if every is None or not await self._catalog.list_known():
            return False
        runs = await self._sync.list_runs(limit=1)
        return not runs or self._clock.now() - runs[0].started_at >= every
