"""Reading sources again from time to time: each by its own schedule, the others by that of the configuration.

Run by the server, for as long as it runs. Channels of the archive are looked at in any case: who may read them changes,
and people take back what they said. What they took back is out of the current snapshot at once, and its channel is read
again as soon as no more follows.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import timedelta

import anyio

from denizen.domain.clock import Clock
from denizen.domain.errors import DenizenError
from denizen.domain.record import record
from denizen.domain.source import Source, SourceKind, SourceState, SyncRun
from denizen.engine.events.signal import Signal
from denizen.engine.knowledge.reading import Sleep
from denizen.engine.knowledge.sources import SourceCatalog, SourceListing
from denizen.engine.knowledge.sync import KnowledgeSync

LOOK_EVERY_S = 20.0
TALK_EVERY = timedelta(minutes=30)
"""How often a channel of the archive is read at least."""

KNOWN_RUNS = 50
"""So many of the last syncs tell when a source was read."""

QUIET_S = 2.0
"""Who deletes one message often deletes another: so long nothing follows before a channel is read again."""
QUIET_LOOKS = 5
"""So often that is waited for: some channels are never quiet."""

_log = logging.getLogger("denizen.knowledge")

IsUrgent = Callable[[Source, SourceState], Awaitable[bool]]
"""Whether a channel of the archive is to be read whatever the time is (`engine/archive/channel_source`)."""


@record
class WithheldTalkRefresh:
    """`let_go` takes out of what agents see what was withheld; it is called whenever that may be so. The `signals` say
    that something of the archive was withheld, or that its channels can be read again.
    """

    is_urgent: IsUrgent
    let_go: Callable[[], Awaitable[object]]
    signals: Sequence[Signal] = ()


class SyncSchedule:
    """`every` is asked each time, None for never. The last sync counts whoever asked for it, before a restart too."""

    def __init__(
        self,
        sync: KnowledgeSync,
        catalog: SourceCatalog,
        clock: Clock,
        every: Callable[[], timedelta | None],
        talk: WithheldTalkRefresh,
        *,
        sleep: Sleep = anyio.sleep,
    ) -> None:
        self._sync = sync
        self._catalog = catalog
        self._clock = clock
        self._every = every
        self._talk = talk
        self._sleep = sleep
        self._changed = Signal(*talk.signals)
        self._logged_code = ""
        """The error of the last `let_go`, which is logged once."""

    async def run(self) -> None:
        """Channels of the archive by themselves: they wait for nothing that takes long."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._keep_up)
            group.start_soon(self._keep_up_with_talk)
            group.start_soon(self._let_go)

    async def list_due(self, kinds: Collection[SourceKind] = tuple(SourceKind)) -> list[str]:
        """Ids of the sources of these kinds that are to be read now."""
        known = [each for each in await self._catalog.list_known() if each.source.kind in kinds]
        if not known:
            return []
        runs = await self._sync.list_runs(limit=KNOWN_RUNS)
        return [each.source.id for each in known if await self._is_due(each, runs)]

    async def _keep_up(self) -> None:
        while True:
            await self._read_due(frozenset(SourceKind) - {SourceKind.ARCHIVE})
            await self._sleep(LOOK_EVERY_S)

    async def _keep_up_with_talk(self) -> None:
        while True:
            changed = self._changed.next
            await self._read_due(frozenset({SourceKind.ARCHIVE}))
            with anyio.move_on_after(LOOK_EVERY_S):
                await changed.wait()
            for _ in range(QUIET_LOOKS):
                if not changed.is_set():
                    break
                changed = self._changed.next
                await self._sleep(QUIET_S)

    async def _let_go(self) -> None:
        """First what an earlier process withheld. Channels of which nobody can tell any more go with a look, too.
        What cannot be published is tried again with the next look, and keeps nobody from reading.
        """
        while True:
            changed = self._changed.next
            try:
                await self._talk.let_go()
                self._logged_code = ""
            except DenizenError as error:
                if error.code != self._logged_code:
                    _log.warning("what was withheld could not be published without", extra=_told(error))
                self._logged_code = error.code
            with anyio.move_on_after(LOOK_EVERY_S):
                await changed.wait()

    async def _read_due(self, kinds: Collection[SourceKind]) -> None:
        """A sync that fails is over, and tried again when its sources are due again."""
        if due := await self.list_due(kinds):
            run = await self._sync.start(due)
            try:
                await self._sync.wait(run)
            except DenizenError as error:
                _log.warning("a sync failed", extra={"sync": run.id, **_told(error)})

    async def _is_due(self, known: SourceListing, runs: Sequence[SyncRun]) -> bool:
        """Runs begin before anything is known of a source, and those of long ago are not listed any more."""
        source, state = known.source, known.state
        every = source.every or self._every()
        if source.kind is SourceKind.ARCHIVE:
            every = min(every or TALK_EVERY, TALK_EVERY)
            if state is not None and await self._talk.is_urgent(source, state):
                return True
        if every is None:
            return False
        tried = [run.started_at for run in runs if source.id in run.sources]
        tried += [state.tried_at] if state is not None and state.tried_at is not None else []
        return not tried or self._clock.now() - max(tried) >= every


def _told(error: DenizenError) -> dict[str, object]:
    return error.fields | {"why": error.why or error.message}
