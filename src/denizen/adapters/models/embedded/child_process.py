"""The model server as a child process: its environment, starting it, hearing its port, knowing whether it lives, ending
it, and when it may be restarted.

The child gets its settings over stdin, which also ties its life to ours; its log goes to a file, so that nothing has to
be read while it runs. `runtime` decides when to start one.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TypeAlias, cast

import anyio
from anyio.abc import Process

from denizen.adapters.models.embedded.server import NO_LIBRARY, NO_RUNTIME, ServerSettings
from denizen.domain.errors import DenizenError, NeedsAttention, Unavailable
from denizen.domain.installation import build_install_command
from denizen.domain.record import record

RUNTIME = "xllamacpp"
_BASIC = frozenset(
    {
        "HOME",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "LD_LIBRARY_PATH",
        "DYLD_LIBRARY_PATH",
        "PATH",
        "PYTHONPATH",
        "PYTHONHOME",
        "SYSTEMROOT",
        "TMPDIR",
        "CUDA_VISIBLE_DEVICES",
        "HIP_VISIBLE_DEVICES",
    }
)
_PACKAGES = frozenset(
    {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"}
)
_PACKAGES_PREFIXES = ("PIP_", "UV_", "XDG_")


def pick_environment(environ: Mapping[str, str], *, for_packages: bool = False) -> dict[str, str]:
    """Returns the part of the environment that a child may see, without tokens and API keys; with proxies and index
    settings for package tools.
    """

    def allowed(name: str) -> bool:
        if name in _BASIC:
            return True
        return for_packages and (name.upper() in _PACKAGES or name.startswith(_PACKAGES_PREFIXES))

    return {name: value for name, value in environ.items() if allowed(name)}


@record(kw_only=True)
class RestartPolicy:
    """When a child that keeps dying may be restarted: the first time at once, later after a growing pause, and no more
    after `limit` deaths within `window_s`, until enough of them are older than the window.
    """

    limit: int = 5
    window_s: float = 600
    first_pause_s: float = 0.5
    longest_pause_s: float = 30

    def recent(self, deaths: Sequence[float], now: float) -> Sequence[float]:
        """Returns the deaths (monotonic seconds, ascending) that still count."""
        return tuple(death for death in deaths if now - death < self.window_s)

    def plan_pause_s(self, deaths: Sequence[float], now: float) -> float | None:
        """Returns the seconds to wait before the next start, 0 for none; None when it must not be started now."""
        counted = self.recent(deaths, now)
        if len(counted) >= self.limit:
            return None
        if len(counted) < 2:
            return 0
        pause = min(self.first_pause_s * 2 ** (len(counted) - 2), self.longest_pause_s)
        return max(0, counted[-1] + pause - now)


_COMMAND = (sys.executable, "-m", "denizen.adapters.models.embedded.server")
_GRACE_S = 5.0
_LOG_LIMIT_BYTES = 5_000_000
_TAIL_BYTES = 4_000
_TAIL_LINES = 12

_Answer: TypeAlias = Mapping[str, object]


@record
class ServerProcess:
    """A server that answers requests on `port` of the loopback address."""

    process: Process
    port: int

    def is_alive(self) -> bool:
        """Returns whether it runs. Asks the kernel where it can, which knows before the event loop is told."""
        if self.process.returncode is not None:
            return False
        if sys.platform == "darwin":
            return True
        try:
            return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        except ChildProcessError:
            return False

    async def aclose(self) -> None:
        """Lets it end, and kills it when it does not."""
        await _end(self.process)


def require_runtime() -> None:
    """Raises NeedsAttention where the runtime is not installed, before anything large is fetched for it."""
    if importlib.util.find_spec(RUNTIME) is None:
        raise _runtime_missing(f"There is no package {RUNTIME}.")


def _runtime_missing(why: str) -> NeedsAttention:
    return NeedsAttention(
        "The runtime of the built-in model is not installed.",
        code="embedded_runtime_missing",
        why=why,
        fix=f"Run: {build_install_command('local')}, or connect a provider with `denizen setup`.",
    )


async def start_server_process(
    settings: ServerSettings, environ: Mapping[str, str], log: Path, deadline_s: float
) -> ServerProcess:
    """Starts a server and returns when it answers requests. Nothing is left behind when it does not.

    Raises NeedsAttention when xllamacpp is not installed or the log cannot be written, Unavailable with the end of
    the log when the server does not come up within the deadline.
    """
    with _opened_log(log) as errors:
        start_of_run = errors.tell()
        process = await anyio.open_process(
            _COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**pick_environment(environ), "OMP_WAIT_POLICY": "passive"},
            start_new_session=True,  # Ctrl-C is for the parent; the child ends when stdin does
        )
    try:
        answer = await _hear(process, settings, deadline_s)
        port = answer.get("port") if answer else None
        if isinstance(port, int):
            return ServerProcess(process, port)
        if answer is not None:
            await process.wait()
    except BaseException:
        await _end(process)
        raise
    await _end(process)
    raise _not_started(answer, process.returncode, log, start_of_run)


async def _hear(process: Process, settings: ServerSettings, deadline_s: float) -> _Answer | None:
    """Returns what the child announces; an empty answer when it died without a word, None when it takes too long."""
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None
    assert stdout is not None
    said = b""
    with anyio.move_on_after(deadline_s):
        try:
            await stdin.send(settings.encode())
            while not said.endswith(b"\n"):
                said += await stdout.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return {}
        return cast("_Answer", json.loads(said))
    return None


async def _end(process: Process) -> None:
    with anyio.CancelScope(shield=True, deadline=anyio.current_time() + _GRACE_S):
        await process.aclose()  # closes stdin, waits, and kills when this scope runs out


def _opened_log(log: Path) -> IO[bytes]:
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        if log.exists() and log.stat().st_size > _LOG_LIMIT_BYTES:
            log.replace(log.with_suffix(".log.1"))
        log.touch(mode=0o600)
        return log.open("ab")
    except OSError as error:
        raise NeedsAttention(
            f"The log {log} cannot be written.",
            code="log_not_writable",
            why=str(error),
            fix=f"Make sure that {log.parent} is a folder that Denizen may write to.",
        ) from error


def _not_started(answer: _Answer | None, code: int | None, log: Path, start_of_run: int) -> DenizenError:
    if answer and answer.get("error") == NO_RUNTIME:
        return _runtime_missing(str(answer.get("detail")))
    if answer and answer.get("error") == NO_LIBRARY:
        return NeedsAttention(
            "The runtime of the built-in model lacks a library of the system.",
            code="embedded_library_missing",
            why=str(answer.get("detail")),
            fix="Install it (libgomp.so.1: `apt-get install libgomp1`), or connect a provider with `denizen setup`.",
        )
    return Unavailable(
        "The built-in model did not start.",
        code="embedded_model_not_started",
        why="\n".join((_ending(answer, code), *_tail(log, start_of_run))),
        fix=f"See {log}. When memory is short, choose a smaller model or context; "
        "or connect a provider with `denizen setup`.",
    )


def _ending(answer: _Answer | None, code: int | None) -> str:
    if answer is None:
        return "It was not ready in time."
    if answer:
        return str(answer.get("detail"))
    if code is not None and code < 0:
        hint = " (most often for want of memory)" if -code == signal.SIGKILL else ""
        return f"It was ended by signal {-code}{hint}."
    return f"It ended with exit code {code}."


def _tail(log: Path, start_of_run: int) -> list[str]:
    """Returns the last lines that this run wrote to the log."""
    with log.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(start_of_run, size - _TAIL_BYTES))
        return file.read().decode(errors="replace").splitlines()[-_TAIL_LINES:]
