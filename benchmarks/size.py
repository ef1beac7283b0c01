"""Measures the installation: Denizen with what it requires, without extras."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

from benchmarks.figures import Figure


def measure() -> Iterator[Figure]:
    sizes = {name: found for name in list_required() if (found := _size_mb(name)) is not None}
    largest = sorted(sizes, key=lambda name: -sizes[name])[:4]
    note = ", ".join(f"{name} {sizes[name]:.0f}" for name in largest)
    yield Figure(f"install size, {len(sizes)} packages", sum(sizes.values()), "MB", aim=150, note=f"largest: {note}")
    with_bytecode = sum(_bytecode_mb(distribution(name)) for name in sizes)
    yield Figure("  compiled bytecode beside it", with_bytecode, "MB")


def list_required() -> Sequence[str]:
    """Returns the packages that `pip install denizen` brings in on this platform."""
    seen, waiting = set[str](), [Requirement("denizen")]
    while waiting:
        wanted = waiting.pop()
        if str(wanted) in seen:
            continue
        seen.add(str(wanted))
        try:
            requires = distribution(wanted.name).requires or ()
        except PackageNotFoundError:
            continue
        for each in map(Requirement, requires):
            if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in ("", *wanted.extras)):
                each.marker = None
                waiting.append(each)
    return sorted({Requirement(each).name.lower().replace("_", "-") for each in seen} - {"denizen"})


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
