"""A tiny root of its own: the programs with their libraries, and the folders, all read-only, in a mount namespace."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from denizen.adapters.sandbox.inside import kernel

_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REMOUNT, _BIND, _REC, _PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
_NOATIME, _NODIRATIME = 1024, 2048
_DETACH = 2
TOP = "/docs"
"""Where a line begins."""


@dataclass(frozen=True, slots=True)
class BindMount:
    """A file or folder of the system, and where it is to be seen. A folder of documents holds nothing to run."""

    source: str
    target: str
    is_documents: bool = False


def enter_root(binds: Sequence[BindMount], scratch: str) -> None:
    """Makes it and goes in; what was there before cannot be reached any more. `scratch` is any folder that exists.
    Raises OSError.
    """
    kernel.mount(None, "/", None, _REC | _PRIVATE)
    handles = [os.open(bind.source, os.O_PATH | os.O_CLOEXEC) for bind in binds]  # before the scratch folder is hidden
    kernel.mount("tmpfs", scratch, "tmpfs", _NOSUID | _NODEV, "size=1m,mode=0755")
    Path(scratch + TOP).mkdir(0o755)
    for bind, handle in zip(binds, handles, strict=True):
        _bind(bind, handle, scratch + bind.target)
        os.close(handle)
    kernel.mount(None, scratch, None, _REMOUNT | _BIND | _RDONLY | _NOSUID | _NODEV | _NOEXEC)
    os.chdir(scratch)
    kernel.pivot_root(".", ".")
    kernel.unmount(".", _DETACH)
    os.chdir(TOP)


def _bind(bind: BindMount, handle: int, target: str) -> None:
    mode = os.fstat(handle).st_mode
    if stat.S_ISDIR(mode):
        Path(target).mkdir(0o755, parents=True, exist_ok=True)
    else:
        Path(target).parent.mkdir(0o755, parents=True, exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_RDONLY | os.O_CLOEXEC, 0o644))
    kernel.mount(f"/proc/self/fd/{handle}", target, None, _BIND)
    # What the source's mount has is kept: without privileges of the machine none of it may be taken away.
    kept = os.statvfs(target).f_flag & (_RDONLY | _NOSUID | _NODEV | _NOEXEC | _NOATIME | _NODIRATIME)
    wanted = _RDONLY | _NOSUID | (0 if stat.S_ISCHR(mode) else _NODEV) | (_NOEXEC if bind.is_documents else 0)
    kernel.mount(None, target, None, _REMOUNT | _BIND | kept | wanted)
