"""One program, run to its end: bounded in time and output, in a group of its own that does not outlive it.

What is run and whether is decided elsewhere. The environment and folder are what is given, nothing of this process's.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.abc import ByteReceiveStream, Process

READ_BYTES = 1_000_000
"""Of what a program prints; one that prints more is stopped."""

_REAP_S = 5.0


@dataclass(frozen=True, slots=True)
class Ended:
    """What was printed, both streams as they came. `exit_code` is None when the program was stopped, because its time
    was over or, with `is_cut`, because it printed too much.
    """

    text: str
    exit_code: int | None
    is_cut: bool = False


async def run_program(argv: Sequence[str], *, cwd: Path, environ: Mapping[str, str], timeout_s: float) -> Ended:
    """Runs it without a shell and without input. Raises OSError when it cannot be started.

    Whatever ends the wait (its time, too much output, the caller going away), the whole process group is killed.
    """
    process = await anyio.open_process(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=cwd,
        env=dict(environ),
        start_new_session=True,
    )
    output = _Output()
    try:
        with anyio.move_on_after(timeout_s) as timer:
            await _follow(process, output)
    finally:
        await _end(process)
    stopped = timer.cancelled_caught or output.is_cut
    return Ended(output.text, None if stopped else process.returncode, output.is_cut)


class _Output:
    """What was read so far, within the bound."""

    def __init__(self) -> None:
        self._data = bytearray()
        self.is_cut = False

    @property
    def text(self) -> str:
        return self._data.decode("utf-8", "replace")

    async def read(self, stream: ByteReceiveStream) -> None:
        """Until its end, or until there is more than is read."""
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            while not self.is_cut:
                self._data += await stream.receive()
                if len(self._data) > READ_BYTES:
                    del self._data[READ_BYTES:]
                    self.is_cut = True


async def _follow(process: Process, output: _Output) -> None:
    """Until the program has ended and everything that it printed is read."""
    stdout = process.stdout
    assert stdout is not None
    async with anyio.create_task_group() as group:
        group.start_soon(_end_children_after, process)
        await output.read(stdout)
        if output.is_cut:
            group.cancel_scope.cancel()


async def _end_children_after(process: Process) -> None:
    """What the program left running would hold its output open."""
    await process.wait()
    _kill_group(process.pid)


def _kill_group(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


async def _end(process: Process) -> None:
    _kill_group(process.pid)
    with anyio.CancelScope(shield=True, deadline=anyio.current_time() + _REAP_S):
        await process.aclose()
