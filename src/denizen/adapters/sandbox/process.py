"""One sandbox worker: the programs of this machine that it needs, its process, and requests to it, one at a time.

What runs inside is imported with the first worker: most processes never have one.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

import denizen
from denizen.domain.errors import Unavailable
from denizen.domain.record import record
from denizen.ports.sandbox import ShellResult, ShellView

SEARCHED = "/usr/local/bin:/usr/bin:/bin"
_LIBRARY = re.compile(r"(?:=>\s+|^\s+)(/\S+)\s+\(0x", re.MULTILINE)
_DATA = (
    "/dev/null",
    "/usr/lib/locale/C.utf8",
    "/usr/lib/locale/C.UTF-8",
    "/etc/magic",
    "/usr/lib/file/magic.mgc",
    "/usr/share/misc/magic.mgc",
    "/usr/share/file/misc/magic.mgc",
)
_LDD_TIMEOUT_S = 20.0


@record
class HostPrograms:
    """The programs of this machine by name, with the libraries and data files that they need. `scratch` is a folder
    that every machine has.
    """

    programs: dict[str, str]
    libraries: tuple[str, ...]
    data: tuple[str, ...]
    scratch: str

    @property
    def missing(self) -> tuple[str, ...]:
        from denizen.adapters.sandbox.inside.programs import EXTERNAL

        return tuple(sorted(EXTERNAL - self.programs.keys()))


def find_host_programs(also: Sequence[str] = ()) -> HostPrograms:
    """Finds the installed programs; `also` are programs whose libraries are needed too. Raises Unavailable
    (`sandbox_off`) on a system without what the sandbox is built on.
    """
    if sys.platform != "linux":
        raise sandbox_unavailable(f"the system is {sys.platform}, and only Linux can shut a program in like this")
    from denizen.adapters.sandbox.inside.programs import EXTERNAL

    found = {name: shutil.which(name, path=SEARCHED) for name in sorted(EXTERNAL)}
    programs = {name: os.path.realpath(path) for name, path in found.items() if path}
    if not programs:
        raise sandbox_unavailable(f"none of its programs is installed in {SEARCHED}")
    ldd = shutil.which("ldd", path=SEARCHED)
    if ldd is None:
        raise sandbox_unavailable("`ldd`, which tells the libraries of a program, is not installed")
    try:
        result = subprocess.run(  # noqa: S603 - paths that were found in the folders of the system
            [ldd, *programs.values(), *also],
            capture_output=True,
            text=True,
            timeout=_LDD_TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
            env={"PATH": SEARCHED, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise sandbox_unavailable(f"`ldd` failed: {error}") from error
    libraries = tuple(sorted(set(_LIBRARY.findall(result.stdout))))
    return HostPrograms(
        programs, libraries, tuple(path for path in _DATA if Path(path).exists()), tempfile.gettempdir()
    )


def sandbox_unavailable(why: str) -> Unavailable:
    return Unavailable(
        "There is no read-only shell on this machine.",
        code="sandbox_off",
        why=why,
        fix="It needs Linux with user namespaces or Landlock (kernel 5.13 or newer) and seccomp. In a container, allow "
        "the landlock system calls, as Docker's usual profile does. `denizen doctor` tells more; the other tools work.",
    )


START_TIMEOUT_S = 20.0
SLACK_S = 5.0
"""How long a worker may take beyond its own deadline before it counts as stuck."""
UNPRIVILEGED_UID = 64_000
"""The user that a worker of the superuser becomes. As a rule nobody else has this number."""
_MAX_REPLY_BYTES = 64_000_000
_CODE = "import sys; sys.path.insert(0, sys.argv[1]); from denizen.adapters.sandbox.inside.worker import main; main()"
_ROOT = str(Path(denizen.__file__).parent.parent)


@record
class SandboxLimits:
    """The limits of workers. `timeout_s` holds for one command, `batch_timeout_s` for all of a call; a worker ends
    after `idle_s` without a request.
    """

    workers: int = 2
    timeout_s: float = 10.0
    batch_timeout_s: float = 30.0
    memory_mb: int = 512
    idle_s: float = 300.0


class SandboxWorkerError(Exception):
    """A worker could not isolate itself, or ended, or is stuck. The text says why."""

    def __init__(self, why: str, *, is_stuck: bool = False) -> None:
        super().__init__(why)
        self.is_stuck = is_stuck


class SandboxWorker:
    """A running worker. `start_worker` makes it; the caller closes it."""

    def __init__(self, process: Process, limits: SandboxLimits) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._limits = limits
        self._requests = process.stdin
        self._replies = BufferedByteReceiveStream(process.stdout)

    async def run(self, commands: Sequence[str]) -> tuple[ShellResult, ...]:
        """Runs the commands. Raises SandboxWorkerError, after which the worker cannot be used any more."""
        from denizen.adapters.sandbox.inside.worker import MAX_COMMAND_CHARS

        limits = self._limits
        total_s = min(limits.batch_timeout_s, limits.timeout_s * len(commands))
        # What is too long is refused inside, in the words of the one judge; more than that need not travel.
        sent = [command[: MAX_COMMAND_CHARS + 1] for command in commands]
        request = {"commands": sent, "timeout_s": limits.timeout_s, "total_timeout_s": total_s}
        reply = await self._exchange(request, total_s + SLACK_S)
        results = cast("list[dict[str, Any]]", reply.get("results", []))
        if len(results) != len(commands):
            raise SandboxWorkerError("the worker gave no answer")
        return tuple(
            ShellResult(command, **{**result, "read": tuple(result["read"])})  # pyright: ignore[reportArgumentType]
            for command, result in zip(commands, results, strict=True)
        )

    async def isolate(self, spec: dict[str, Any]) -> None:
        """Sends the isolation spec. Raises SandboxWorkerError with what the system refused."""
        reply = await self._exchange(spec, START_TIMEOUT_S)
        if reply.get("ready") is not True:
            raise SandboxWorkerError(str(reply.get("failed", "the worker did not start")))

    async def _exchange(self, message: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        try:
            with anyio.fail_after(timeout_s):
                await self._requests.send(json.dumps(message).encode() + b"\n")
                return json.loads(await self._replies.receive_until(b"\n", _MAX_REPLY_BYTES))
        except TimeoutError:
            raise SandboxWorkerError("the worker is stuck", is_stuck=True) from None
        except (anyio.BrokenResourceError, anyio.EndOfStream, anyio.IncompleteRead, anyio.DelimiterNotFound, OSError):
            raise SandboxWorkerError("the worker ended") from None

    async def aclose(self) -> None:
        """Kills the worker: it holds nothing that could be lost."""
        with anyio.CancelScope(shield=True):
            with suppress(ProcessLookupError, PermissionError):
                # The group holds all that the worker started.
                os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.aclose()


async def start_worker(tier: str, view: ShellView, host: HostPrograms, limits: SandboxLimits) -> SandboxWorker:
    """Starts a worker. Raises SandboxWorkerError with what the system refused."""
    try:
        process = await anyio.open_process(
            # -I and -S: no packages, no user site, nothing of the environment; the worker needs none and loads faster.
            [sys.executable, "-I", "-S", "-c", _CODE, _ROOT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"LC_ALL": "C.UTF-8"},
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        raise SandboxWorkerError(f"no process could be started: {error.strerror}") from error
    worker = SandboxWorker(process, limits)
    try:
        await worker.isolate(plan_isolation(tier, view, host, limits))
    except BaseException:
        await worker.aclose()
        raise
    return worker


def plan_isolation(tier: str, view: ShellView, host: HostPrograms, limits: SandboxLimits) -> dict[str, Any]:
    """Returns the isolation spec as `inside/worker.py` reads it."""
    from denizen.adapters.sandbox.inside.isolation import TOP

    folders = [(str(folder.resolve()), f"{TOP}/{name}".rstrip("/")) for name, folder in view.folders]
    is_moved = tier == "namespaces"
    programs = {name: f"/bin/{name}" if is_moved else path for name, path in host.programs.items()}
    runnable = [(path, f"/bin/{name}") for name, path in host.programs.items()]
    runnable += [(library, library) for library in host.libraries]
    return {
        "tier": tier,
        "folders": folders,
        "runnable": runnable,
        "readable": [(path, path) for path in host.data],
        "scratch": host.scratch,
        "memory_bytes": limits.memory_mb * 1_000_000,
        # Another user could not read folders that are closed to others, so there the worker stays who it is.
        "uid": UNPRIVILEGED_UID if is_world_readable(view) else None,
        "programs": programs,
        "environ": {
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "PATH": "/bin" if is_moved else ":".join(sorted({str(Path(path).parent) for path in programs.values()})),
        },
        "idle_s": limits.idle_s,
    }


def is_world_readable(view: ShellView) -> bool:
    """Returns whether everybody may read the folders. For folders that only their owner may read, a worker of the
    superuser keeps its user number, without any privileges.
    """
    open_to_all = stat.S_IROTH | stat.S_IXOTH
    return all(folder.stat().st_mode & open_to_all == open_to_all for _, folder in view.folders)
