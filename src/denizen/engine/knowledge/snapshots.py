"""Snapshots: what was read of all sources, published for agents, and for how long it is kept.

The current snapshot is replaced in one step, and never expires. Called by `sync` and `sources`, and by who asks for
the status.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime

import anyio

from denizen.domain.clock import Clock
from denizen.domain.errors import DenizenError
from denizen.domain.snapshot import KEEP, Snapshot, SnapshotStatus, explain_need, is_outdated, plan_parts
from denizen.domain.source import Source, SourceState
from denizen.engine.archive.mirror import withhold_sources
from denizen.ports.source import Library
from denizen.ports.store import Store, UnitOfWork

STATUS_S = 60.0
"""How long a status is told again before it is found out anew."""

_log = logging.getLogger("denizen.knowledge")


class SnapshotPublisher:
    """One for a process; others may publish at the same time, one after the other."""

    def __init__(self, store: Store, library: Library, clock: Clock) -> None:
        self._store = store
        self._library = library
        self._clock = clock
        self._status: tuple[float, SnapshotStatus] | None = None
        self._status_lock = anyio.Lock()
        self._changes = 0

    async def publish(self, *, anew: bool = False) -> Snapshot | None:
        """Makes what was last read of each source current, and removes what is too old. None when nothing was read
        yet. Raises Conflict when files are gone, NeedsAttention for a disk that is full: the current snapshot stays
        then, but for talk that may have been taken back.
        """
        async with self._library.alone():
            async with self._store.work(write=False) as work:
                sources, states = await _load_sources(work)
            now = self._clock.now()
            parts = plan_parts(sources, states, now)
            if not parts and await self._library.current() is None:
                return None
            manifests = [part.manifest for part in parts]
            try:
                snapshot = await self._library.publish(parts, now=now, anew=anew)
            except DenizenError:
                await self._hide_outdated(manifests, now)
                raise
            await self._library.expire(before=now - KEEP, manifests=manifests)
        self.forget_status()
        return snapshot

    async def withdraw(self, platform: str) -> bool:
        """Takes the platform's talk out of all snapshots until its sources are read anew, which is due at once. For
        when something of it was forgotten. Returns False when no source reads anything of it.
        """
        async with self._store.work() as work:
            is_withheld = await withhold_sources(work, platform)
        if is_withheld:
            await self.settle()
        return is_withheld

    async def settle(self) -> bool:
        """Publishes without what was withheld since the current snapshot was made, by whichever process. False when
        there is nothing of it in that. Raises as `publish`: it is out of what agents see all the same.
        """
        async with self._store.work(write=False) as work:
            sources, states = await _load_sources(work)
        current = await self._library.current()
        manifests = [part.manifest for part in plan_parts(sources, states, self._clock.now())]
        if current is None or not is_outdated(current, manifests):
            return False
        await self.publish()
        return True

    async def _hide_outdated(self, manifests: Sequence[str], now: datetime) -> None:
        """Agents see the current snapshot without talk that is not as it was last read; nothing where even that cannot
        be made.
        """
        current = await self._library.current()
        if current is None or not is_outdated(current, manifests):
            return
        left = [part for part in current.parts if not part.is_talk or part.manifest in manifests]
        try:
            await self._library.publish(left, now=now)
        except DenizenError as error:
            _log.warning("agents have no snapshot until one can be published", extra=error.fields)
            await self._library.clear()
        self.forget_status()
        await self._library.expire(before=now - KEEP, manifests=manifests)

    async def clear(self) -> None:
        """Agents have no snapshot until the next is published."""
        async with self._library.alone():
            await self._library.clear()
        self.forget_status()

    async def status(self) -> SnapshotStatus:
        """Found out at most once a minute, and after every change that this process makes."""
        async with self._status_lock:
            now_s, changes = self._clock.monotonic_s(), self._changes
            if self._status is not None and now_s - self._status[0] < STATUS_S:
                return self._status[1]
            async with self._store.work(write=False) as work:
                sources, states = await _load_sources(work)
                ended = [run.ended_at for run in await work.sources.list_syncs() if run.ended_at is not None]
            made, current = await self._library.list_snapshots(), await self._library.current()
            is_there = bool(self._library.list_folders())  # somebody may have removed it
            now = current.id if current is not None and is_there else ""
            status = SnapshotStatus(
                current=now,
                latest=made[0].id if made else "",
                latest_at=made[0].created_at if made else None,
                last_sync_at=max(ended, default=None),
                why=explain_need(sources, states, now, plan_parts(sources, states, self._clock.now())),
            )
            if changes == self._changes:  # otherwise it may be of before the change
                self._status = now_s, status
            return status

    def forget_status(self) -> None:
        self._status = None
        self._changes += 1

    async def list_snapshots(self) -> Sequence[Snapshot]:
        """Newest first."""
        return await self._library.list_snapshots()

    async def verify(self, snapshot_id: str = "") -> Sequence[str]:
        """Lists what is wrong with a snapshot (the current one without an id), a sentence each. Raises NotFound."""
        current = await self._library.current()
        return await self._library.verify(snapshot_id or (current.id if current else ""))


async def _load_sources(work: UnitOfWork) -> tuple[Sequence[Source], Mapping[str, SourceState]]:
    """Returns the sources, and what was last read of each by its id."""
    return await work.sources.list_sources(), {each.source_id: each for each in await work.sources.list_states()}
