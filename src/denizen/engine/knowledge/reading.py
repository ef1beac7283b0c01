"""Reading one source: a quick look whether it changed, and only then all of it; tried again when that may help.

What was read before stays until something new was read whole. What people add for their community is read in places of
its own, and for so long at most: nobody else waits for it. Called by `sync`, as one step of its run.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from typing import TypeAlias, TypeVar

import anyio

from denizen.domain.clock import Clock
from denizen.domain.errors import DenizenError, LimitExceeded, NotFound, Unavailable
from denizen.domain.record import record
from denizen.domain.source import GuildSourceLimits, Source, SourceKind, SourceReading, SourceState, describe_left_out
from denizen.engine.archive.channel_source import CHANGED
from denizen.ports.source import NO_MORE, WAITING, Library, ReadingLimits, ReadingProgress, ReportProgress, SourceReader
from denizen.ports.store import Store, UnitOfWork

RETRIES = 5
"""After a failure of what is worth another try."""
WAIT_S = 2.0
"""Times the number of the attempt."""
SIDE_BY_SIDE = 4
"""So many sources of the operator are read at a time, and as many of communities."""
GUILD_LIMIT_S = 600.0
"""The limit for one reading of what people add for their community, with all that is tried again."""

_log = logging.getLogger("denizen.knowledge.reading")

Sleep: TypeAlias = Callable[[float], Awaitable[None]]
T = TypeVar("T")


@record
class ReadingOutcome:
    """The outcome of reading a source. `error` is empty when the source was read, or need not be; `skipped` means that
    it says why the source was left as it is. `left_out` says which files of it were not kept, and why.
    """

    source_id: str
    changed: bool = False
    error: str = ""
    code: str = ""
    skipped: bool = False
    left_out: str = ""


async def retry_unavailable(
    action: Callable[[], Awaitable[T]],
    retries: int,
    sleep: Sleep,
    tell: Callable[[int, Unavailable], None] = lambda _attempt, _error: None,
) -> T:
    """Tries an action again while it raises Unavailable, after a longer wait each time. Raises the last one."""
    attempt = 0
    while True:
        try:
            return await action()
        except Unavailable as error:
            attempt += 1
            if attempt > retries:
                raise
            tell(attempt, error)
        await sleep(attempt * WAIT_S)


class SourceReadings:
    """One source at a time is read once. `guild_limits` is asked each time."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        library: Library,
        readers: Mapping[SourceKind, SourceReader],
        *,
        guild_limits: Callable[[], GuildSourceLimits] = GuildSourceLimits,
        guild_limit_s: float = GUILD_LIMIT_S,
        sleep: Sleep = anyio.sleep,
    ) -> None:
        self._store = store
        self._guild_limits = guild_limits
        self._guild_limit_s = guild_limit_s
        self._clock = clock
        self._library = library
        self._readers = readers
        self._sleep = sleep
        self._locks: defaultdict[str, anyio.Lock] = defaultdict(anyio.Lock)
        self._places = anyio.Semaphore(SIDE_BY_SIDE)
        self._guild_places = anyio.Semaphore(SIDE_BY_SIDE)
        self._guild_turns: defaultdict[str, anyio.Lock] = defaultdict(anyio.Lock)

    async def read(self, source_id: str, report: ReportProgress, *, reset: bool = False) -> ReadingOutcome:
        """Never raises for what is wrong with the source. With `reset` it is read from the beginning."""
        async with self._locks[source_id]:
            async with self._store.work(write=False) as work:
                source = await work.sources.find(source_id)
            if source is None:
                return ReadingOutcome(source_id)  # removed meanwhile
            try:
                # Talk waits for nobody: what was taken back is not to be seen for as long as something large is read.
                if source.kind is SourceKind.ARCHIVE:
                    return await self._insist(source, report, nullcontext(), reset=reset)
                if source.is_made_by_guild:
                    return await self._read_for_guild(source, report, reset=reset)
                return await self._insist(source, report, self._places, reset=reset)
            except DenizenError as error:
                return await self._miss(source, error, report)

    async def _miss(self, source: Source, error: DenizenError, report: ReportProgress) -> ReadingOutcome:
        """The last good reading stays, but not of talk: what may not be read any more is not shown any more."""
        said = describe_in_line(error)
        is_over = source.kind is SourceKind.ARCHIVE and not isinstance(error, Unavailable)
        async with self._store.work() as work:
            state = await _find_state(work, source.id)
            new = replace(state, tried_at=self._clock.now(), error_code=error.code, error=said)
            if is_over and not new.is_skipped:
                new = replace(new, revision="", taken=None, synced_at=None)
            await work.sources.put_state(new)
        if new.is_skipped:
            report(ReadingProgress("skipped"))
            return ReadingOutcome(source.id, error=said, code=error.code, skipped=True)
        _log.warning("a source was not read", extra={"source": source.id, **error.fields, "why": said})
        report(ReadingProgress("failed"))
        return ReadingOutcome(source.id, error=said, code=error.code, changed=new.taken != state.taken)

    async def _read_for_guild(self, source: Source, report: ReportProgress, *, reset: bool) -> ReadingOutcome:
        """One of a community at a time. Raises Unavailable for what takes too long, which is not tried again."""
        async with self._guild_turns[source.guild], self._guild_places:
            async with self._store.work(write=False) as work:
                if await work.sources.find(source.id) is None:
                    return ReadingOutcome(source.id)  # removed while it waited
            with anyio.move_on_after(self._guild_limit_s):
                return await self._insist(source, report, nullcontext(), reset=reset)
        raise Unavailable(
            "Reading the source took too long.",
            code="source_slow",
            why=f"What a server adds is read for {self._guild_limit_s / 60:g} minutes at most.",
            fix="Look whether its place answers, or read less of it by a path.",
        )

    async def _insist(
        self, source: Source, report: ReportProgress, place: AbstractAsyncContextManager[object], *, reset: bool
    ) -> ReadingOutcome:
        reader = self._readers[source.kind]
        if reset:
            await reader.forget([source.id])

        async def read() -> ReadingOutcome:
            async with place:
                return await self._read(reader, source, report, reset=reset)

        def tell(attempt: int, error: Unavailable) -> None:
            _log.info("a source is tried again", extra={"source": source.id, "attempt": attempt, **error.fields})
            report(ReadingProgress(f"{WAITING} (attempt {attempt}): {error.message}"))

        return await retry_unavailable(read, RETRIES, self._sleep, tell)

    async def _read(
        self, reader: SourceReader, source: Source, report: ReportProgress, *, reset: bool
    ) -> ReadingOutcome:
        report(ReadingProgress("looking"))
        async with self._store.work(write=False) as work:
            state = await _find_state(work, source.id)
        seen = await reader.look(source)
        if not reset and _is_known(source, state, seen):
            now = self._clock.now()
            if await self._keep(source, state, replace(state, synced_at=now, tried_at=now, error_code="", error="")):
                report(ReadingProgress("unchanged"))
                return ReadingOutcome(source.id, left_out=describe_left_out(state.taken) if state.taken else "")
        async with reader.open(source, report) as tree:
            taken = await self._library.take(
                tree.files,
                lambda told: report(ReadingProgress(told.stage, told.done, tree.count)),
                self._find_limits(source),
            )
        if not taken.files:
            raise NotFound(
                "Nothing of the source can be kept.",
                code="source_empty",
                why=describe_left_out(taken),
                fix="Save what should be read as text in UTF-8, of less than 5 MB, or look at the content path.",
            )
        now = self._clock.now()
        new = SourceState(
            source_id=source.id,
            revision=tree.revision,
            fingerprint=source.fingerprint,
            taken=taken,
            synced_at=now,
            tried_at=now,
        )
        if not await self._keep(source, state, new):
            raise Unavailable("Files of the source went while it was read.", code="library_changed")
        report(ReadingProgress("read", taken.files, taken.files))
        is_changed = state.taken != taken or state.revision != tree.revision
        return ReadingOutcome(source.id, changed=is_changed, left_out=describe_left_out(taken))

    async def _keep(self, source: Source, old: SourceState, new: SourceState) -> bool:
        """False when files of the reading are gone: one that another process keeps may expire until the state is
        stored, which is why nobody publishes meanwhile. Raises Unavailable when something of it was taken back
        meanwhile: what was read may hold that still.
        """
        async with self._library.alone():
            is_whole = new.taken is not None and await self._library.has(new.taken.manifest)
            if is_whole:
                async with self._store.work() as work:
                    now = await work.sources.find(source.id)
                    if now is not None and (now.guild, now.created_at) != (source.guild, source.created_at):
                        raise Unavailable("The source was replaced while it was read.", code="source_replaced")
                    if source.is_made_by_guild and new.taken is not None:
                        await self._check_guild(work, source, new.taken)
                    is_talk = source.kind is SourceKind.ARCHIVE
                    if is_talk and now is not None and await _find_state(work, source.id) != old:
                        raise Unavailable("The channel changed while it was read.", code=CHANGED)
                    await work.sources.put_state(new)
        return is_whole

    def _find_limits(self, source: Source) -> ReadingLimits:
        limits = self._guild_limits()
        return ReadingLimits(files=limits.files, size_bytes=limits.size_bytes) if source.is_made_by_guild else NO_MORE

    async def _check_guild(self, work: UnitOfWork, source: Source, taken: SourceReading) -> None:
        """Raises LimitExceeded when the sources that the community has made keep too much together."""
        sources = [each for each in await work.sources.list_sources() if each.guild == source.guild]
        own = {each.id for each in sources if each.is_made_by_guild and each.id != source.id}
        states = [each for each in await work.sources.list_states() if each.source_id in own]
        most = self._guild_limits().size_bytes
        if taken.size_bytes + sum(each.taken.size_bytes for each in states if each.taken) > most:
            raise LimitExceeded(
                "The sources of the server are too large.",
                code="guild_sources_large",
                why=f"Together they may keep {most // 1024**2} MB of documents.",
                fix="Remove one, or read less of this one by a path.",
            )


def _is_known(source: Source, state: SourceState, revision: str) -> bool:
    return state.taken is not None and (state.revision, state.fingerprint) == (revision, source.fingerprint)


async def _find_state(work: UnitOfWork, source_id: str) -> SourceState:
    states = {state.source_id: state for state in await work.sources.list_states()}
    return states.get(source_id, SourceState(source_id=source_id))


def describe_in_line(error: DenizenError) -> str:
    """Returns the whole error in one line: whoever reads a list of sources sees nothing else of it."""
    parts = (part.strip() for part in (error.message, error.why, error.fix))
    return " ".join(part if part.endswith((".", "!", "?")) else f"{part}." for part in parts if part)
