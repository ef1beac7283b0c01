"""A place for a home whose disk can be filled."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path


class LimitedDisk:
    """Where a home may lie, until it is full: a small file system, or (`pid`) a process that may not write any more."""

    def __init__(self, folder: Path, *, is_mounted: bool) -> None:
        self.folder = folder
        self.is_mounted = is_mounted

    def fill(self, pid: int) -> None:
        if not self.is_mounted:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
            return
        with suppress(OSError), (self.folder / "filler").open("wb", buffering=0) as filler:
            while True:
                filler.write(bytes(1024))

    def make_room(self) -> None:
        (self.folder / "filler").unlink(missing_ok=True)


@contextmanager
def open_limited_disk(folder: Path, size: str) -> Generator[LimitedDisk]:
    """A file system of that size (`2m`) on the folder, where root may mount one; else the plain folder."""
    folder.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    is_mounted = os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0
    yield LimitedDisk(folder, is_mounted=is_mounted)
    if is_mounted:
        subprocess.run(["umount", "-l", str(folder)], check=True)
