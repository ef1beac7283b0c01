"""Reading sources again from time to time: each by its own schedule, the others by that of the configuration.

Run by the server, for as long as it runs. Channels of the archive are looked at in any case: who may read them changes,
and people take back what they said. What they took back is out of the current snapshot at once, and its channel is read
again as soon as no more follows. What people add for their community is read in runs of its own, one for each
community: nobody else waits for it.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import timedelta
from functools import partial

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
        """Channels of the archive by themselves: they wait for nothing that takes long. The operator's sources do not
        wait for those of communities.
        """
        async with anyio.create_task_group() as group:
            group.start_soon(self._keep_up)
            group.start_soon(self._keep_up_with_guilds)
            group.start_soon(self._keep_up_with_talk)
            group.start_soon(self._let_go)

    async def list_due(self) -> list[str]:
        """Ids of the sources that are to be read now."""
        return [source.id for source in await self._list_due(lambda _: True)]

    async def _list_due(self, is_meant: Callable[[Source], bool]) -> list[Source]:
        known = [each for each in await self._catalog.list_known() if is_meant(each.source)]
        if not known:
            return []
        runs = await self._sync.list_runs(limit=KNOWN_RUNS)
        return [each.source for each in known if await self._is_due(each, runs)]

    async def _keep_up(self) -> None:
        while True:
            await self._read(await self._list_due(lambda each: not _is_channel(each) and not each.is_made_by_guild))
            await self._sleep(LOOK_EVERY_S)

    async def _keep_up_with_guilds(self) -> None:
        """Nothing of communities is pushed, and so neither is after their runs."""
        while True:
            guilds = defaultdict[str, list[Source]](list)
            for source in await self._list_due(lambda each: not _is_channel(each) and each.is_made_by_guild):
                guilds[source.guild].append(source)
            async with anyio.create_task_group() as group:
                for due in guilds.values():
                    group.start_soon(partial(self._read, due, push=False))
            await self._sleep(LOOK_EVERY_S)

    async def _keep_up_with_talk(self) -> None:
        while True:
            changed = self._changed.next
            await self._read(await self._list_due(_is_channel))
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

    async def _read(self, due: Collection[Source], *, push: bool = True) -> None:
        """A sync that fails is over, and tried again when its sources are due again."""
        if not due:
            return
        ids = [source.id for source in due]
        try:
            await self._sync.wait(await self._sync.start(ids, push=push))
        except DenizenError as error:  # also when one of them was removed since
            _log.warning("a sync failed", extra={"sources": ids, **_told(error)})

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


def _is_channel(source: Source) -> bool:
    return source.kind is SourceKind.ARCHIVE


def _told(error: DenizenError) -> dict[str, object]:
    return error.fields | {"why": error.why or error.message}
