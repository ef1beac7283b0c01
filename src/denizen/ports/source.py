"""Readers of sources, the records of them in the store, the library of what was read, and the folder of learned
answers.

Readers are `adapters/git`, `files`, `sitemap` and `youtube`, one for each kind; the library is `adapters/library`; the
records are part of a unit of work. `engine/knowledge` calls all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from pathlib import Path
from typing import Protocol

from denizen.domain.record import record
from denizen.domain.snapshot import RemoteRepository, Snapshot, SnapshotPart
from denizen.domain.source import Source, SourceReading, SourceState, SyncRun

WAITING = "waiting"
"""The beginning of the stage between two attempts, which goes on with the reason."""


@record
class ReadingProgress:
    """The progress of reading one source: the stage, and how much of how much (`total` is 0 when it is not known), and
    how long the rest takes, where somebody measured that.
    """

    stage: str
    done: int = 0
    total: int = 0
    left_s: float | None = None


ReportProgress = Callable[[ReadingProgress], None]
"""A callback for progress. It may be called from any thread."""


@record
class SourceFile:
    """One file of a source. `read` returns its bytes, blocks, may raise OSError, and may be called until the next file
    is asked for. `lacks` says why the file cannot be read, where that is known; then nothing calls `read`.
    """

    path: str
    size_bytes: int
    read: Callable[[], bytes]
    lacks: str = ""


@record
class SourceTree:
    """A source as it is at `revision`: only regular files of a kept kind, and what cannot be read of it, with paths
    below the content path.

    `files` blocks and is followed once, in a thread. `count` is how many there are. The library decides whether it can
    store a name.
    """

    revision: str
    count: int
    files: Iterator[SourceFile]


@record(kw_only=True)
class ReadingLimits:
    """How much is kept of one source at most."""

    files: int = 200_000
    size_bytes: int = 4 * 1024**3


NO_MORE = ReadingLimits()
"""The limits for every source."""


@record
class LibraryFile:
    """A file as the library stores it. `digest` is the SHA-256 of its content."""

    path: str
    digest: str
    size_bytes: int


@record
class DocumentText:
    """The text of a document, and the part of the snapshot that it belongs to."""

    text: str
    part: SnapshotPart | None = None


class SourceReader(Protocol):
    """Reads sources of one kind. Raises NotFound for what does not exist, NeedsAttention for what may not be read,
    Unavailable for what is worth another try.
    """

    async def look(self, source: Source) -> str:
        """Returns the current revision, found cheaply."""
        ...

    def open(self, source: Source, report: ReportProgress) -> AbstractAsyncContextManager[SourceTree]:
        """Fetches the source and gives its files until the block ends."""
        ...

    async def forget(self, source_ids: Sequence[str]) -> None:
        """Removes what is kept to read these sources faster the next time."""
        ...


class Library(Protocol):
    """The library on disk: files by their content, and snapshots made of them."""

    async def take(
        self, files: Iterator[SourceFile], report: ReportProgress, limits: ReadingLimits = NO_MORE
    ) -> SourceReading:
        """Stores all files: text as it is, HTML and PDF as their text. Stops when it is cancelled. Raises
        LimitExceeded.
        """
        ...

    async def has(self, manifest: str) -> bool:
        """Returns whether everything that the manifest lists is there."""
        ...

    async def list_files(self, manifest: str) -> Sequence[LibraryFile]:
        """Returns the files of a manifest. Raises NotFound when it is gone."""
        ...

    async def read_texts(self, digests: Sequence[str]) -> Sequence[str | None]:
        """Returns the texts of these files, in this order; None for one that is gone."""
        ...

    async def find_document(self, path: str, *, guild: str = "") -> DocumentText | None:
        """Returns a file of the current snapshot; None when there is none with that path that talk in the community
        `guild` may see (`domain.source.is_open_to`).
        """
        ...

    def alone(self) -> AbstractAsyncContextManager[None]:
        """Waits until nobody else publishes, in any process, and holds that lock until the block ends."""
        ...

    async def publish(self, parts: Sequence[SnapshotPart], *, now: datetime, anew: bool = False) -> Snapshot:
        """Makes the snapshot, unless it is there already, and then makes it the current one, in one step.

        With `anew` it is made in any case, since somebody may have changed files of it.
        """
        ...

    async def expire(self, *, before: datetime, manifests: Sequence[str]) -> Sequence[str]:
        """Removes snapshots that were made before that time or are outdated (`domain.snapshot`), and files that nothing
        refers to. Returns the ids of the removed snapshots.

        The current snapshot and those that are held stay. A file is referred to by a snapshot or by one of these
        manifests, which are all that may be read now.
        """
        ...

    async def current(self) -> Snapshot | None: ...

    async def clear(self) -> None:
        """Makes no snapshot the current one. Those that are kept stay."""
        ...

    async def list_snapshots(self) -> Sequence[Snapshot]:
        """Returns snapshots, newest first."""
        ...

    async def verify(self, snapshot_id: str) -> Sequence[str]:
        """Returns what is wrong with a snapshot, a sentence each. Raises NotFound."""
        ...

    def hold(self) -> AbstractAsyncContextManager[Path | None]:
        """Gives the folder of the current snapshot, which stays there until the block ends; None when there is none. It
        holds the documents of all communities, so agents never get it.
        """
        ...

    def list_folders(self, guild: str = "") -> Sequence[tuple[str, Path]]:
        """Returns the top folders of the current snapshot that talk in the community `guild` may see, by name; without
        one, those for everybody. For one quick look.
        """
        ...


class SnapshotUploader(Protocol):
    """The place that snapshots are pushed to."""

    async def push(self, remote: RemoteRepository, snapshot: Snapshot, folder: Path) -> bool:
        """Pushes the files of the snapshot, which are in the folder. Returns False when the remote has them already.
        Raises Conflict for a repository that is somebody else's, and what readers raise.
        """
        ...


class SourceRepository(Protocol):
    """The sources and how far they were read. Part of a unit of work."""

    async def put(self, source: Source) -> None:
        """Adds a source, or replaces all of it but its `created_at`."""
        ...

    async def find(self, source_id: str) -> Source | None: ...

    async def list_sources(self) -> Sequence[Source]:
        """Returns the sources by id."""
        ...

    async def remove(self, source_id: str) -> bool:
        """Removes a source with its state. Returns False when there was none."""
        ...

    async def put_state(self, state: SourceState) -> None:
        """Stores the state, unless the source is not there any more."""
        ...

    async def list_states(self) -> Sequence[SourceState]: ...

    async def put_sync(self, run: SyncRun) -> None: ...

    async def find_sync(self, run_id: str) -> SyncRun | None: ...

    async def list_syncs(self, *, limit: int = 20) -> Sequence[SyncRun]:
        """Returns runs, newest first."""
        ...


class LearnedAnswerFiles(Protocol):
    """The folder of answers that were learned from people: a Markdown file each, read as a source like any other.
    `adapters/files` implements it.

    Files that somebody else put there are left alone. Raises NeedsAttention when the disk cannot be used.
    """

    @property
    def location(self) -> str:
        """The location of the folder, as a source has it."""
        ...

    async def list_files(self) -> Mapping[str, str]:
        """Returns the proposal id of each file by name; empty for a file that was not made from a proposal."""
        ...

    async def read(self, name: str) -> str:
        """Returns the text of a file; empty when there is none."""
        ...

    async def write(self, name: str, text: str) -> None:
        """Writes the whole file or nothing, readable by the owner of the home folder only."""
        ...

    async def remove(self, name: str) -> None:
        """Removes a file. Removing one that is gone is no error."""
        ...
