"""A process under test: what it says can be awaited while it runs, and it never outlives its test.

Pipes, or a terminal of its own (`start_in_terminal`). What the process is, is decided in `home.py`.
"""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol, Self

from tests.e2e.fork_server import get_fork_server
from tests.timing import HANG_LIMIT_S, PROCESS_LIMIT_S

_RECORD = re.compile(r"\d{4}-\d\d-\d\dT\S+Z \[")
_WAIT = re.compile(r"\[.*: \d+ s\]")

HEED_INTERRUPTS = "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL)"


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """How a process ended. A negative code is the signal that killed it."""

    code: int
    out: str
    err: str

    @property
    def ending(self) -> tuple[int, str]:
        return self.code, self.out

    @property
    def told(self) -> list[str]:
        """The lines on standard error without those of the log, and those that say how long something takes: on a busy
        machine there are more.
        """
        return [line for line in self.err.splitlines() if not (_RECORD.match(line) or _WAIT.fullmatch(line))]


class OutputStream:
    """One stream of a process, read as it comes, in a thread."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._said = b""
        self._ended = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._descriptor, 65_536)
            except OSError:  # the other end of a terminal is gone
                data = b""
            with self._changed:
                self._said += data
                self._ended = not data
                self._changed.notify_all()
            if not data:
                os.close(self._descriptor)
                return

    @property
    def text(self) -> str:
        with self._changed:
            return self._said.decode(errors="replace")

    def await_text(self, pattern: str, *, after: int = 0) -> re.Match[str]:
        """The first match behind the first `after` characters."""
        found: re.Match[str] | None = None

        def look() -> bool:
            nonlocal found
            found = re.compile(pattern, re.MULTILINE).search(self._said.decode(errors="replace"), after)
            return found is not None or self._ended

        with self._changed:
            self._changed.wait_for(look, HANG_LIMIT_S)
        assert found is not None, f"no {pattern!r} in {self.text!r}"
        return found

    def await_end(self) -> str:
        """All that was said."""
        self._thread.join(HANG_LIMIT_S)
        return self.text


class Process(Protocol):
    """The part of a process that these tests use."""

    @property
    def pid(self) -> int: ...

    @property
    def stdin(self) -> IO[bytes] | None: ...

    def wait(self, timeout: float) -> int: ...

    def send_signal(self, number: int, /) -> None: ...

    def kill(self) -> None: ...


class RunningProcess:
    """A process that has not been waited for yet. Use it as a context: it is killed at the end."""

    def __init__(
        self,
        process: Process,
        out: OutputStream,
        err: OutputStream,
        write: Callable[[bytes], object],
        limit_s: float = PROCESS_LIMIT_S,
    ) -> None:
        self._process = process
        self._write = write
        self.out = out
        self.err = err
        self._watchdog = threading.Timer(limit_s, process.kill)
        self._watchdog.daemon = True
        self._watchdog.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        return self._process.pid

    def type(self, text: str) -> None:
        """Writes to its standard input, or its terminal."""
        self._write(text.encode())

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def finish(self) -> ProcessResult:
        """Waits for its end."""
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
        code = self._process.wait(HANG_LIMIT_S)
        self._watchdog.cancel()
        return ProcessResult(code, self.out.await_end(), self.err.await_end())

    def stop(self, number: signal.Signals) -> ProcessResult:
        """Signals it and waits for its end."""
        self.signal(number)
        return self.finish()

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        try:
            return self._process.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> ProcessResult:
        """`kill -9`; nothing when it has ended."""
        return self.stop(signal.SIGKILL)


def start_soon(
    args: Sequence[str],
    environment: Mapping[str, str],
    *,
    network: str = "",
    pauses: Mapping[str, float] | None = None,
    limit_s: float = PROCESS_LIMIT_S,
) -> RunningProcess:
    """`denizen` with pipes, and without the time that imports take (`fork_server.py`)."""
    child = get_fork_server().start(args, environment, network, pauses=pauses)
    return RunningProcess(child, OutputStream(child.stdout), OutputStream(child.stderr), child.stdin.write, limit_s)


def start(command: Sequence[str], environment: Mapping[str, str]) -> RunningProcess:
    """With pipes."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # in workers of a parallel run; a child would inherit it
        command = after(HEED_INTERRUPTS, command)
    process = subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    )
    stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
    assert stdin is not None and stdout is not None and stderr is not None
    with stdout, stderr:  # the voices have descriptors of their own
        return RunningProcess(
            process, OutputStream(os.dup(stdout.fileno())), OutputStream(os.dup(stderr.fileno())), stdin.write
        )


def start_in_terminal(command: Sequence[str], environment: Mapping[str, str]) -> RunningProcess:
    """In a terminal of its own, the controlling one, so that what is typed can be Ctrl-C. Both streams are `out`."""
    master, slave = pty.openpty()
    claim = after(f"{HEED_INTERRUPTS}\nimport fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)", command)
    try:
        process = subprocess.Popen(
            claim, env=environment, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
    finally:
        os.close(slave)
    voice = OutputStream(master)
    return RunningProcess(process, voice, voice, lambda data: os.write(master, data))


def after(code: str, command: Sequence[str]) -> list[str]:
    """The command, in a process that ran the code first."""
    return [sys.executable, "-IS", "-c", f"import os, sys\n{code}\nos.execv(sys.argv[1], sys.argv[1:])", *command]


def read_home(folder: Path) -> dict[str, bytes]:
    """Every file below a folder by its relative name, as bytes."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }
