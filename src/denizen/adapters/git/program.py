"""Runs `git` with separate arguments: no shell, no prompt, nothing of the operator's own configuration.

Hooks, submodules, filters, LFS and file monitors cannot run anything here: repositories are bare, nothing is ever
checked out, and configuration that could name a program is not read. `explain_git_error` turns what git prints (in
English, since the locale is fixed) into an error. `lock_repository` lets one process at a time use a repository.
"""

from __future__ import annotations

import fcntl
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from copy import copy
from pathlib import Path
from urllib.parse import urlsplit

import anyio
from anyio import to_thread
from anyio.abc import ByteReceiveStream, Process

from denizen.domain.errors import DenizenError, InvalidInput, LimitExceeded, NeedsAttention, NotFound, Unavailable
from denizen.domain.record import record

_OPTIONS = (
    "--no-pager",
    "--no-replace-objects",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "credential.helper=",
    "-c",
    "gc.auto=0",
    "-c",
    "maintenance.auto=false",
    "-c",
    "fetch.recurseSubmodules=false",
    "-c",
    "http.lowSpeedLimit=1000",
    "-c",
    "http.lowSpeedTime=60",
    "-c",
    "http.followRedirects=initial",
    "-c",
    "protocol.version=2",
    "-c",
    "pack.threads=1",
)
MAX_FILE_BYTES = 4 * 1024**3
"""The limit for one file that git writes, such as a fetched pack: a server could send without end."""
_MAX_OUTPUT_BYTES = 64 * 1024 * 1024
_MAX_SAID_BYTES = 64 * 1024
_REAP_S = 5.0
_PERCENT = re.compile(rb"([A-Z][a-z]+ [a-z]+): +(\d{1,3})%")
_PASSED_ON = (
    "PATH",
    "SSH_AUTH_SOCK",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "https_proxy",
    "HTTPS_PROXY",
    "no_proxy",
    "NO_PROXY",
)

OnPercent = Callable[[str, int], None]
"""Receives what git says that it is doing, and the percentage."""


@record
class RemoteAddress:
    """Where a repository is after redirects, and the addresses of its host, all of which may be reached."""

    location: str
    addresses: tuple[str, ...]


ResolveRemote = Callable[[str], Awaitable[RemoteAddress]]
"""Takes the location of a repository. Raises NotAllowed for one that may not be reached."""


class Git:
    """Runs commands of git.

    `environ` is this process's environment; git gets only the variables that are needed to find programs, keys of an
    SSH agent, certificates and a proxy. `resolve` is asked about each https address, unless a proxy decides what can be
    reached; without it all can.
    """

    def __init__(
        self, environ: Mapping[str, str], *, max_file_bytes: int = MAX_FILE_BYTES, resolve: ResolveRemote | None = None
    ) -> None:
        self.max_file_bytes = max_file_bytes
        self._resolve = resolve
        self.options: tuple[str, ...] = _OPTIONS
        passed = {name: environ[name] for name in _PASSED_ON if name in environ}
        self.environ = {
            **passed,
            # No home: git would read a configuration there that can name programs.
            "HOME": "/nonexistent",
            "XDG_CONFIG_HOME": "/nonexistent",
            # English, since errors are told apart by their words.
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            # Nobody could answer a question: git fails at once instead.
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "",
            "SSH_ASKPASS": "",
            "GIT_SSH_COMMAND": "ssh -oBatchMode=yes -oStrictHostKeyChecking=yes -oConnectTimeout=20",
            # Without ext::, which runs any command, and without plain http and git://.
            "GIT_ALLOW_PROTOCOL": "https:ssh:file",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_LFS_SKIP_SMUDGE": "1",
        }

    def with_variables(self, variables: Mapping[str, str]) -> Git:
        """Returns a copy that also sets these variables."""
        other = copy(self)
        other.environ = {**self.environ, **variables}
        return other

    async def open_remote(self, location: str) -> Git:
        """Returns a git for requests to that address. It connects to checked addresses only: it gets them, and follows
        no redirect itself. Plain http is for an http address only. Raises what `resolve` raises.
        """
        if location.startswith("http://"):
            return self.with_variables({"GIT_ALLOW_PROTOCOL": "http:https"})
        has_proxy = any(self.environ.get(name) for name in ("https_proxy", "HTTPS_PROXY"))
        if self._resolve is None or has_proxy or not location.startswith("https://"):
            return self
        found, other = await self._resolve(location), copy(self)
        parts = urlsplit(found.location)
        addresses = ",".join(f"[{each}]" if ":" in each else each for each in found.addresses)
        pinned = f"http.curloptResolve={parts.hostname}:{parts.port or 443}:{addresses}"
        moved = ("-c", f"url.{found.location}.insteadOf={location}") if found.location != location else ()
        other.options = (*self.options, "-c", "http.followRedirects=false", "-c", pinned, *moved)
        return other

    def argv(self, args: Sequence[str], folder: Path | None = None) -> list[str]:
        """Returns the whole command line. `folder` is a bare repository."""
        where = [f"--git-dir={folder}"] if folder is not None else []
        return ["git", *self.options, *where, *args]

    async def run(
        self,
        *args: str,
        folder: Path | None = None,
        stdin: bytes = b"",
        timeout_s: float = 60.0,
        on_percent: OnPercent | None = None,
    ) -> bytes:
        """Returns what the command prints. Raises what `explain_git_error` returns, and Unavailable on a time-out."""
        try:
            process = await anyio.open_process(
                self.argv(args, folder), stdin=subprocess.PIPE, cwd="/", env=self.environ, start_new_session=True
            )
        except OSError as error:
            raise _no_git(error) from error
        output, said = bytearray(), bytearray()
        # Set from outside: a preexec_fn is not safe in a process with threads.
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
    """The newest part of git's standard error, which is also searched for percentages."""

    def __init__(self, data: bytearray, on_percent: OnPercent | None) -> None:
        self._data = data
        self._on_percent = on_percent

    def __call__(self, piece: bytes) -> None:
        self._data += piece
        # The end counts: the reason of a failure comes last.
        del self._data[:-_MAX_SAID_BYTES]
        if self._on_percent is not None and (found := _PERCENT.findall(piece)):
            self._on_percent(found[-1][0].decode("ascii"), int(found[-1][1]))


def _bound_files(process_id: int, size_bytes: int) -> None:
    """Limits the files that the process and its children write. Without prlimit (not Linux) only time is limited."""
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
    """Kills the process with its children, such as a transport."""
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


_MISSING_BRANCH = re.compile(r"couldn't find remote ref|Remote branch .* not found", re.IGNORECASE)
_OTHER_OWNER = re.compile(r"dubious ownership", re.IGNORECASE)
_REFUSED_TRANSPORT = re.compile(r"transport '[^']*' not allowed|protocol .* is not supported", re.IGNORECASE)
_DENIED = re.compile(
    r"Authentication failed|could not read Username|could not read Password|Permission denied|"
    r"terminal prompts disabled|Host key verification failed|error: 40[13]\b",
    re.IGNORECASE,
)
_MISSING = re.compile(
    r"repository '[^']*' not found|Repository not found|does not exist|does not appear to be a git repository|"
    r"not a git repository|error: 404\b",
    re.IGNORECASE,
)
_DAMAGED = re.compile(
    r"bad object|corrupt|loose object|inflate|index-pack failed|unable to read|\.lock': File exists", re.IGNORECASE
)
"""The lock file is what a killed process leaves; nobody removes it."""
_MOVED = re.compile(r"returned error: 30[1278]")
_FULL = re.compile(r"No space left on device|Disk quota exceeded", re.IGNORECASE)
_TOO_LARGE = re.compile(r"File too large|died of signal 25")
_NO_SSH = re.compile(r"cannot run ssh", re.IGNORECASE)
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters: what a server says is shown on a terminal and must not control it."""
_MAX_WHY_CHARS = 300


def explain_git_error(said: str) -> DenizenError:
    """Returns the error for a run that failed, by what it printed. An unknown failure counts as worth another try."""
    lines = [_UNSEEN.sub(" ", line).strip() for line in re.split(r"[\r\n]+", said) if line.strip()]
    told = [line for line in lines if line.startswith(("fatal:", "error:", "remote:"))] or lines
    why = " ".join(told[-3:])[:_MAX_WHY_CHARS]
    if _MISSING_BRANCH.search(said):
        return NotFound("There is no such branch.", code="branch_missing", why=why, fix="Look at the source's branch.")
    if _OTHER_OWNER.search(said):
        fix = "Change the owner of the repository's folder to the user that runs Denizen."
        return NeedsAttention("The repository belongs to another user.", code="source_denied", why=why, fix=fix)
    if _MOVED.search(said):
        return NotFound("The repository has moved.", code="source_moved", why=why, fix="Write the new address.")
    if _REFUSED_TRANSPORT.search(said):
        return InvalidInput("Git does not read such addresses here.", code="source_invalid", why=why)
    if _TOO_LARGE.search(said):
        fix = "Take one without large files; of a server that knows partial clones only documents are fetched."
        return LimitExceeded("The repository is too large.", code="repository_too_large", why=why, fix=fix)
    if _FULL.search(said):
        return NeedsAttention(
            "The disk is full.", code="library_unusable", why=why, fix="Free disk space for the clones."
        )
    if _NO_SSH.search(said):
        fix = "Install it, such as with `apt install openssh-client`."
        return NeedsAttention("The program `ssh` cannot be started.", code="git_missing", why=why, fix=fix)
    if _DENIED.search(said):
        fix = "Check the address. A private repository is read over ssh, with a deploy key in the SSH agent and the "
        fix += "host in known_hosts."
        return NeedsAttention(
            "The repository does not exist, or may not be read.", code="source_denied", why=why, fix=fix
        )
    if _MISSING.search(said):
        return NotFound("There is no such repository.", code="source_missing", why=why, fix="Check the location.")
    if _DAMAGED.search(said):
        return Unavailable("The copy of the repository is damaged.", code="source_damaged", why=why)
    fix = "Look at the address and the network; the next sync tries again."
    return Unavailable("The repository could not be read.", code="source_unavailable", why=why, fix=fix)


LOOK_AGAIN_S = 0.2
PATIENCE_S = 600.0


@asynccontextmanager
async def lock_repository(place: Path) -> AsyncGenerator[None]:
    """Waits until nobody else uses the repository at `place`, in any process, and removes what killed fetches left in
    it.

    The repository need not exist yet. A fetch that is killed leaves packs as large as what had come so far; they may be
    removed only while nobody fetches there. Raises Unavailable when somebody holds the lock for long.
    """
    await to_thread.run_sync(_make_folder, place.parent)
    handle = os.open(place.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        await _wait_for(handle)
        await to_thread.run_sync(remove_unfinished, place)
        yield
    finally:
        os.close(handle)


def remove_unfinished(place: Path) -> None:
    """Removes unfinished packs and objects, and locks of programs that are gone. Blocks."""
    objects = place / "objects"
    for pattern in ("pack/tmp_*", "pack/.tmp-*", "??/tmp_obj_*", "tmp_*"):
        for left in objects.glob(pattern):
            left.unlink(missing_ok=True)
    for lock in place.glob("*.lock"):
        lock.unlink(missing_ok=True)


def _make_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


async def _wait_for(handle: int) -> None:
    with anyio.move_on_after(PATIENCE_S):
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                await anyio.sleep(LOOK_AGAIN_S)
            else:
                return
    raise Unavailable("Another process of Denizen reads this source.", code="source_busy")
