"""Where a process runs, precisely enough to see from another process whether it is gone.

A pid means something only within one boot and one pid namespace; and as pids come back, the time of birth counts too.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Place:
    """`realm` is that within which `pid` is unique; `born` the kernel's start time of the process, empty if unknown."""

    realm: str
    pid: int
    born: str


def here() -> Place:
    """The place of this process."""
    pid = os.getpid()
    return Place(_realm(), pid, _born(pid) or "")


def is_gone(place: Place) -> bool:
    """Whether that process has certainly ended. False for one that cannot be seen from here."""
    if place.realm != _realm():
        return False
    if place.born:
        return _born(place.pid) != place.born
    try:
        os.kill(place.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _realm() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return socket.gethostname()


def _born(pid: int) -> str | None:
    """Clock ticks from boot to the start of the process; None when there is none, or no /proc."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    # A zombie runs nothing any more; its parent has not looked yet.
    return None if fields[0] in {"Z", "X"} else fields[19]
