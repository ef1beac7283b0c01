"""A sync: a durable run that reads sources side by side and publishes what was read (inventory S24, S25).

Each source is a step of its own, so that a process that dies goes on with those that were not read yet; one that cannot
be read does not keep the others back. The web starts runs and lets them go, or follows them (`following`); the command
line waits for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, cast

import anyio

from denizen.domain.clock import Clock
from denizen.domain.errors import InvalidInput, NotFound, Unavailable
from denizen.domain.ids import fresh
from denizen.domain.json import Json, JsonObject
from denizen.domain.source import SyncRun, SyncStatus
from denizen.engine.knowledge.pushing import Pushing
from denizen.engine.knowledge.reading import Outcome, Reading, Sleep
from denizen.engine.knowledge.snapshots import Snapshots
from denizen.engine.knowledge.sources import missing
from denizen.ports.durable import Durable
from denizen.ports.source import ReadingProgress
from denizen.ports.store import Store

WORKFLOW = "knowledge_sync"
PUBLISH_RETRIES = 3
REMOTE = "(remote)"
"""Stands among the sources for the repository that snapshots are pushed to; no source can have such an id."""
WAIT_S = 2.0


@dataclass(frozen=True, slots=True)
class _Order:
    """What was asked for, as it is in the durable log."""

    id: str
    sources: tuple[str, ...]
    reset: bool
    push: bool
    started_at: datetime

    def to_json(self) -> JsonObject:
        return {
            "id": self.id, "sources": list(self.sources), "reset": self.reset, "push": self.push,
            "started_at": self.started_at.isoformat(),
        }  # fmt: skip

    @classmethod
    def of_json(cls, payload: Mapping[str, Any]) -> _Order:
        started_at = datetime.fromisoformat(payload["started_at"])
        return cls(payload["id"], tuple(payload["sources"]), payload["reset"], payload["push"], started_at)

    @property
    def run(self) -> SyncRun:
        return SyncRun(id=self.id, sources=self.sources, started_at=self.started_at)


@dataclass(frozen=True, slots=True)
class Work:
    """What a sync does, in this order."""

    reading: Reading
    snapshots: Snapshots
    pushing: Pushing


class Sync:
    """One for a process. `register` comes before the durable log is opened."""

    def __init__(self, store: Store, durable: Durable, clock: Clock, work: Work, *, sleep: Sleep) -> None:
        self._store = store
        self._durable = durable
        self._clock = clock
        self._reading = work.reading
        self._snapshots = work.snapshots
        self._pushing = work.pushing
        self._sleep = sleep
        self._begun: dict[str, SyncRun] = {}
        self._progress: dict[str, dict[str, ReadingProgress]] = {}
        self._asked: dict[str, SyncRun] = {}
        self._asking = anyio.Lock()
        self._tell_published: Callable[[], None] = lambda: None

    def tell_of_published(self, tell: Callable[[], None]) -> None:
        """Called whenever a run here has published, before it ends."""
        self._tell_published = tell

    def register(self) -> None:
        self._durable.register(WORKFLOW, self._run)

    async def start(self, only: Sequence[str] = (), *, reset: bool = False, push: bool = True) -> SyncRun:
        """Starts reading all sources, or these, and returns at once. With `reset` everything is fetched anew;
        without `push` nothing goes to the remote for snapshots, if one is configured.

        Raises InvalidInput when there are no sources, NotFound for one that is not there.
        """
        async with self._store.work(write=False) as work:
            known = [source.id for source in await work.sources.list_sources()]
        for each in only:
            if each not in known:
                raise missing(each)
        if not known:
            raise InvalidInput(
                "There is nothing to read.",
                code="no_sources",
                why="No source was added yet.",
                fix="Add one: `denizen sources add owner/repo`, or a folder.",
            )
        chosen = tuple(each for each in known if not only or each in only)
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
            return _run_of_json(run, await self._durable.wait(run.id))
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
        """Of each source that this process has begun to read for the run."""
        return dict(self._progress.get(run_id, {}))

    async def list_runs(self, *, limit: int = 20) -> Sequence[SyncRun]:
        """Newest first."""
        async with self._store.work(write=False) as work:
            return await work.sources.list_syncs(limit=limit)

    async def _run(self, payload: JsonObject) -> Json:
        order = _Order.of_json(payload)
        await self._durable.step("open", partial(self._open, order))
        outcomes = await self._durable.gather(
            *((f"read {each}", partial(self._read, order, each)) for each in order.sources)
        )
        told = [Outcome(**cast("dict[str, Any]", outcome)) for outcome in outcomes]
        snapshot = await self._durable.step("publish", partial(self._publish, order))
        pushed = await self._durable.step("push", self._pushing.push) if order.push and snapshot else ""
        return await self._durable.step("end", partial(self._end, order, told, str(snapshot), str(pushed)))

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
        snapshot = await self._insist_on_snapshot(anew=order.reset)
        self._tell_published()
        return snapshot

    async def _end(self, order: _Order, outcomes: Sequence[Outcome], snapshot: str, not_pushed: str) -> Json:
        skipped = {outcome.source_id: outcome.error for outcome in outcomes if outcome.skipped}
        failed = {outcome.source_id: outcome.error for outcome in outcomes if outcome.error and not outcome.skipped}
        status = SyncStatus.DONE
        if failed or not_pushed:
            status = SyncStatus.FAILED if failed and len(failed) == len(outcomes) else SyncStatus.PARTIAL
        failed |= {REMOTE: not_pushed} if not_pushed else {}
        ended = replace(
            order.run,
            ended_at=self._clock.now(),
            status=status,
            snapshot=snapshot,
            changed=tuple(outcome.source_id for outcome in outcomes if outcome.changed),
            failed=failed,
            skipped=skipped,
        )
        async with self._store.work() as work:
            await work.sources.put_sync(ended)
        self._snapshots.forget_status()
        self._leave(order.id)
        return _run_to_json(ended)

    async def _insist_on_snapshot(self, *, anew: bool) -> str:
        """The id of the current snapshot; empty when nothing was ever read."""
        attempt = 0
        while True:
            try:
                made = await self._snapshots.publish(anew=anew)
            except Unavailable:
                attempt += 1
                if attempt > PUBLISH_RETRIES:
                    raise
                await self._sleep(attempt * WAIT_S)
            else:
                return "" if made is None else made.id


def _run_to_json(run: SyncRun) -> Json:
    return {
        "ended_at": run.ended_at.isoformat() if run.ended_at else None, "status": run.status.value,
        "snapshot": run.snapshot, "changed": list(run.changed), "failed": run.failed,
        "skipped": run.skipped,
    }  # fmt: skip


def _run_of_json(run: SyncRun, result: Json) -> SyncRun:
    told = cast("dict[str, Any]", result)
    return replace(
        run,
        ended_at=datetime.fromisoformat(told["ended_at"]),
        status=SyncStatus(told["status"]),
        snapshot=told["snapshot"],
        changed=tuple(told["changed"]),
        failed=dict(told["failed"]),
        skipped=dict(told.get("skipped", {})),
    )
