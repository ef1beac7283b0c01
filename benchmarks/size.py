"""Measures the installation: the locked requirements without the extra for the embedded model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from benchmarks.figures import Figure

LOCK = Path(__file__).resolve().parent.parent / "locks" / "run.txt"
EXTRAS = frozenset({"xllamacpp"})
"""Packages that only the `local` extra needs."""


def measure() -> Iterator[Figure]:
    names = [name for name in locked_names() if name not in EXTRAS]
    sizes = {name: found for name in names if (found := _size_mb(name)) is not None}
    largest = sorted(sizes, key=lambda name: -sizes[name])[:4]
    note = ", ".join(f"{name} {sizes[name]:.0f}" for name in largest)
    yield Figure(f"install size, {len(sizes)} packages", sum(sizes.values()), "MB", aim=150, note=f"largest: {note}")
    with_bytecode = sum(_bytecode_mb(distribution(name)) for name in sizes)
    yield Figure("  compiled bytecode beside it", with_bytecode, "MB")


def locked_names() -> Sequence[str]:
    lines = LOCK.read_text(encoding="utf-8").splitlines()
    return [match[1] for line in lines if (match := re.match(r"([A-Za-z0-9._-]+)==", line))]


def _size_mb(name: str) -> float | None:
    """The files that were installed, without bytecode; None for what this platform does not need."""
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return None
    paths = (Path(str(found.locate_file(file))) for file in found.files or ())
    return sum(path.stat().st_size for path in paths if path.suffix != ".pyc" and path.is_file()) / 1e6


def _bytecode_mb(found: Distribution) -> float:
    folders = {Path(str(found.locate_file(file))).parent / "__pycache__" for file in found.files or ()}
    return sum(path.stat().st_size for folder in folders if folder.is_dir() for path in folder.glob("*.pyc")) / 1e6
