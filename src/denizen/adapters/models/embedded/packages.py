"""Weights that come as Python packages: finding the parts, their bytes one after another, and fetching them with uv or
pip.

A part is looked for among the installed packages and in folders that hold packages installed with `--target` or `.whl`
files (read in place). The packages are never imported. Only wheels are fetched (a source package would run code), only
the pinned versions, without dependencies, into a folder that is removed afterwards.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import IO, cast

import anyio
from anyio import to_thread

from denizen.adapters.models.embedded.catalogue import WeightsPackages, WeightsPart
from denizen.adapters.models.embedded.child_process import pick_environment
from denizen.adapters.models.embedded.progress import LoadProgress, ReportLoadProgress
from denizen.adapters.models.embedded.stored import storing
from denizen.domain.errors import Unavailable
from denizen.domain.record import record

_CHUNK_BYTES = 1 << 20


@record
class PartLocation:
    """The place of one part: a file, or a member of a wheel."""

    path: Path
    member: str | None = None

    @contextmanager
    def opened(self) -> Generator[IO[bytes]]:
        """Opens the bytes of the part. Raises OSError or zipfile.BadZipFile."""
        if self.member is None:
            with self.path.open("rb") as file:
                yield file
        else:
            with zipfile.ZipFile(self.path) as wheel, wheel.open(self.member) as file:
                yield file


@record
class PartsSearch:
    """The result of a search: the parts in order, and the pins of packages that are missing."""

    found: Sequence[PartLocation]
    missing: Sequence[str]

    @property
    def complete(self) -> bool:
        return bool(self.found) and not self.missing

    def chunks(self) -> Iterator[bytes]:
        """Yields all parts in order, about a megabyte at a time. Raises OSError or zipfile.BadZipFile."""
        for part in self.found:
            with part.opened() as file:
                while chunk := file.read(_CHUNK_BYTES):
                    yield chunk


def search_installed(wanted: WeightsPackages) -> PartsSearch:
    """Returns the parts among the packages of this interpreter."""
    return _search(wanted, lambda part: _find_in_path(part, sys.path))


def search_folders(wanted: WeightsPackages, folders: Sequence[Path]) -> PartsSearch:
    """Returns the parts in folders of packages or wheels; the parts may be spread over several folders."""
    paths = [str(folder) for folder in folders]
    return _search(wanted, lambda part: _find_in_path(part, paths) or _find_in_wheels(part, folders))


def _search(wanted: WeightsPackages, find: Callable[[WeightsPart], PartLocation | None]) -> PartsSearch:
    looked = [(part, find(part)) for part in wanted.parts]
    return PartsSearch(
        found=tuple(found for _, found in looked if found is not None),
        missing=tuple(part.pin for part, found in looked if found is None),
    )


def _find_in_path(part: WeightsPart, path: Sequence[str]) -> PartLocation | None:
    for package in importlib.metadata.distributions(name=part.package, path=list(path)):
        file = Path(cast("Path", package.locate_file(part.member)))
        if package.version == part.version and file.is_file():
            return PartLocation(file)
    return None


def _find_in_wheels(part: WeightsPart, folders: Sequence[Path]) -> PartLocation | None:
    name = re.sub(r"[-_.]+", "_", part.package).lower()
    for folder in folders:
        for wheel in sorted(folder.glob(f"{name}-{part.version}-*.whl")):
            if _has_member(wheel, part.member):
                return PartLocation(wheel, part.member)
    return None


def _has_member(wheel: Path, member: str) -> bool:
    if not zipfile.is_zipfile(wheel):
        return False
    with zipfile.ZipFile(wheel) as archive:
        return member in archive.namelist()


_POLL_S = 1.0
_DEADLINE_S = 3 * 3600
_TAIL_LINES = 8


@record(kw_only=True)
class PackageTool:
    """The program that fetches packages. `environ` is the process's environment, with proxies and index settings. `uv`
    is the path of uv; None looks for it on PATH, and falls back to the pip of `python`.
    """

    environ: Mapping[str, str]
    uv: Path | None = None
    python: str = sys.executable

    def plan_command(self, pins: Sequence[str], folder: Path) -> Sequence[str]:
        """Returns the command that puts the pinned packages or their wheels into the folder."""
        uv = str(self.uv) if self.uv else shutil.which("uv", path=self.environ.get("PATH"))
        safe = ("--no-deps", "--only-binary", ":all:")
        if uv:
            cache = str(folder / ".cache")  # on the same disk, so that uv links instead of copying; removed with it
            target = ("--target", str(folder), "--python", self.python, "--cache-dir", cache)
            return (uv, "pip", "install", "--no-progress", *safe, *target, *pins)
        quiet = ("--no-cache-dir", "--no-input", "--disable-pip-version-check", "--progress-bar", "off")
        return (self.python, "-m", "pip", "download", *quiet, *safe, "--dest", str(folder), *pins)


@asynccontextmanager
async def fetched_packages(
    wanted: WeightsPackages, models: Path, tool: PackageTool, report: ReportLoadProgress
) -> AsyncGenerator[Path]:
    """Opens a folder with the packages, removed at the end. Raises Unavailable with the tool's last words."""
    folder = models / f".{wanted.name}-packages"
    shutil.rmtree(folder, ignore_errors=True)
    with storing(models):
        (folder / ".tmp").mkdir(parents=True)
    try:
        command = tool.plan_command([part.pin for part in wanted.parts], folder)
        environ = {**pick_environment(tool.environ, for_packages=True), "TMPDIR": str(folder / ".tmp")}
        log = folder / ".log"
        code = None
        with log.open("wb") as out, anyio.move_on_after(_DEADLINE_S):
            async with (
                await anyio.open_process(
                    command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environ
                ) as process,
                anyio.create_task_group() as tasks,
            ):
                tasks.start_soon(_watch, wanted, folder, report)
                code = await process.wait()
                tasks.cancel_scope.cancel()
        if code != 0:
            said = "\n".join(log.read_text(errors="replace").splitlines()[-_TAIL_LINES:])
            raise Unavailable(
                f"The packages with {wanted.title} could not be fetched.",
                code="weights_download_failed",
                why=said or "The tool was stopped at its deadline.",
                fix="Correct what the reason names (uv or pip must be there), and run `denizen models pull` again.",
            )
        yield folder
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(lambda: shutil.rmtree(folder, ignore_errors=True))


async def _watch(wanted: WeightsPackages, folder: Path, report: ReportLoadProgress) -> None:
    """Reports how much has arrived, from the size of the folder."""
    while True:
        done = await to_thread.run_sync(_size_bytes, folder)
        report(
            LoadProgress(f"fetching the packages of {wanted.title}", min(done, wanted.size_bytes), wanted.size_bytes)
        )
        await anyio.sleep(_POLL_S)


def _size_bytes(folder: Path) -> int:
    """Returns the size of all files below, a linked file once; files may vanish meanwhile."""
    seen: dict[int, int] = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                status = Path(parent, name).stat()
            except FileNotFoundError:
                continue
            seen[status.st_ino] = status.st_size
    return sum(seen.values())
