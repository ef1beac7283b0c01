"""The files of the library: objects by the SHA-256 of their content, and snapshots made of hard links to them. Blocks.

An object is written beside its place and renamed, so that an object that is there is whole. Its modification time is
when it was last needed: an object that nothing refers to is removed only after a while, since a sync may be about to
refer to it.

A snapshot has its files in `kept/<id>/` and its description in `kept/<id>.json`; readers hold `kept/<id>.lock` shared.
`current.json` names the current snapshot. It is replaced in one step, so that everybody sees the old or the new one
whole.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import secrets
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from shutil import copyfile, rmtree
from typing import Any

from denizen.domain.errors import Conflict, NotFound
from denizen.domain.record import record
from denizen.domain.snapshot import Snapshot, SnapshotPart, is_outdated, snapshot_id

FOLDER_MODE = 0o755
FILE_MODE = 0o644
"""Readable by everybody who can reach the folder: an isolated program that reads a snapshot may run as another user."""


@record
class ManifestEntry:
    """A file in a manifest."""

    path: str
    digest: str
    size_bytes: int


class ObjectStore:
    """Files by the SHA-256 of their content, and manifests, which are lists of files, likewise. `root` exists."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, data: bytes, now: datetime) -> str:
        """Stores the data unless it is there already, notes that it was needed now, and returns its digest."""
        digest = hashlib.sha256(data).hexdigest()
        place = self.place(digest)
        with suppress(FileNotFoundError):
            # One of another content is what a power cut, or somebody with an editor, left.
            if digest_file(place) == digest:
                os.utime(place, (now.timestamp(), now.timestamp()))
                return digest
        make_folder(place.parent)
        write_file(place, data, now)
        return digest

    def place(self, digest: str) -> Path:
        return self._root / digest[:2] / digest[2:]

    def put_manifest(self, items: Sequence[ManifestEntry], now: datetime) -> str:
        lines = (f"{item.digest} {item.size_bytes} {item.path}\n" for item in items)
        return self.put("".join(lines).encode(), now)

    def read_manifest(self, digest: str) -> Iterator[ManifestEntry]:
        """Yields the entries. Raises FileNotFoundError."""
        with self.place(digest).open(encoding="utf-8", newline="\n") as lines:
            for line in lines:
                content, size, path = line.removesuffix("\n").split(" ", 2)
                yield ManifestEntry(path, content, int(size))

    def read_text(self, digest: str) -> str | None:
        """Returns the text of an object; None when it is gone."""
        try:
            return self.place(digest).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None

    def list_digests(self, manifest: str) -> set[str]:
        """Returns the digests of the files that a manifest lists; none when it is gone."""
        try:
            return {item.digest for item in self.read_manifest(manifest)}
        except FileNotFoundError:
            return set()

    def is_whole(self, manifest: str) -> bool:
        """Returns whether everything that a manifest lists is there with its size."""
        try:
            return all(_find_size(self.place(item.digest)) == item.size_bytes for item in self.read_manifest(manifest))
        except (FileNotFoundError, ValueError):
            return False

    def erase(self, digests: Iterable[str]) -> None:
        """Removes these objects, whenever they were last needed."""
        for digest in digests:
            self.place(digest).unlink(missing_ok=True)

    def sweep(self, kept: set[str], before: datetime) -> int:
        """Removes objects that are not kept and were last needed before that time. Returns how many."""
        gone = 0
        for folder in self._root.iterdir():
            with os.scandir(folder) as entries:
                for entry in entries:
                    if f"{folder.name}{entry.name}" not in kept and entry.stat().st_mtime < before.timestamp():
                        Path(entry.path).unlink(missing_ok=True)
                        gone += 1
        return gone


def make_folder(folder: Path) -> None:
    """Makes a folder and those above it, readable by everybody whatever the process's umask is."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        folder.chmod(FOLDER_MODE)


def write_file(place: Path, data: bytes, now: datetime) -> None:
    """Writes the whole file or nothing."""
    beside = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
    try:
        with beside.open("xb") as stream:
            stream.write(data)
            os.fchmod(stream.fileno(), FILE_MODE)
        os.utime(beside, (now.timestamp(), now.timestamp()))
        beside.replace(place)
    finally:
        beside.unlink(missing_ok=True)


def digest_file(place: Path) -> str:
    """Returns the SHA-256 of a file. Raises FileNotFoundError."""
    with place.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _find_size(place: Path) -> int:
    try:
        return place.stat().st_size
    except FileNotFoundError:
        return -1


ROOTS = ("docs",)
"""The folders that every snapshot has."""

_NO_LINKS = frozenset({errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EACCES})


class SnapshotStore:
    """The snapshots on disk, and which of them is the current one. `root` exists."""

    def __init__(self, root: Path, objects: ObjectStore) -> None:
        self._root = root
        self._kept = root / "kept"
        self._objects = objects

    def publish(self, parts: Sequence[SnapshotPart], now: datetime, *, anew: bool) -> Snapshot:
        """Makes the snapshot and then the current one. One caller at a time. Raises Conflict when files of a
        manifest are gone.
        """
        rmtree(self._root / "staging", ignore_errors=True)  # what a process that was killed had begun
        made = Snapshot(snapshot_id(parts), now, tuple(parts))
        current = self.current()
        is_there = self.folder(made.id).is_dir()
        if current is not None and current.id == made.id and is_there and not anew:
            return current
        make_folder(self._kept)
        write_file(self._record(made.id), _to_json(made), now)
        if anew or not is_there:
            self._build(made)
        write_file(self._root / "current.json", _to_json(replace(made, parts=())), now)
        return made

    def current(self) -> Snapshot | None:
        """Returns the current snapshot; None when there is none."""
        try:
            told = json.loads((self._root / "current.json").read_bytes())
            return self.find(str(told["id"]))
        except FileNotFoundError:
            return None

    def find(self, wanted: str) -> Snapshot | None:
        """Returns the snapshot with that id; None when it is gone."""
        try:
            return _from_json(self._record(wanted).read_bytes())
        except FileNotFoundError:
            return None

    def list_snapshots(self) -> list[Snapshot]:
        """Returns snapshots newest first; of those of the same time the current one first."""
        found = (self.find(record.stem) for record in self._kept.glob("snap_*.json"))
        current = self.current()
        now = current.id if current is not None else ""
        return sorted(filter(None, found), key=lambda each: (each.created_at, each.id == now), reverse=True)

    def folder(self, wanted: str) -> Path:
        return self._kept / wanted

    def hold(self, wanted: str) -> int | None:
        """Returns an open file that keeps the snapshot there until it is closed; None when the snapshot is gone."""
        handle = os.open(self._lock(wanted), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:  # it is being removed
            os.close(handle)
            return None
        if self.folder(wanted).is_dir():
            return handle
        os.close(handle)
        self._lock(wanted).unlink(missing_ok=True)
        return None

    def expire(self, before: datetime, manifests: Collection[str]) -> list[Snapshot]:
        """Removes snapshots that are older or outdated, and neither current nor held. Returns what was removed."""
        current = self.current()
        old = [each for each in self.list_snapshots() if each.created_at < before or is_outdated(each, manifests)]
        return [each for each in old if (current is None or each.id != current.id) and self._remove(each.id)]

    def clear(self) -> None:
        (self._root / "current.json").unlink(missing_ok=True)

    def verify(self, wanted: str) -> list[str]:
        """Returns what is wrong with a snapshot, a sentence each. Raises NotFound."""
        snapshot = self.find(wanted)
        if snapshot is None:
            raise NotFound(f"There is no snapshot {wanted}.", code="snapshot_not_found")
        root, faults, known = self.folder(wanted), list[str](), set[str]()
        for path, digest in self._files(snapshot):
            known.add(path)
            place = root / path
            if place.is_symlink() or not place.is_file():
                faults.append(f"{path} is missing.")
            elif digest_file(place) != digest:
                faults.append(f"{path} was changed.")
        there = (Path(above) / name for above, _, names in os.walk(root) for name in names)
        extra = sorted(place.relative_to(root).as_posix() for place in there)
        return faults + [f"{path} does not belong to it." for path in extra if path not in known]

    def _remove(self, wanted: str) -> bool:
        handle = os.open(self._lock(wanted), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if self.folder(wanted).is_dir():
                # Renamed first, so that no reader ever sees half of a snapshot.
                rmtree(self.folder(wanted).rename(self._beside("gone")))
            self._record(wanted).unlink(missing_ok=True)
            self._lock(wanted).unlink(missing_ok=True)
        except BlockingIOError:
            return False
        finally:
            os.close(handle)
        return True

    def _build(self, snapshot: Snapshot) -> None:
        beside = self._beside("new")
        try:
            for root in ROOTS:
                make_folder(beside / root)
            for path, digest in self._files(snapshot):
                place = beside / path
                make_folder(place.parent)
                _link(self._objects.place(digest), place)
            if self.folder(snapshot.id).is_dir():
                self.folder(snapshot.id).rename(self._beside("gone"))
            beside.rename(self.folder(snapshot.id))
        except FileNotFoundError as error:
            raise Conflict(
                "Files of a source are gone.",
                code="snapshot_incomplete",
                why=str(error),
                fix="Read the sources anew with `denizen sources sync --reset`.",
            ) from error
        finally:
            rmtree(beside, ignore_errors=True)

    def _files(self, snapshot: Snapshot) -> Iterator[tuple[str, str]]:
        for part in snapshot.parts:
            for item in self._objects.read_manifest(part.manifest):
                yield f"{part.folder}/{item.path}", item.digest

    def _beside(self, what: str) -> Path:
        make_folder(self._root / "staging")
        return self._root / "staging" / f"{what}-{secrets.token_hex(6)}"

    def _record(self, wanted: str) -> Path:
        return self._kept / f"{wanted}.json"

    def _lock(self, wanted: str) -> Path:
        return self._kept / f"{wanted}.lock"


def _link(source: Path, place: Path) -> None:
    try:
        os.link(source, place)
    except OSError as error:
        # Some disks have no hard links, or not so many to one file.
        if error.errno not in _NO_LINKS:
            raise
        copyfile(source, place)
        place.chmod(FILE_MODE)


def _to_json(snapshot: Snapshot) -> bytes:
    told = asdict(snapshot) | {"created_at": snapshot.created_at.isoformat()}
    return json.dumps(told, indent=1).encode()


def _from_json(data: bytes) -> Snapshot:
    told: dict[str, Any] = json.loads(data)
    parts = tuple(SnapshotPart(**part) for part in told["parts"])
    return Snapshot(told["id"], datetime.fromisoformat(told["created_at"]), parts)
