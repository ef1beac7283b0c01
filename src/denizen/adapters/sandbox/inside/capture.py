"""Runs checked pipelines and collects what they print, until the end, the deadline or the limit of output. Nothing that
was started outlives the command.
"""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field

from denizen.adapters.sandbox.inside.evaluation import Stage, Stream
from denizen.adapters.sandbox.inside.pipeline import ProgramLauncher, Report, exit_code

MAX_OUTPUT_BYTES = 8_000_000
"""The limit for both streams of a command together; one that prints more is stopped."""
TIMED_OUT, CAPPED = 124, 137
_CHUNK = 65_536


class CommandStoppedError(Exception):
    """The deadline (`TIMED_OUT`) or the output limit (`CAPPED`) was reached."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class CallerGoneError(Exception):
    """Nobody waits for the result any more."""


@dataclass(slots=True)
class CapturedOutput:
    """The output of a command so far, and what was reported beside it."""

    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)
    reports: list[Report] = field(default_factory=list[Report])

    @property
    def was_refused(self) -> bool:
        return any(report.get("refused") for report in self.reports)


@dataclass(frozen=True, slots=True)
class CapturingRunner:
    """Implements `Runner`. `kill` kills everything that was started; `control` is a descriptor whose other end hangs up
    when nobody waits any more. Raises CommandStoppedError and CallerGoneError.
    """

    launcher: ProgramLauncher
    output: CapturedOutput
    deadline: float
    control: int
    kill: Callable[[], None]

    def redirect(self, streams: Sequence[Stream]) -> AbstractContextManager[None]:
        return self.launcher.redirect(streams)

    def run(self, stages: Sequence[Stage]) -> int:
        pipes = [os.pipe() for _ in range(3)]
        stdout, stderr, reports = (write for _, write in pipes)
        readers = [read for read, _ in pipes]
        told = bytearray()
        try:
            try:
                children = self.launcher.start(stages, (self.launcher.null, stdout, stderr), reports)
            finally:
                for descriptor in (stdout, stderr, reports):
                    os.close(descriptor)
            output = self.output
            self._collect(dict(zip(readers, (output.stdout, output.stderr, told), strict=True)))
            codes = [self._wait(child) if child else 1 for child in children]
        finally:
            for descriptor in readers:
                os.close(descriptor)
            whole, _, _ = told.rpartition(b"\n")  # the rest is of a process that was killed
            self.output.reports += [json.loads(line) for line in whole.splitlines()]
        return codes[-1]

    def write_error(self, text: str) -> None:
        table = self.launcher.apply_enclosing({1: -1, 2: -2})
        target = {-1: self.output.stdout, -2: self.output.stderr}.get(table[2], bytearray())
        target += text.encode(errors="surrogateescape")

    def _collect(self, streams: Mapping[int, bytearray]) -> None:
        poll = select.poll()
        for descriptor in streams:
            poll.register(descriptor, select.POLLIN)
        poll.register(self.control, select.POLLHUP)
        left = set(streams)
        while left:
            remaining = self.deadline - time.monotonic()
            for descriptor, _ in poll.poll(max(0.0, remaining) * 1000):
                if descriptor == self.control:
                    raise CallerGoneError
                chunk = os.read(descriptor, _CHUNK)
                streams[descriptor].extend(chunk)
                if not chunk:
                    left.discard(descriptor)
                    poll.unregister(descriptor)
            if len(self.output.stdout) + len(self.output.stderr) > MAX_OUTPUT_BYTES:
                raise CommandStoppedError(CAPPED)
            if left and remaining <= 0:
                raise CommandStoppedError(TIMED_OUT)

    def _wait(self, child: int) -> int:
        """Waits for a child whose streams are closed already; one that goes on is waited for until the deadline."""
        pause_s = 0.0001
        while True:
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                return exit_code(status)
            if time.monotonic() > self.deadline:
                raise CommandStoppedError(TIMED_OUT)
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, 0.01)

    def clear(self) -> None:
        """Kills and reaps everything that was started, also after a pipeline that was started in part."""
        with suppress(ProcessLookupError):
            self.kill()
        with suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)
