"""`FileLibrary` implements the library's port: file work goes to threads, and one process publishes at a time.

The folder holds:

    objects/ab/cdef...     files and manifests by their content (`storage`)
    kept/<id>/docs/...     snapshots (`storage`)
    current.json           the snapshot that agents read
    staging/               what is being made or removed
    clones/                repositories, for the git reader
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Event
from typing import TypeVar, TypeVarTuple

import anyio
from anyio import to_thread
from anyio.lowlevel import checkpoint

from denizen.adapters.library.ingestion import DocumentConverters, SourceIngestion
from denizen.adapters.library.storage import FILE_MODE, ObjectStore, SnapshotStore, make_folder
from denizen.domain.clock import Clock
from denizen.domain.errors import DenizenError, NeedsAttention, NotFound, Unavailable
from denizen.domain.snapshot import Snapshot, SnapshotPart
from denizen.domain.source import SourceReading, is_open_to, is_plain_path
from denizen.ports.source import NO_MORE, DocumentText, LibraryFile, ReadingLimits, ReportProgress, SourceFile

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_LOOK_AGAIN_S = 0.1
_PATIENCE_S = 300.0
_TRIES = 5


class FileLibrary:
    """Implements `denizen.ports.source.Library`. `root` is made when something is first stored."""

    def __init__(self, root: Path, convert: DocumentConverters, clock: Clock) -> None:
        self._root = root
        self._convert = convert
        self._clock = clock
        self._objects = ObjectStore(root / "objects")
        self._snapshots = SnapshotStore(root, self._objects)
        self._publishing = anyio.Lock()

    async def take(
        self, files: Iterator[SourceFile], report: ReportProgress, limits: ReadingLimits = NO_MORE
    ) -> SourceReading:
        """Stores the files in a thread, which a cancellation of this task stops."""
        ingestion = SourceIngestion(self._objects, self._convert, self._clock.now(), Event(), limits)
        taken: SourceReading | None = None
        failure: DenizenError | None = None
        async with anyio.create_task_group() as group:
            # A cancellation does not reach the thread, but this task, which tells it.
            group.start_soon(_stop_when_cancelled, ingestion.stop)
            try:
                taken = await _in_thread(ingestion.take, files, report)
            except DenizenError as error:
                failure = error  # raised below: from here it would come as a group
            group.cancel_scope.cancel()
        if failure is not None:
            raise failure
        # A cancellation that came meanwhile is raised here.
        await checkpoint()
        assert taken is not None, "only a cancellation stops it"
        return taken

    async def has(self, manifest: str) -> bool:
        return await _in_thread(self._objects.is_whole, manifest)

    async def list_files(self, manifest: str) -> Sequence[LibraryFile]:
        return await _in_thread(self._list_files, manifest)

    def _list_files(self, manifest: str) -> list[LibraryFile]:
        try:
            return [
                LibraryFile(item.path, item.digest, item.size_bytes) for item in self._objects.read_manifest(manifest)
            ]
        except FileNotFoundError as error:
            raise NotFound("The files of a source are gone.", code="manifest_gone", fix="Sync again.") from error

    async def read_texts(self, digests: Sequence[str]) -> Sequence[str | None]:
        return await _in_thread(lambda: [self._objects.read_text(digest) for digest in digests])

    async def find_document(self, path: str, *, guild: str = "") -> DocumentText | None:
        async with self.hold() as folder:
            current = await self.current()
            parts = current.parts if current is not None and folder is not None else ()
            part = next((each for each in parts if path.startswith(f"{each.folder}/")), None)
            if folder is None or part is None or not is_plain_path(path) or not is_open_to(path, guild):
                return None
            text = await _in_thread(_read_document, folder / path)
            return None if text is None else DocumentText(text, part)

    @asynccontextmanager
    async def alone(self) -> AsyncGenerator[None]:
        async with self._publishing:
            make_folder(self._root)
            handle = os.open(self._root / "publish.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
            try:
                await _wait_for(handle)
                yield
            finally:
                os.close(handle)

    async def publish(self, parts: Sequence[SnapshotPart], *, now: datetime, anew: bool = False) -> Snapshot:
        return await _in_thread(partial(self._snapshots.publish, parts, now, anew=anew))

    async def expire(self, *, before: datetime, manifests: Sequence[str]) -> Sequence[str]:
        return await _in_thread(self._expire, before, manifests)

    def _expire(self, before: datetime, manifests: Sequence[str]) -> list[str]:
        gone = self._snapshots.expire(before, manifests)
        if gone:
            kept = {*manifests, *(part.manifest for each in self._snapshots.list_snapshots() for part in each.parts)}
            wanted = kept.union(*map(self._objects.list_digests, kept))
            talk = {part.manifest for each in gone for part in each.parts if part.is_talk}
            # Not after a while, as other files: somebody may have taken back what stands there.
            self._objects.erase(talk.union(*map(self._objects.list_digests, talk)) - wanted)
            self._objects.sweep(wanted, before)
        return [each.id for each in gone]

    async def clear(self) -> None:
        await _in_thread(self._snapshots.clear)

    async def current(self) -> Snapshot | None:
        return await _in_thread(self._snapshots.current)

    async def list_snapshots(self) -> Sequence[Snapshot]:
        return await _in_thread(self._snapshots.list_snapshots)

    async def verify(self, snapshot_id: str) -> Sequence[str]:
        return await _in_thread(self._snapshots.verify, snapshot_id)

    @asynccontextmanager
    async def hold(self) -> AsyncGenerator[Path | None]:
        """Holds a lock of the system, which ends with the process at the latest."""
        # The snapshot may be replaced and removed between reading its id and locking it.
        for _ in range(_TRIES):
            current = self._snapshots.current()
            handle = self._snapshots.hold(current.id) if current is not None else None
            if current is not None and handle is not None:
                try:
                    yield self._snapshots.folder(current.id)
                finally:
                    os.close(handle)
                return
        yield None

    def list_folders(self, guild: str = "") -> Sequence[tuple[str, Path]]:
        folder = self.current_folder()
        found = sorted(folder.iterdir()) if folder is not None else []
        return [(each.name, each) for each in found if is_open_to(each.name, guild)]

    def current_folder(self) -> Path | None:
        """Returns the folder of the current snapshot, with the documents of all communities."""
        current = self._snapshots.current()
        folder = self._snapshots.folder(current.id) if current is not None else None
        return folder if folder is not None and folder.is_dir() else None


async def _in_thread(job: Callable[[*Ts], T], *args: *Ts) -> T:
    """Runs the job in a thread. Raises NeedsAttention when the disk cannot be used."""
    try:
        return await to_thread.run_sync(job, *args)
    except OSError as error:
        raise NeedsAttention(
            "The folder of the knowledge library cannot be used.",
            code="library_unusable",
            why=f"{error.strerror or type(error).__name__}: {error.filename or 'no file in particular'}",
            fix="Look at the space and the permissions of knowledge-snapshots in the home folder.",
        ) from error


def _read_document(file: Path) -> str | None:
    """Returns the text of a file; None when there is none. A snapshot holds no links, so none is followed."""
    return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else None


async def _stop_when_cancelled(stop: Event) -> None:
    try:
        await anyio.sleep_forever()
    finally:
        stop.set()


async def _wait_for(handle: int) -> None:
    """Waits for the lock. Raises Unavailable when others hold it for long."""
    with anyio.move_on_after(_PATIENCE_S):
        while True:
            if _locked(handle):
                return
            await anyio.sleep(_LOOK_AGAIN_S)
    raise Unavailable("Another process of Denizen is publishing a snapshot.", code="snapshot_busy")


def _locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
