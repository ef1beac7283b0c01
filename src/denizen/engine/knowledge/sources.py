"""Which sources there are: adding, changing and removing them. What is wrong is told before anything is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from denizen.domain.clock import Clock
from denizen.domain.errors import Conflict, InvalidInput, NotFound
from denizen.domain.record import record
from denizen.domain.source import (
    Source,
    SourceChange,
    SourceKind,
    SourceState,
    check_source,
    name_source,
    plan_folders,
    read_location,
)
from denizen.engine.archive.mirror import withheld_state
from denizen.engine.knowledge.snapshots import SnapshotPublisher
from denizen.ports.source import SourceReader, SourceRepository
from denizen.ports.store import Store


@record
class SourceListing:
    """A source and how far it was read; no state before the first attempt."""

    source: Source
    state: SourceState | None


class SourceCatalog:
    """All sources."""

    def __init__(
        self, store: Store, clock: Clock, snapshots: SnapshotPublisher, readers: Mapping[SourceKind, SourceReader]
    ) -> None:
        self._store = store
        self._clock = clock
        self._snapshots = snapshots
        self._readers = readers

    async def list_known(self) -> list[SourceListing]:
        """By id."""
        async with self._store.work(write=False) as work:
            states = {state.source_id: state for state in await work.sources.list_states()}
            return [SourceListing(source, states.get(source.id)) for source in await work.sources.list_sources()]

    async def get(self, source_id: str) -> SourceListing:
        """Raises NotFound."""
        found = next((known for known in await self.list_known() if known.source.id == source_id), None)
        if found is None:
            raise source_not_found(source_id)
        return found

    async def add(
        self, location: str, given: SourceChange, *, source_id: str = "", is_made_by_guild: bool = False
    ) -> Source:
        """Without an id it is named after the repository or folder. Raises InvalidInput, and Conflict for an id or an
        output folder that is taken. Only with `is_made_by_guild` may the id be one of those of a community, which hand
        the source to whoever manages it.
        """
        kind, full = read_location(location, given.kind)
        now = self._clock.now()
        plain = Source(id=source_id or name_source(full), kind=kind, location=full, created_at=now, updated_at=now)
        source = replace(given, location=None, kind=None).apply(plain)
        check_source(source)
        if source.is_made_by_guild and not is_made_by_guild:
            raise InvalidInput(
                f"'{source.id}' cannot be the id of this source.",
                code="source_invalid",
                why="Ids that begin so are for sources that a server adds itself, and may remove.",
                fix="Choose another id.",
                key="id",
            )
        async with self._store.work() as work:
            if await work.sources.find(source.id) is not None:
                raise Conflict(
                    f"There is a source '{source.id}' already.",
                    code="source_exists",
                    fix="Choose another id, or edit that one.",
                )
            await _put(work.sources, source)
        self._snapshots.forget_status()
        return source

    async def edit(self, source_id: str, change: SourceChange) -> Source:
        """Changes a source. Its documents stay in the snapshot until the next sync, except for talk of a channel that
        it no longer reads. The community that it is for stays. Raises NotFound, and as `add`.
        """
        async with self._store.work() as work:
            known = await work.sources.find(source_id)
            if known is None:
                raise source_not_found(source_id)
            source = replace(change.apply(known), updated_at=self._clock.now())
            check_source(source)
            if source.guild != known.guild:
                raise InvalidInput(
                    f"The source '{source_id}' cannot be moved to another audience.",
                    code="source_guild_fixed",
                    why="What was read for some people would be shown to others.",
                    fix="Remove it, and add it anew.",
                    key="guild",
                )
            await _put(work.sources, source)
            left_talk = known.kind is SourceKind.ARCHIVE and source.location != known.location
            if left_talk:
                await work.sources.put_state(withheld_state(source.id))
        self._snapshots.forget_status()
        if left_talk:
            await self._snapshots.publish()
        return source

    async def remove(self, source_id: str) -> None:
        """Its files are in no snapshot from now on. Raises NotFound."""
        async with self._store.work() as work:
            if not await work.sources.remove(source_id):
                raise source_not_found(source_id)
        self._snapshots.forget_status()
        for reader in self._readers.values():
            await reader.forget([source_id])
        await self._snapshots.publish()


def source_not_found(source_id: str) -> NotFound:
    return NotFound(
        f"There is no source '{source_id}'.", code="source_not_found", fix="`denizen sources list` shows them."
    )


async def _put(rows: SourceRepository, source: Source) -> None:
    others = [each for each in await rows.list_sources() if each.id != source.id]
    if wrong := plan_folders([*others, source]):
        raise Conflict(wrong, code="source_folder_taken", fix="Give one of them another output path.")
    await rows.put(source)
