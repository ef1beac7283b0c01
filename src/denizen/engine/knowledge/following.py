"""Following a sync while it runs: what it is about now, whenever that changes, until it has ended.

Who comes late sees at once how far it is; who comes after its end sees that. Called by the web.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass

import anyio

from denizen.domain.source import SyncRun
from denizen.engine.knowledge.reading import Sleep
from denizen.engine.knowledge.sync import Sync
from denizen.ports.source import Progress

LOOK_EVERY_S = 0.25


@dataclass(frozen=True, slots=True)
class Stand:
    """`progress` is of each source that this process has begun to read; of a run elsewhere there is none."""

    run: SyncRun
    progress: Mapping[str, Progress]


async def follow(sync: Sync, run_id: str, *, sleep: Sleep = anyio.sleep) -> AsyncGenerator[Stand]:
    """The last one is the end of the run. Raises NotFound."""
    told: Stand | None = None
    while True:
        progress = sync.progress(run_id)  # before the run: what comes to an end in between is told with it
        stand = Stand(await sync.get(run_id), progress)
        if stand != told:
            told = stand
            yield stand
        if stand.run.ended_at is not None:
            return
        await sleep(LOOK_EVERY_S)
