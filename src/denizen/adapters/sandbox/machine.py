"""What of this machine a worker needs: the programs that are installed, their libraries, and a few files of data."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from denizen.adapters.sandbox.inside.programs import EXTERNAL
from denizen.domain.errors import Unavailable

SEARCHED = "/usr/local/bin:/usr/bin:/bin"
_LIBRARY = re.compile(r"(?:=>\s+|^\s+)(/\S+)\s+\(0x", re.MULTILINE)
_DATA = (
    "/dev/null", "/usr/lib/locale/C.utf8", "/usr/lib/locale/C.UTF-8", "/etc/magic", "/usr/lib/file/magic.mgc",
    "/usr/share/misc/magic.mgc", "/usr/share/file/misc/magic.mgc",
)  # fmt: skip
_LDD_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class HostPrograms:
    """`programs` by name, `libraries` and `data` as they are found. `scratch` is a folder that every machine has."""

    programs: dict[str, str]
    libraries: tuple[str, ...]
    data: tuple[str, ...]
    scratch: str

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(sorted(EXTERNAL - self.programs.keys()))


def find_host_programs(also: Sequence[str] = ()) -> HostPrograms:
    """Looks around; `also` are programs whose libraries are wanted too. Raises Unavailable (`sandbox_off`) on a system
    without what the sandbox is built on.
    """
    if sys.platform != "linux":
        raise sandbox_unavailable(f"the system is {sys.platform}, and only Linux can shut a program in like this")
    found = {name: shutil.which(name, path=SEARCHED) for name in sorted(EXTERNAL)}
    programs = {name: os.path.realpath(path) for name, path in found.items() if path}
    if not programs:
        raise sandbox_unavailable(f"none of its programs is installed in {SEARCHED}")
    return HostPrograms(
        programs, _find_libraries([*programs.values(), *also]), tuple(path for path in _DATA if Path(path).exists()),
        tempfile.gettempdir(),
    )  # fmt: skip


def sandbox_unavailable(why: str) -> Unavailable:
    return Unavailable(
        "There is no read-only shell on this machine.",
        code="sandbox_unavailable",
        why=why,
        fix="It needs Linux with user namespaces or Landlock (kernel 5.13 or newer) and seccomp. In a container, allow "
        "the landlock system calls, as Docker's usual profile does. `denizen doctor` tells more; the other tools work.",
    )


def _find_libraries(programs: list[str]) -> tuple[str, ...]:
    ldd = shutil.which("ldd", path=SEARCHED)
    if ldd is None:
        raise sandbox_unavailable("`ldd`, which tells the libraries of a program, is not installed")
    try:
        said = subprocess.run(  # noqa: S603 - paths that were found in the folders of the system
            [ldd, *programs], capture_output=True, text=True, timeout=_LDD_TIMEOUT_S, check=False,
            stdin=subprocess.DEVNULL, env={"PATH": SEARCHED, "LC_ALL": "C"},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise sandbox_unavailable(f"`ldd` failed: {error}") from error
    return tuple(sorted(set(_LIBRARY.findall(said.stdout))))
