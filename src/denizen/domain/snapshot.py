"""Snapshots: what agents read of all sources, as it was at one time. Pure.

An id is derived from what is in a snapshot, so that the same content twice is one snapshot (inventory 2.6).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from denizen.domain.ids import derive
from denizen.domain.source import Source, SourceState

KEEP = timedelta(days=7)
"""How long a snapshot is kept after it was made; the current one, and one that is read, are kept longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True)
class Snapshot:
    id: str
    created_at: datetime
    parts: tuple[SnapshotPart, ...]

    @property
    def files(self) -> int:
        return sum(part.files for part in self.parts)


@dataclass(frozen=True, slots=True)
class Remote:
    """The git repository that snapshots are pushed to. `location` is as `domain.source.read_location` gives it;
    `allow_existing` lets the branch of a repository be replaced that is not marked as Denizen's (inventory S30).
    """

    location: str
    branch: str = "main"
    allow_existing: bool = False


@dataclass(frozen=True, slots=True)
class SnapshotStatus:
    """`latest` is the newest that was made, `current` the one that agents read. `why` says why a sync is needed, empty
    when none is (inventory S29).
    """

    current: str
    latest: str
    latest_at: datetime | None
    last_sync_at: datetime | None
    why: str

    @property
    def needs_sync(self) -> bool:
        return bool(self.why)


def plan_parts(sources: Sequence[Source], states: Mapping[str, SourceState]) -> tuple[SnapshotPart, ...]:
    """The last good reading of each source, by folder. A source that was never read has no part."""
    parts = [_part(source, states[source.id]) for source in sources if source.id in states]
    return tuple(sorted((part for part in parts if part is not None), key=lambda part: part.folder))


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
        if state is None or state.taken is None:
            return f"The source '{source.id}' was not read yet."
        if state.fingerprint != source.fingerprint:
            return f"The source '{source.id}' was changed since it was read."
        if state.error:
            return f"The source '{source.id}' could not be read the last time."
    if (sources or current) and snapshot_id(parts) != current:
        return "What was read is not published yet."
    return ""


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
