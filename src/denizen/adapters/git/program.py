"""Running `git`: separate arguments, no shell, no prompt, nothing of the operator's own configuration.

Hooks, submodules, filters, LFS and file monitors have no way to run anything here: repositories are bare, nothing is
ever checked out, and the configuration that could name a program is not read. What a failure means is in `faults`.
"""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from pathlib import Path

import anyio
from anyio.abc import ByteReceiveStream, Process

from denizen.adapters.git.faults import explain_git_error
from denizen.domain.errors import NeedsAttention, Unavailable

_OPTIONS = (
    "--no-pager", "--no-replace-objects",
    "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "credential.helper=",
    "-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "fetch.recurseSubmodules=false",
    "-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=60", "-c", "http.followRedirects=initial",
    "-c", "protocol.version=2", "-c", "pack.threads=1",
)  # fmt: skip
MAX_FILE_BYTES = 4 * 1024**3
"""Of one file that git writes, such as what a fetch brings: a server could send without end."""
_MAX_OUTPUT_BYTES = 64 * 1024 * 1024
_MAX_SAID_BYTES = 64 * 1024
_REAP_S = 5.0
_PERCENT = re.compile(rb"([A-Z][a-z]+ [a-z]+): +(\d{1,3})%")
_PASSED_ON = (
    "PATH", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY",
)  # fmt: skip

OnPercent = Callable[[str, int], None]
"""Gets what git says that it is doing, and how far that is."""


class Git:
    """Runs commands of git. `environ` is the process's; of it only what is needed to find programs, keys of an SSH
    agent, certificates and a proxy goes on.
    """

    def __init__(self, environ: Mapping[str, str], *, max_file_bytes: int = MAX_FILE_BYTES) -> None:
        self.max_file_bytes = max_file_bytes
        passed = {name: environ[name] for name in _PASSED_ON if name in environ}
        self.environ = {
            **passed,
            "HOME": "/nonexistent",
            "XDG_CONFIG_HOME": "/nonexistent",
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "",
            "SSH_ASKPASS": "",
            "GIT_SSH_COMMAND": "ssh -oBatchMode=yes -oStrictHostKeyChecking=yes -oConnectTimeout=20",
            "GIT_ALLOW_PROTOCOL": "https:ssh:file",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_LFS_SKIP_SMUDGE": "1",
        }

    def with_variables(self, variables: Mapping[str, str]) -> Git:
        """One with these variables too."""
        other = copy(self)
        other.environ = {**self.environ, **variables}
        return other

    def argv(self, args: Sequence[str], folder: Path | None = None) -> list[str]:
        """The whole command line. `folder` is a bare repository."""
        where = [f"--git-dir={folder}"] if folder is not None else []
        return ["git", *_OPTIONS, *where, *args]

    async def run(
        self,
        *args: str,
        folder: Path | None = None,
        stdin: bytes = b"",
        timeout_s: float = 60.0,
        on_percent: OnPercent | None = None,
    ) -> bytes:
        """What it prints. Raises what `faults` makes of a failure, and Unavailable when its time is over."""
        try:
            process = await anyio.open_process(
                self.argv(args, folder), stdin=subprocess.PIPE, cwd="/", env=self.environ, start_new_session=True
            )
        except OSError as error:
            raise _no_git(error) from error
        output, said = bytearray(), bytearray()
        _bound_files(process.pid, self.max_file_bytes)
        try:
            with anyio.move_on_after(timeout_s) as timer:
                await _talk(process, stdin, output, _ErrorOutput(said, on_percent))
        finally:
            await _end(process)
        if timer.cancelled_caught or len(output) > _MAX_OUTPUT_BYTES:
            raise Unavailable("Git takes too long.", code="source_slow", why=f"`git {args[0]}` did not end in time.")
        if process.returncode != 0:
            raise explain_git_error(said.decode(errors="replace"))
        return bytes(output)


class _ErrorOutput:
    """What git says on standard error: kept up to a bound, its newest part, and followed for percentages."""

    def __init__(self, data: bytearray, on_percent: OnPercent | None) -> None:
        self._data = data
        self._on_percent = on_percent

    def __call__(self, piece: bytes) -> None:
        self._data += piece
        del self._data[:-_MAX_SAID_BYTES]
        if self._on_percent is not None and (found := _PERCENT.findall(piece)):
            self._on_percent(found[-1][0].decode("ascii"), int(found[-1][1]))


def _bound_files(process_id: int, size_bytes: int) -> None:
    """Of the process and those that it will start. Elsewhere than on Linux only the time bounds what it writes."""
    if sys.platform == "linux":
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        bound = size_bytes if most == resource.RLIM_INFINITY else min(size_bytes, most)
        with suppress(ProcessLookupError):  # it has ended already
            resource.prlimit(process_id, resource.RLIMIT_FSIZE, (bound, bound))


async def _talk(process: Process, stdin: bytes, output: bytearray, said: _ErrorOutput) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    async with anyio.create_task_group() as group:
        group.start_soon(_give, process, stdin)
        group.start_soon(_follow, process.stderr, said)
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            while len(output) <= _MAX_OUTPUT_BYTES:
                output += await process.stdout.receive()
        if len(output) > _MAX_OUTPUT_BYTES:
            group.cancel_scope.cancel()
    await process.wait()


async def _give(process: Process, stdin: bytes) -> None:
    assert process.stdin is not None
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        if stdin:
            await process.stdin.send(stdin)
        await process.stdin.aclose()


async def _follow(stream: ByteReceiveStream, said: _ErrorOutput) -> None:
    with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
        while True:
            said(await stream.receive())


async def _end(process: Process) -> None:
    """With all that it started, such as a transport."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with anyio.CancelScope(shield=True, deadline=anyio.current_time() + _REAP_S):
        await process.aclose()


def _no_git(error: OSError) -> NeedsAttention:
    return NeedsAttention(
        "The program `git` cannot be started.",
        code="git_missing",
        why=error.strerror or type(error).__name__,
        fix="Install git, such as with `apt install git`.",
    )
