"""Files by the SHA-256 of their content, and lists of files (manifests) likewise. Blocks; called in threads.

An object is written beside its place and renamed, so that one that is there is whole. Its time is when it was last
wanted: what nothing refers to goes only when nobody can be about to refer to it.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

FOLDER_MODE = 0o755
FILE_MODE = 0o644
"""Readable for everybody who gets so far: a confined program that reads a snapshot may run as somebody else."""


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """A file in a manifest."""

    path: str
    digest: str
    size_bytes: int


class ObjectStore:
    """`root` exists."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, data: bytes, now: datetime) -> str:
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
        """Raises FileNotFoundError."""
        with self.place(digest).open(encoding="utf-8", newline="\n") as lines:
            for line in lines:
                content, size, path = line.removesuffix("\n").split(" ", 2)
                yield ManifestEntry(path, content, int(size))

    def read_text(self, digest: str) -> str | None:
        """None when it is gone."""
        try:
            return self.place(digest).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None

    def list_digests(self, manifest: str) -> set[str]:
        """Of the files it lists; none when it is gone."""
        try:
            return {item.digest for item in self.read_manifest(manifest)}
        except FileNotFoundError:
            return set()

    def is_whole(self, manifest: str) -> bool:
        """Whether everything it lists is there with its size."""
        try:
            return all(_find_size(self.place(item.digest)) == item.size_bytes for item in self.read_manifest(manifest))
        except (FileNotFoundError, ValueError):
            return False

    def erase(self, digests: Iterable[str]) -> None:
        """Whenever they were last wanted."""
        for digest in digests:
            self.place(digest).unlink(missing_ok=True)

    def sweep(self, kept: set[str], before: datetime) -> int:
        """Removes what is not among the kept and was last wanted before. How many files went."""
        gone = 0
        for shelf in self._root.iterdir():
            with os.scandir(shelf) as entries:
                for entry in entries:
                    if f"{shelf.name}{entry.name}" not in kept and entry.stat().st_mtime < before.timestamp():
                        Path(entry.path).unlink(missing_ok=True)
                        gone += 1
        return gone


def make_folder(folder: Path) -> None:
    """With those above it; whatever the process's mask is, everybody may read."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        folder.chmod(FOLDER_MODE)


def write_file(place: Path, data: bytes, now: datetime) -> None:
    """At once or not at all."""
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
    """Raises FileNotFoundError."""
    with place.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _find_size(place: Path) -> int:
    try:
        return place.stat().st_size
    except FileNotFoundError:
        return -1
