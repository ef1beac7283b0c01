"""The one finished copy of some weights in the home folder, and how a file becomes it.

`models/NAME.gguf` is the copy; `NAME.gguf.json` says that it was verified (size, modification time, sha256), so that a
start does not hash a gigabyte; `NAME.gguf.lock` keeps two processes from making it at once; `.part` and `.assembling`
are unfinished. `weights` knows where the bytes come from.
"""

import errno
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import IO, cast

import anyio

from denizen.adapters.models.embedded.catalogue import WeightsFile
from denizen.adapters.models.embedded.progress import LoadProgress, ReportLoadProgress, Tick
from denizen.domain.errors import NeedsAttention

_CHUNK_BYTES = 1 << 22
_LOCK_POLL_S = 0.2
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class StoredWeights:
    """The copy of one weights file in the folder `models`. Blocking, except for the lock."""

    def __init__(self, wanted: WeightsFile, models: Path) -> None:
        self._wanted = wanted
        self._models = models
        self.path = models / f"{wanted.name}.gguf"
        self.part = models / f"{wanted.name}.gguf.part"
        self._assembling = models / f"{wanted.name}.gguf.assembling"
        self._sidecar = models / f"{wanted.name}.gguf.json"
        self._lock = models / f"{wanted.name}.gguf.lock"

    def find_verified(self) -> Path | None:
        """Returns the finished copy if it is the file that was verified. Compares its size and time only."""
        try:
            status = self.path.stat()
            seen = cast("object", json.loads(self._sidecar.read_bytes()))
        except (OSError, ValueError):  # what is wrong shows when the copy is made
            return None
        return self.path if seen == self._seal(status) else None

    @asynccontextmanager
    async def locked(self, report: ReportLoadProgress) -> AsyncGenerator[None]:
        """Holds the lock: one process at a time makes the copy. The kernel frees the lock of one that died."""
        with storing(self._models):
            self._models.mkdir(parents=True, exist_ok=True)
            file = self._lock.open("wb")
        with file:
            while not _try_lock(file):
                report(LoadProgress(f"waiting for another process that prepares {self._wanted.title}"))
                await anyio.sleep(_LOCK_POLL_S)
            yield

    def verify(self, tick: Tick) -> Path | None:
        """Hashes a copy that has no valid seal; None when there is no copy.

        Raises NeedsAttention when it is another file. A damaged copy of ours is removed; one that was put there by
        hand is left alone.
        """
        if not self.path.exists():
            return None
        with storing(self._models):
            digest = hashlib.sha256()
            hash_file(self.path, digest.update, tick)
            if digest.hexdigest() == self._wanted.sha256:
                return self._write_seal()
            ours = self._sidecar.exists()
            if ours:
                self.remove()
        raise refused(self._wanted, f"{self.path}", digest.hexdigest(), removed=ours)

    def assemble(self, chunks: Iterable[bytes], source: str, tick: Tick) -> Path:
        """Writes the chunks as the finished copy, unless the sha256 says no (NeedsAttention; nothing stays behind)."""
        try:
            with storing(self._models):
                self.require_space(self._wanted.size_bytes)
                digest, done = hashlib.sha256(), 0
                with self._assembling.open("wb") as out:
                    for chunk in chunks:
                        digest.update(chunk)
                        out.write(chunk)
                        done += len(chunk)
                        tick(done)
                        if done > self._wanted.size_bytes:
                            break  # not our file; its sha256 will say so
            return self.finish(self._assembling, digest.hexdigest(), source)
        finally:
            self._assembling.unlink(missing_ok=True)

    def finish(self, made: Path, sha256: str, source: str) -> Path:
        """Turns a complete file into the finished copy. Raises NeedsAttention, and removes it, when it is another."""
        if sha256 != self._wanted.sha256:
            made.unlink()
            raise refused(self._wanted, source, sha256, removed=True)
        with storing(self._models):
            _sync(made)
            made.replace(self.path)
            _sync(self._models)
            self.part.unlink(missing_ok=True)  # of a download that another way has overtaken
            return self._write_seal()

    def remove(self) -> None:
        """Removes the copy, its seal and a partial download. Nothing happens when there is none."""
        for path in (self.path, self._sidecar, self.part):
            path.unlink(missing_ok=True)

    def require_space(self, wanted_bytes: int) -> None:
        """Raises NeedsAttention when the disk has less than that left."""
        free = shutil.disk_usage(self._models).free
        if free < wanted_bytes:
            raise _disk_full(self._models, f"{wanted_bytes:,} bytes are needed and {free:,} are free")

    def _seal(self, status: os.stat_result) -> object:
        return {"size_bytes": status.st_size, "mtime_ns": status.st_mtime_ns, "sha256": self._wanted.sha256}

    def _write_seal(self) -> Path:
        fresh = self._sidecar.with_suffix(".json.new")
        fresh.write_text(json.dumps(self._seal(self.path.stat())))
        fresh.replace(self._sidecar)
        return self.path


def hash_file(path: Path, update: Callable[[bytes], object], tick: Tick) -> int:
    """Feeds the whole file to a hash's `update` and returns its size in bytes."""
    done = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            update(chunk)
            done += len(chunk)
            tick(done)
    return done


def refused(wanted: WeightsFile, source: str, sha256: str, *, removed: bool) -> NeedsAttention:
    """Returns the error for bytes that are not those of the catalogue."""
    return NeedsAttention(
        f"The file from {source} is not {wanted.title}" + (" and was removed." if removed else "."),
        code="weights_refused",
        why=f"Its sha256 is {sha256}; the catalogue says {wanted.sha256}.",
        fix="Run `denizen models pull` to get it afresh."
        if removed
        else "Remove the file, or name it as your own model if that is what it is.",
    )


@contextmanager
def storing(models: Path) -> Generator[None]:
    """Turns the errors of the file system into NeedsAttention that says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise _disk_full(models, str(error)) from error
        raise NeedsAttention(
            f"The weights in {models} cannot be written or read.",
            code="weights_not_stored",
            why=str(error),
            fix=f"Make sure that {models} is a folder that Denizen may write to.",
        ) from error


def _disk_full(models: Path, why: str) -> NeedsAttention:
    return NeedsAttention(
        f"There is not enough room in {models} for the weights.",
        code="disk_full",
        why=why,
        fix="Free some space, or put the home folder on a larger disk (`denizen --home DIR`).",
    )


def _try_lock(file: IO[bytes]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
