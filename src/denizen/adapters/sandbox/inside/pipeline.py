"""Runs planned pipelines and collects what they print, until the end, the deadline or the limit of output.

`worker.py` calls it in the isolated process. Nothing that was started outlives the line.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from denizen.adapters.sandbox.inside.plan import PipelineStage, PlannedPipeline
from denizen.adapters.sandbox.inside.reading import list_read
from denizen.adapters.sandbox.inside.xargs import REFUSED, XargsCommand, run_xargs

MAX_OUTPUT_BYTES = 8_000_000
"""The limit for both streams of a line together; a line that prints more is stopped."""
MAX_STDIN_BYTES = 16_000_000
"""The limit for what our xargs reads."""
MAX_TOLD_BYTES = 1_000_000
"""The limit for what our xargs tells of the files that it gave to programs."""
TIMED_OUT, CAPPED = 124, 137
_CHUNK = 65_536
_RESET = (signal.SIGPIPE, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGXFSZ)


@dataclass(frozen=True, slots=True)
class ExecutionEnvironment:
    """The programs, environment and descriptors for running a pipeline. `kill` kills everything that was started;
    `control` is a descriptor whose other end hangs up when nobody waits any more. `top` is the path of the top folder.
    """

    programs: Mapping[str, str]
    environ: Mapping[str, str]
    null: int
    control: int
    kill: Callable[[], None]
    top: str


@dataclass(slots=True)
class LineOutput:
    """The output of a line so far. `read` are the paths that its commands were given to read, each behind a NUL."""

    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)
    read: bytearray = field(default_factory=bytearray)
    was_refused: bool = False

    @property
    def size(self) -> int:
        return len(self.stdout) + len(self.stderr)


class CommandStoppedError(Exception):
    """The deadline (`TIMED_OUT`) or the output limit (`CAPPED`) was reached; everything was killed."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class CallerGoneError(Exception):
    """Nobody waits for the result any more; everything was killed."""


def run_pipeline(
    pipeline: PlannedPipeline, depth: int, environment: ExecutionEnvironment, output: LineOutput, deadline: float
) -> int:
    """Runs the pipeline. Returns the exit code of its last command. Raises CommandStoppedError and CallerGoneError."""
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe()
    given_read, given_write = os.pipe()  # for xargs, which knows only in its process what it runs
    children: list[int] = []
    stdin = os.dup(environment.null)
    try:
        for number, stage in enumerate(pipeline.stages):
            is_last = number == len(pipeline.stages) - 1
            following, stdout = (-1, os.dup(out_write)) if is_last else os.pipe()
            try:
                if stage.xargs is None:
                    output.read += _told(stage.argv, environment)
                children.append(_start(stage, depth, environment, (stdin, stdout, err_write, given_write)))
            finally:
                os.close(stdin)
                os.close(stdout)
                stdin = following
    finally:
        if stdin >= 0:
            os.close(stdin)
        os.close(out_write)
        os.close(err_write)
        os.close(given_write)
    try:
        streams = {out_read: output.stdout, err_read: output.stderr, given_read: output.read}
        _collect(streams, environment, output, deadline)
        codes = [_wait(child, environment, deadline) for child in children]
    finally:
        os.close(out_read)
        os.close(err_read)
        os.close(given_read)
    for code, stage in zip(codes, pipeline.stages, strict=True):
        output.was_refused = output.was_refused or (stage.xargs is not None and code == REFUSED)
    return codes[-1]


def _told(argv: Sequence[str], environment: ExecutionEnvironment) -> bytes:
    return b"".join(b"\0" + os.fsencode(path) for path in list_read(argv, environment.top))


def _start(
    stage: PipelineStage, depth: int, environment: ExecutionEnvironment, streams: tuple[int, int, int, int]
) -> int:
    table = {0: streams[0], 1: streams[1], 2: streams[2]}
    for redirect in stage.redirects:
        table[redirect.descriptor] = environment.null if redirect.target is None else table[redirect.target]
    if stage.xargs is not None:
        return _fork_xargs(stage.xargs, depth, environment, table, streams[3])
    return _spawn(list(stage.argv), environment, table)


def _spawn(argv: list[str], environment: ExecutionEnvironment, table: Mapping[int, int]) -> int:
    actions = [(os.POSIX_SPAWN_DUP2, source, target) for target, source in table.items()]
    return os.posix_spawn(
        environment.programs[argv[0]],
        [os.fsencode(word) for word in argv],
        environment.environ,
        file_actions=actions,
        # Python ignores SIGPIPE; programs need it, so that `yes | head` ends.
        setsigdef=_RESET,
        setsigmask=(),
    )


def _fork_xargs(
    xargs: XargsCommand, depth: int, environment: ExecutionEnvironment, table: Mapping[int, int], given: int
) -> int:
    child = os.fork()
    if child:
        return child
    code = 125
    try:
        for number in _RESET:
            signal.signal(number, signal.SIG_DFL)
        for target, source in table.items():
            os.dup2(source, target)
        # Open ends of other pipes would keep their readers waiting. 256 is the limit that isolation sets.
        for descriptor in range(3, 256):
            if descriptor not in (environment.null, given):
                with suppress(OSError):
                    os.close(descriptor)
        data = bytearray()
        while len(data) < MAX_STDIN_BYTES and (chunk := os.read(0, _CHUNK)):
            data += chunk

        told = 0

        def run(command: list[str]) -> int:
            nonlocal told
            if told <= MAX_TOLD_BYTES:
                told += os.write(given, _told(command, environment))
                if told > MAX_TOLD_BYTES:
                    os.write(given, _told(["cat", "."], environment))  # any file below, then
            try:
                child = _spawn(command, environment, {0: environment.null})
            except OSError as error:
                os.write(2, f"xargs: {command[0]}: {error.strerror}\n".encode())
                return 126
            _, status = os.waitpid(child, 0)
            return os.waitstatus_to_exitcode(status)

        code, said = run_xargs(xargs, os.fsdecode(bytes(data)), depth, run)
        os.write(2, said.encode(errors="surrogateescape"))
    except OSError:
        code = 125
    finally:
        os._exit(code)


def _collect(
    streams: Mapping[int, bytearray], environment: ExecutionEnvironment, output: LineOutput, deadline: float
) -> None:
    poll = select.poll()
    for descriptor in streams:
        poll.register(descriptor, select.POLLIN)
    poll.register(environment.control, select.POLLHUP)
    left = set(streams)
    while left:
        remaining = deadline - time.monotonic()
        for descriptor, _ in poll.poll(max(0.0, remaining) * 1000):
            if descriptor == environment.control:
                environment.kill()
                raise CallerGoneError
            chunk = os.read(descriptor, _CHUNK)
            streams[descriptor].extend(chunk)
            if not chunk:
                left.discard(descriptor)
                poll.unregister(descriptor)
        if output.size > MAX_OUTPUT_BYTES:
            environment.kill()
            raise CommandStoppedError(CAPPED)
        if left and remaining <= 0:
            environment.kill()
            raise CommandStoppedError(TIMED_OUT)


def _wait(child: int, environment: ExecutionEnvironment, deadline: float) -> int:
    """Waits for a child whose streams are closed already; one that goes on is waited for until the deadline."""
    pause_s = 0.0001
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            code = os.waitstatus_to_exitcode(status)
            # A shell tells a signal as 128 plus its number.
            return code if code >= 0 else 128 - code
        if time.monotonic() > deadline:
            environment.kill()
            raise CommandStoppedError(TIMED_OUT)
        time.sleep(pause_s)
        pause_s = min(pause_s * 2, 0.01)
