"""Following a sync while it runs: what it is about now, whenever that changes, until it has ended and is indexed.

Who comes late sees at once how far it is; who comes after its end sees that. Called by the web.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass

import anyio

from denizen.domain.source import SyncRun
from denizen.engine.knowledge.indexing import INDEX
from denizen.engine.knowledge.reading import Sleep
from denizen.engine.knowledge.sync import Sync
from denizen.ports.source import ReadingProgress

LOOK_EVERY_S = 0.25

FindProgress = Callable[[], ReadingProgress | None]
"""Of the index; None while nothing is indexed."""


@dataclass(frozen=True, slots=True)
class Stand:
    """`progress` is of each source that this process has begun to read, and of the search index while this process
    makes it; of a run elsewhere there is none.
    """

    run: SyncRun
    progress: Mapping[str, ReadingProgress]

    @property
    def is_over(self) -> bool:
        return self.run.ended_at is not None and INDEX not in self.progress


async def follow(
    sync: Sync, run_id: str, indexing: FindProgress, *, sleep: Sleep = anyio.sleep
) -> AsyncGenerator[Stand]:
    """The last one is the end of the run, or of indexing it. Raises NotFound."""
    told: Stand | None = None
    while True:
        progress = sync.progress(run_id)  # before the run: what comes to an end in between is told with it
        run, indexed = await sync.get(run_id), indexing()
        stand = Stand(run, progress if indexed is None else {**progress, INDEX: indexed})
        if stand != told:
            told = stand
            yield stand
        if stand.is_over:
            return
        await sleep(LOOK_EVERY_S)
