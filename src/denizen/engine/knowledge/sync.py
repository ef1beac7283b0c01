"""A sync: a durable run that reads sources side by side, publishes a snapshot, and pushes it where a remote is set.

`follow_sync` tells how far a run is until it has ended and its documents are indexed.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from functools import partial
from typing import Any, cast

import anyio

from denizen.domain.clock import Clock
from denizen.domain.errors import DenizenError, InvalidInput, NotFound
from denizen.domain.ids import fresh
from denizen.domain.json import Json, JsonObject
from denizen.domain.record import record
from denizen.domain.snapshot import RemoteRepository
from denizen.domain.source import SyncRun, SyncStatus
from denizen.engine.knowledge.index import INDEX
from denizen.engine.knowledge.reading import (
    RETRIES,
    ReadingOutcome,
    Sleep,
    SourceReadings,
    describe_in_line,
    retry_unavailable,
)
from denizen.engine.knowledge.snapshots import SnapshotPublisher
from denizen.engine.knowledge.sources import source_not_found
from denizen.ports.durable import DurableExecution
from denizen.ports.source import Library, ReadingProgress, SnapshotUploader
from denizen.ports.store import Store

_log = logging.getLogger("denizen.knowledge.sync")


class SnapshotPush:
    """`remote` is asked each time."""

    def __init__(
        self, library: Library, repository: SnapshotUploader, remote: Callable[[], RemoteRepository], *, sleep: Sleep
    ) -> None:
        self._library = library
        self._repository = repository
        self._remote = remote
        self._sleep = sleep

    async def push(self) -> str:
        """Pushes the snapshot. Returns what went wrong, in a sentence; empty when nothing did, or there is nothing to
        do.
        """
        remote = self._remote()
        if not remote.location:
            return ""

        async def push() -> None:
            async with self._library.hold() as folder:
                snapshot = await self._library.current()
                if folder is not None and snapshot is not None:
                    await self._repository.push(remote, snapshot, folder)

        try:
            await retry_unavailable(push, RETRIES, self._sleep)
        except DenizenError as error:
            _log.warning("the snapshot was not pushed", extra=error.fields)
            return describe_in_line(error)
        return ""


WORKFLOW = "knowledge_sync"
PUBLISH_RETRIES = 3
REMOTE = "(remote)"
SNAPSHOT = "(snapshot)"
"""They stand among the sources for the repository that snapshots are pushed to, and for the snapshot itself; no source
can have such an id.
"""


@record
class _Order:
    """The order for a sync, as it stands in the durable log."""

    id: str
    sources: tuple[str, ...]
    reset: bool
    push: bool
    started_at: datetime

    def to_json(self) -> JsonObject:
        return {
            "id": self.id,
            "sources": list(self.sources),
            "reset": self.reset,
            "push": self.push,
            "started_at": self.started_at.isoformat(),
        }

    @classmethod
    def of_json(cls, payload: Mapping[str, Any]) -> _Order:
        started_at = datetime.fromisoformat(payload["started_at"])
        return cls(payload["id"], tuple(payload["sources"]), payload["reset"], payload["push"], started_at)

    @property
    def run(self) -> SyncRun:
        return SyncRun(id=self.id, sources=self.sources, started_at=self.started_at)


@record
class SyncDeps:
    """The parts of a sync, in the order in which they work."""

    reading: SourceReadings
    snapshots: SnapshotPublisher
    pushing: SnapshotPush
    on_published: Callable[[], None] = lambda: None
    """Called whenever a run has published, before it ends."""


class KnowledgeSync:
    """One for a process. `register` comes before the durable log is opened."""

    def __init__(self, store: Store, durable: DurableExecution, clock: Clock, work: SyncDeps, *, sleep: Sleep) -> None:
        self._store = store
        self._durable = durable
        self._clock = clock
        self._reading = work.reading
        self._snapshots = work.snapshots
        self._pushing = work.pushing
        self._on_published = work.on_published
        self._sleep = sleep
        self._begun: dict[str, SyncRun] = {}
        self._progress: dict[str, dict[str, ReadingProgress]] = {}
        self._asked: dict[str, SyncRun] = {}
        self._asking = anyio.Lock()

    def register(self) -> None:
        self._durable.register(WORKFLOW, self._run)

    async def start(self, only: Sequence[str] = (), *, reset: bool = False, push: bool = True) -> SyncRun:
        """Starts reading these sources, or all except those that people have added for their community, which nobody
        else waits for; returns at once. With `reset` everything is fetched anew; without `push` nothing goes to the
        remote for snapshots, if one is configured.

        Raises InvalidInput when there are no sources, NotFound for one that is not there.
        """
        async with self._store.work(write=False) as work:
            sources = await work.sources.list_sources()
        known = [source.id for source in sources]
        for each in only:
            if each not in known:
                raise source_not_found(each)
        if not known:
            raise InvalidInput(
                "There is nothing to read.",
                code="no_sources",
                why="No source was added yet.",
                fix="Add one: `denizen sources add owner/repo`, or a folder.",
            )
        chosen = tuple(each.id for each in sources if each.id in only or not (only or each.is_made_by_guild))
        return await self._submit(_Order(fresh("sync"), chosen, reset, push, self._clock.now()))

    async def start_publishing(self) -> SyncRun:
        """Publishes, and pushes, what was read last, and reads nothing; returns at once."""
        return await self._submit(_Order(fresh("sync"), (), False, True, self._clock.now()))  # noqa: FBT003

    async def ask(self, source_id: str) -> SyncRun:
        """Has one source read by a run of its own, or by the one that waits for it already: whoever asks while it is
        being read gets one more reading, however many ask. Raises NotFound.
        """
        async with self._asking:
            waiting = self._asked.get(source_id)
            if waiting is not None and waiting.id in self._begun and source_id not in self._progress[waiting.id]:
                return waiting
            self._asked[source_id] = run = await self.start([source_id])
            return run

    async def _submit(self, order: _Order) -> SyncRun:
        self._begun[order.id] = order.run
        self._progress[order.id] = {}
        await self._durable.submit(WORKFLOW, order.id, order.to_json())
        return order.run

    async def wait(self, run: SyncRun) -> SyncRun:
        """The run when it has ended."""
        try:
            return _parse_run(run, await self._durable.wait(run.id))
        finally:
            self._leave(run.id)

    async def get(self, run_id: str) -> SyncRun:
        """Also one that was only just begun here and is not in the store yet. Raises NotFound."""
        async with self._store.work(write=False) as work:
            found = await work.sources.find_sync(run_id)
        found = found or self._begun.get(run_id)
        if found is None:
            raise NotFound(
                f"There is no sync {run_id}.", code="sync_not_found", fix="GET /api/sync lists the last ones."
            )
        return found

    def progress(self, run_id: str) -> Mapping[str, ReadingProgress]:
        """Returns the progress of each source that this process reads for the run."""
        return dict(self._progress.get(run_id, {}))

    async def list_runs(self, *, limit: int = 20) -> Sequence[SyncRun]:
        """Newest first."""
        async with self._store.work(write=False) as work:
            return await work.sources.list_syncs(limit=limit)

    async def _run(self, payload: JsonObject) -> Json:
        order = _Order.of_json(payload)
        told: list[ReadingOutcome] = []
        await self._durable.step("open", partial(self._open, order))
        try:
            outcomes = await self._durable.gather(
                *((f"read {each}", partial(self._read, order, each)) for each in order.sources)
            )
            told = [ReadingOutcome(**cast("dict[str, Any]", outcome)) for outcome in outcomes]
            snapshot = await self._durable.step("publish", partial(self._publish, order))
            pushed = await self._durable.step("push", self._pushing.push) if order.push and snapshot else ""
        except DenizenError as error:
            # Who looks at the store must not see a run that goes on for ever; who waits for it gets the error itself.
            await self._durable.step("end", partial(self._end, order, told, "", {SNAPSHOT: describe_in_line(error)}))
            raise
        failed = {REMOTE: str(pushed)} if pushed else {}
        return await self._durable.step("end", partial(self._end, order, told, str(snapshot), failed))

    def _leave(self, run_id: str) -> None:
        self._begun.pop(run_id, None)
        self._progress.pop(run_id, None)

    async def _open(self, order: _Order) -> Json:
        self._begun[order.id] = order.run  # also one that another process began
        async with self._store.work() as work:
            await work.sources.put_sync(order.run)
        return None

    async def _read(self, order: _Order, source_id: str) -> Json:
        board = self._progress.setdefault(order.id, {})

        def report(progress: ReadingProgress) -> None:
            board[source_id] = progress

        return asdict(await self._reading.read(source_id, report, reset=order.reset))

    async def _publish(self, order: _Order) -> Json:
        """Returns the id of the current snapshot; empty when nothing was ever read."""
        publish = partial(self._snapshots.publish, anew=order.reset)
        made = await retry_unavailable(publish, PUBLISH_RETRIES, self._sleep)
        self._on_published()
        return "" if made is None else made.id

    async def _end(
        self, order: _Order, outcomes: Sequence[ReadingOutcome], snapshot: str, faults: Mapping[str, str]
    ) -> Json:
        skipped = {outcome.source_id: outcome.error for outcome in outcomes if outcome.skipped}
        failed = {outcome.source_id: outcome.error for outcome in outcomes if outcome.error and not outcome.skipped}
        status = SyncStatus.DONE
        if failed or faults:
            is_lost = SNAPSHOT in faults or (failed and len(failed) == len(outcomes))
            status = SyncStatus.FAILED if is_lost else SyncStatus.PARTIAL
        ended = replace(
            order.run,
            ended_at=self._clock.now(),
            status=status,
            snapshot=snapshot,
            changed=tuple(outcome.source_id for outcome in outcomes if outcome.changed),
            failed={**failed, **faults},
            skipped=skipped,
            left_out={outcome.source_id: outcome.left_out for outcome in outcomes if outcome.left_out},
        )
        async with self._store.work() as work:
            await work.sources.put_sync(ended)
        self._snapshots.forget_status()
        self._leave(order.id)
        return _format_run(ended)


def _format_run(run: SyncRun) -> Json:
    return {
        "ended_at": run.ended_at.isoformat() if run.ended_at else None,
        "status": run.status.value,
        "snapshot": run.snapshot,
        "changed": list(run.changed),
        "failed": run.failed,
        "skipped": run.skipped,
        "left_out": run.left_out,
    }


def _parse_run(run: SyncRun, result: Json) -> SyncRun:
    told = cast("dict[str, Any]", result)
    return replace(
        run,
        ended_at=datetime.fromisoformat(told["ended_at"]),
        status=SyncStatus(told["status"]),
        snapshot=told["snapshot"],
        changed=tuple(told["changed"]),
        failed=dict(told["failed"]),
        skipped=dict(told.get("skipped", {})),
        left_out=dict(told.get("left_out", {})),
    )


LOOK_EVERY_S = 0.25

FindProgress = Callable[[], ReadingProgress | None]
"""Returns the progress of the index; None while nothing is indexed."""


@record
class SyncState:
    """`progress` is of each source that this process has begun to read, and of the search index while this process
    makes it; of a run elsewhere there is none.
    """

    run: SyncRun
    progress: Mapping[str, ReadingProgress]

    @property
    def is_over(self) -> bool:
        return self.run.ended_at is not None and INDEX not in self.progress


async def follow_sync(
    sync: KnowledgeSync, run_id: str, indexing: FindProgress, *, sleep: Sleep = anyio.sleep
) -> AsyncGenerator[SyncState]:
    """The last one is the end of the run, or of indexing it. Raises NotFound."""
    told: SyncState | None = None
    while True:
        progress = sync.progress(run_id)  # before the run: what comes to an end in between is told with it
        run, indexed = await sync.get(run_id), indexing()
        stand = SyncState(run, progress if indexed is None else {**progress, INDEX: indexed})
        if stand != told:
            told = stand
            yield stand
        if stand.is_over:
            return
        await sleep(LOOK_EVERY_S)
