"""How sources are read, what the store keeps of them, the library of what was read, and the folder of learned answers.

Readers are `adapters/git`, `files`, `sitemap` and `youtube`, one for each kind; the library is `adapters/library`; the
records are part of a unit of work. `engine/knowledge` calls all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from denizen.domain.snapshot import Remote, Snapshot, SnapshotPart
from denizen.domain.source import Source, SourceState, SyncRun, Taken


@dataclass(frozen=True, slots=True)
class ReadingProgress:
    """Of one source: what is being done, and how much of how much (`total` 0 when that is not known)."""

    stage: str
    done: int = 0
    total: int = 0


ReportProgress = Callable[[ReadingProgress], None]
"""May be called from any thread."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file of a source. `read` gives its bytes, blocks, and may be called until the next file is asked for."""

    path: str
    size_bytes: int
    read: Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class SourceTree:
    """A source as it is at `revision`: only regular files of a kept kind, with paths below the content path.
    Whether such a name can be kept is the library's to say.

    `files` blocks and is followed once, in a thread. `count` is how many there are.
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
    """What a document says, and the part of the snapshot that it is of."""

    text: str
    part: SnapshotPart | None = None


class SourceReader(Protocol):
    """Reads one kind. Raises NotFound for what is not there, NeedsAttention for what may not be read, Unavailable for
    what is worth another try.
    """

    async def look(self, source: Source) -> str:
        """The revision that is there now, found cheaply."""
        ...

    def open(self, source: Source, report: ReportProgress) -> AbstractAsyncContextManager[SourceTree]:
        """Fetches it and gives its files until the block ends."""
        ...

    async def forget(self, source_ids: Sequence[str]) -> None:
        """Removes what is kept to read these faster the next time."""
        ...


class Library(Protocol):
    """What was read, on disk: files by their content, and snapshots that are made of them."""

    async def take(self, files: Iterator[SourceFile], report: ReportProgress) -> Taken:
        """Keeps all files: text as it is, HTML and PDF as their text. Stops when it is cancelled."""
        ...

    async def has(self, manifest: str) -> bool:
        """Whether everything that the manifest lists is there."""
        ...

    async def list_files(self, manifest: str) -> Sequence[LibraryFile]:
        """Raises NotFound when it is gone."""
        ...

    async def read_texts(self, digests: Sequence[str]) -> Sequence[str | None]:
        """What these files say, in this order; None for one that is gone."""
        ...

    async def find_document(self, path: str) -> DocumentText | None:
        """A file of the current snapshot; None when there is none of that path."""
        ...

    def alone(self) -> AbstractAsyncContextManager[None]:
        """Waits until nobody else publishes, in any process."""
        ...

    async def publish(self, parts: Sequence[SnapshotPart], *, now: datetime, anew: bool = False) -> Snapshot:
        """Makes the snapshot, unless it is there already, and then the current one: at once, or not at all. With `anew`
        it is made in any case, since somebody may have changed files of it.
        """
        ...

    async def expire(self, *, before: datetime, manifests: Sequence[str]) -> Sequence[str]:
        """Removes the snapshots that were made before, and those that are outdated (`domain.snapshot`), but not the
        current one and none that is held, and files that nothing refers to, neither a snapshot nor one of these
        manifests, which are all that may be read now. Ids of what went.
        """
        ...

    async def current(self) -> Snapshot | None: ...

    async def clear(self) -> None:
        """From now on there is no current snapshot. Those that are kept stay."""
        ...

    async def list_snapshots(self) -> Sequence[Snapshot]:
        """Newest first."""
        ...

    async def verify(self, snapshot_id: str) -> Sequence[str]:
        """What is wrong with it, a sentence each. Raises NotFound."""
        ...

    def hold(self) -> AbstractAsyncContextManager[Path | None]:
        """The folder of the current snapshot, which stays there until the block ends; None when there is none."""
        ...

    def current_folder(self) -> Path | None:
        """The folder of the current snapshot at this moment, for one quick look."""
        ...


class SnapshotRemote(Protocol):
    """Where snapshots are pushed to."""

    async def push(self, remote: Remote, snapshot: Snapshot, folder: Path) -> bool:
        """The files of the snapshot, which are in the folder. False when the remote has them already. Raises Conflict
        for a repository that is somebody else's, and as readers do.
        """
        ...


class Sources(Protocol):
    """Sources and how far they were read. Part of a unit of work."""

    async def put(self, source: Source) -> None:
        """Adds it, or replaces all but its `created_at`."""
        ...

    async def find(self, source_id: str) -> Source | None: ...

    async def list_sources(self) -> Sequence[Source]:
        """By id."""
        ...

    async def remove(self, source_id: str) -> bool:
        """With its state. False when there was none."""
        ...

    async def put_state(self, state: SourceState) -> None:
        """Nothing is kept when the source is not there any more."""
        ...

    async def list_states(self) -> Sequence[SourceState]: ...

    async def put_sync(self, run: SyncRun) -> None: ...

    async def find_sync(self, run_id: str) -> SyncRun | None: ...

    async def list_syncs(self, *, limit: int = 20) -> Sequence[SyncRun]:
        """Newest first."""
        ...


class LearnedFiles(Protocol):
    """Files that somebody else put there are left alone."""

    @property
    def location(self) -> str:
        """Of the folder, as a source has it."""
        ...

    async def list_files(self) -> Mapping[str, str]:
        """Names to the ids of the proposals that the files were made of; all others with an empty id."""
        ...

    async def read(self, name: str) -> str:
        """Empty when there is none."""
        ...

    async def write(self, name: str, text: str) -> None:
        """At once or not at all, for the owner of the home folder only."""
        ...

    async def remove(self, name: str) -> None:
        """Removing what is gone is no error."""
        ...
