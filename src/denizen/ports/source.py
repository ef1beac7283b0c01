"""The ports of knowledge sources: reading them, storing what is known of them, and the library of what was read.

`adapters/git`, `files`, `sitemap` and others read one kind each; `adapters/library` is the library; the records are
part of a unit of work. Called by `engine/knowledge`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from denizen.domain.snapshot import Remote, Snapshot, SnapshotPart
from denizen.domain.source import Source, SourceState, SyncRun, Taken


@dataclass(frozen=True, slots=True)
class ReadingProgress:
    """The progress of one source: the current stage, and how much of `total` is done (0 when unknown)."""

    stage: str
    done: int = 0
    total: int = 0


ReportProgress = Callable[[ReadingProgress], None]
"""A callback for progress. It may be called from any thread."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file of a source. `read` blocks, returns the bytes, and may be called until the next file is asked for."""

    path: str
    size_bytes: int
    read: Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class SourceTree:
    """A source at one `revision`: only regular files of a kept kind, with paths below the content path.

    The library decides whether a file's name can be kept. `files` blocks and is iterated once, in a thread. `count` is
    the number of files.
    """

    revision: str
    count: int
    files: Iterator[SourceFile]


@dataclass(frozen=True, slots=True)
class LibraryFile:
    """A file as the library keeps it. `digest` is the SHA-256 of its content."""

    path: str
    digest: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class DocumentText:
    """The text of a document, and the part of the snapshot that it belongs to."""

    text: str
    part: SnapshotPart | None = None


class SourceReader(Protocol):
    """Reads one kind of source. Raises NotFound for what is not there, NeedsAttention for what may not be read, and
    Unavailable for what is worth another try.
    """

    async def look(self, source: Source) -> str:
        """Returns the current revision, found cheaply."""
        ...

    def open(self, source: Source, report: ReportProgress) -> AbstractAsyncContextManager[SourceTree]:
        """Fetches the source and gives its files until the block ends."""
        ...

    async def forget(self, source_ids: Sequence[str]) -> None:
        """Removes the caches that make the next reading of these sources faster."""
        ...


class Library(Protocol):
    """The files that were read, stored on disk by content, and the snapshots made of them."""

    async def take(self, files: Iterator[SourceFile], report: ReportProgress) -> Taken:
        """Stores all files: text as it is, HTML and PDF as their text. Stops when it is cancelled."""
        ...

    async def has(self, manifest: str) -> bool:
        """Tells whether everything that the manifest lists is there."""
        ...

    async def list_files(self, manifest: str) -> Sequence[LibraryFile]:
        """Returns the files of a manifest. Raises NotFound when it is gone."""
        ...

    async def read_texts(self, digests: Sequence[str]) -> Sequence[str | None]:
        """Returns the texts of these files in this order; None for one that is gone."""
        ...

    async def find_document(self, path: str) -> DocumentText | None:
        """Returns a file of the current snapshot; None when no file has that path."""
        ...

    def alone(self) -> AbstractAsyncContextManager[None]:
        """Holds the publishing lock: waits until nobody else publishes, in any process."""
        ...

    async def publish(self, parts: Sequence[SnapshotPart], *, now: datetime, anew: bool = False) -> Snapshot:
        """Makes the snapshot unless it exists, and makes it the current one atomically.

        With `anew` it is made in any case, since somebody may have changed its files.
        """
        ...

    async def expire(self, *, before: datetime, manifests: Sequence[str]) -> Sequence[str]:
        """Removes snapshots from before that time and outdated ones (`domain.snapshot`), and files without a reference.

        The current snapshot and held ones stay, and so do the files of `manifests`, which are the only ones that may be
        read now. Returns the ids of the removed snapshots.
        """
        ...

    async def current(self) -> Snapshot | None: ...

    async def clear(self) -> None:
        """Leaves no current snapshot. The stored ones stay."""
        ...

    async def list_snapshots(self) -> Sequence[Snapshot]:
        """Returns the snapshots, newest first."""
        ...

    async def verify(self, snapshot_id: str) -> Sequence[str]:
        """Returns the faults of a snapshot, one sentence each. Raises NotFound."""
        ...

    def hold(self) -> AbstractAsyncContextManager[Path | None]:
        """Gives the folder of the current snapshot, which stays until the block ends; None when there is none."""
        ...

    def current_folder(self) -> Path | None:
        """Returns the folder of the current snapshot, for a quick look only: it is not held."""
        ...


class SnapshotUploader(Protocol):
    """Pushes snapshots to a remote repository."""

    async def push(self, remote: Remote, snapshot: Snapshot, folder: Path) -> bool:
        """Pushes the files of the snapshot, which are in the folder. False when the remote has them already.

        Raises Conflict when the repository holds something else, and the errors that readers raise.
        """
        ...


class SourceRepository(Protocol):
    """Sources, the state of each, and the records of syncs. Part of a unit of work."""

    async def put(self, source: Source) -> None:
        """Adds the source, or replaces everything but its `created_at`."""
        ...

    async def find(self, source_id: str) -> Source | None: ...

    async def list_sources(self) -> Sequence[Source]:
        """Returns the sources by id."""
        ...

    async def remove(self, source_id: str) -> bool:
        """Removes the source with its state. False when there was none."""
        ...

    async def put_state(self, state: SourceState) -> None:
        """Writes the state of a source. Nothing is stored when the source is gone."""
        ...

    async def list_states(self) -> Sequence[SourceState]: ...

    async def put_sync(self, run: SyncRun) -> None: ...

    async def find_sync(self, run_id: str) -> SyncRun | None: ...

    async def list_syncs(self, *, limit: int = 20) -> Sequence[SyncRun]:
        """Returns the records of syncs, newest first."""
        ...
