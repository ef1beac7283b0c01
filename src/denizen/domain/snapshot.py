"""Snapshots: the state of all sources at one time, as agents read it. Pure.

An id is derived from what is in a snapshot, so that the same content twice is one snapshot.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from denizen.domain.ids import derive
from denizen.domain.record import record
from denizen.domain.source import LEARNED, Source, SourceKind, SourceState

KEEP = timedelta(days=7)
"""How long a snapshot is kept after it was made; the current one, and one that is read, are kept longer."""
BELIEVED = timedelta(days=1)
"""How long a channel of the archive counts as open to everybody after that was last made sure of."""


@record(kw_only=True)
class SnapshotPart:
    """One source in a snapshot: its files are below `folder`, as they were in `revision` of `location`."""

    source_id: str
    kind: str
    label: str
    folder: str
    location: str
    branch: str
    content_path: str
    revision: str
    manifest: str
    files: int

    @property
    def is_talk(self) -> bool:
        """Whether it is what people said, who may take it back: it is nowhere but here, and gone when they do."""
        return self.kind == SourceKind.ARCHIVE or self.source_id == LEARNED


@record
class Snapshot:
    """One immutable state of all documents, with a part for each source."""

    id: str
    created_at: datetime
    parts: tuple[SnapshotPart, ...]

    @property
    def files(self) -> int:
        return sum(part.files for part in self.parts)


@record
class RemoteRepository:
    """The git repository that snapshots are pushed to. `location` is as `domain.source.read_location` gives it, empty
    where they are pushed nowhere; `allow_existing` lets the branch of a repository be replaced that is not marked as
    Denizen's.
    """

    location: str
    branch: str = "main"
    allow_existing: bool = False


NOWHERE = RemoteRepository("")


@record
class SnapshotStatus:
    """`latest` is the newest that was made, `current` the one that agents read. `why` says why a sync is needed, empty
    when none is.
    """

    current: str
    latest: str
    latest_at: datetime | None
    last_sync_at: datetime | None
    why: str

    @property
    def needs_sync(self) -> bool:
        return bool(self.why)


def plan_parts(sources: Sequence[Source], states: Mapping[str, SourceState], now: datetime) -> tuple[SnapshotPart, ...]:
    """The last good reading of each source, by folder. A source that was never read has no part, and neither has talk
    of which it was not made sure for long that everybody may read it.
    """
    parts = [
        _part(source, states[source.id])
        for source in sources
        if source.id in states and not _is_doubtful(source, states[source.id], now)
    ]
    return tuple(sorted((part for part in parts if part is not None), key=lambda part: part.folder))


def is_outdated(snapshot: Snapshot, manifests: Collection[str]) -> bool:
    """Whether it holds talk that is not as it was last read, and so perhaps what somebody took back since."""
    return any(part.is_talk and part.manifest not in manifests for part in snapshot.parts)


def snapshot_id(parts: Sequence[SnapshotPart]) -> str:
    """The same for the same files in the same places at the same revisions."""
    told = ((part.folder, part.location, part.revision, part.manifest) for part in parts)
    return derive("snap", *(text for each in told for text in each))


def explain_need(
    sources: Sequence[Source], states: Mapping[str, SourceState], current: str, parts: Sequence[SnapshotPart]
) -> str:
    """Why a sync is needed, in one sentence; empty when none is."""
    for source in sources:
        state = states.get(source.id)
        # What people add for their community keeps nobody else busy: it has a button of its own.
        if source.is_made_by_guild or (state is not None and state.is_skipped):
            continue
        if state is None or (state.taken is None and not state.error):
            return f"The source '{source.id}' was not read yet."
        if state.taken is None:
            return f"The source '{source.id}' could not be read the last time."
        if state.fingerprint != source.fingerprint:
            return f"The source '{source.id}' was changed since it was read."
        if state.error:
            return f"The source '{source.id}' could not be read the last time."
    if (sources or current) and snapshot_id(parts) != current:
        return "What was read is not published yet."
    return ""


def _is_doubtful(source: Source, state: SourceState, now: datetime) -> bool:
    return source.kind is SourceKind.ARCHIVE and (state.synced_at is None or now - state.synced_at > BELIEVED)


def _part(source: Source, state: SourceState) -> SnapshotPart | None:
    if state.taken is None:
        return None
    return SnapshotPart(
        source_id=source.id,
        kind=source.kind.value,
        label=source.label,
        folder=source.folder,
        location=source.location,
        branch=source.branch,
        content_path=source.content_path,
        revision=state.revision,
        manifest=state.taken.manifest,
        files=state.taken.files,
    )
