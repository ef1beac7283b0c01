"""Starts the programs of pipelines. `ProgramLauncher` starts them, `DirectRunner` runs them in the streams of a process
that was forked for a loop within a pipeline; `capture.py` runs all others.
"""

from __future__ import annotations

import json
import os
import signal
import stat
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

from denizen.adapters.sandbox.inside.evaluation import ProgramStage, Runner, Stage, Stream, XargsStage
from denizen.adapters.sandbox.inside.grammar import StreamRedirect
from denizen.adapters.sandbox.inside.isolation import MAX_FILES
from denizen.adapters.sandbox.inside.policy import check_installed
from denizen.adapters.sandbox.inside.reading import list_read
from denizen.adapters.sandbox.inside.words import CommandRefusedError
from denizen.adapters.sandbox.inside.xargs import run_xargs

REFUSED, OUT_OF_MEMORY = 126, 137
MAX_STDIN_BYTES = 16_000_000
"""The limit for what our xargs reads."""
MAX_TOLD_CHARS = 1_000_000
"""The limit for the paths that one process tells as read."""
_CHUNK = 65_536
_RESET = (signal.SIGPIPE, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGXFSZ)


Report = dict[str, Any]
"""A line of JSON. `refused` tells that a command was refused while others ran, `read` what one was given to read."""


@dataclass(slots=True)
class ProgramLauncher:
    """Starts programs. `programs` are their paths by name, `null` is a descriptor of /dev/null and `top` one of the
    top folder, whose path is `top_path`. `report` takes what the caller is told beside the streams; a process that is
    forked for a part of a pipeline writes it into a pipe.
    """

    programs: Mapping[str, str]
    environ: Mapping[str, str]
    null: int
    top: int
    top_path: str
    report: Callable[[Report], None]
    enclosing: list[StreamRedirect] = field(default_factory=list[StreamRedirect])
    """The redirects of the loops around what is started, the outer ones first."""
    told_chars: int = 0
    """The length of the paths that were told as read."""

    @contextmanager
    def redirect(self, streams: Sequence[Stream]) -> Generator[None]:
        """Redirects all that is started within the context. Only a single command reads a file."""
        before = self.enclosing
        self.enclosing = [*before, *(each for each in streams if isinstance(each, StreamRedirect))]
        try:
            yield
        finally:
            self.enclosing = before

    def apply_enclosing(self, table: dict[int, int]) -> dict[int, int]:
        for redirect in self.enclosing:
            table[redirect.descriptor] = self.null if redirect.target is None else table[redirect.target]
        return table

    def start(self, stages: Sequence[Stage], streams: tuple[int, int, int], reports: int) -> list[int]:
        """Starts a pipeline between these streams, which are descriptors above 2. Returns the processes, 0 for one
        whose input could not be opened. `reports` is a pipe for what they report, as lines of JSON. Raises OSError for
        a program that could not be started.
        """
        table = self.apply_enclosing(dict(enumerate(streams)))
        children: list[int] = []
        with ExitStack() as opened:
            stdin = table[0]
            for stage in stages[:-1]:
                following, write = os.pipe()
                opened.callback(os.close, following)
                try:
                    children.append(self._start_stage(stage, {0: stdin, 1: write, 2: table[2]}, reports))
                finally:
                    os.close(write)
                stdin = following
            children.append(self._start_stage(stages[-1], {**table, 0: stdin}, reports))
        return children

    def _start_stage(self, stage: Stage, table: dict[int, int], reports: int) -> int:
        with ExitStack() as opened:
            for stream in stage.streams:
                if isinstance(stream, StreamRedirect):
                    table[stream.descriptor] = self.null if stream.target is None else table[stream.target]
                    continue
                try:
                    table[0] = _open_file(stream.path)
                except OSError as error:
                    os.write(table[2], f"{stream.path}: {error.strerror}\n".encode(errors="surrogateescape"))
                    return 0
                opened.callback(os.close, table[0])
                self._tell_read(("cat", stream.path))
            if isinstance(stage, ProgramStage):
                return self.spawn(stage.argv, table)
            if isinstance(stage, XargsStage):
                return self._fork(table, reports, lambda _: self._run_xargs(stage))
            return self._fork(table, reports, stage.evaluate)

    def spawn(self, argv: Sequence[str], table: Mapping[int, int]) -> int:
        """Starts a program. Every argument list that runs passes here, in the current folder of the process: those of
        pipelines, of loops and of our xargs. What each is given to read goes to `report`.
        """
        self._tell_read(argv)
        return os.posix_spawn(
            self.programs[argv[0]],
            [os.fsencode(word) for word in argv],
            self.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, source, target) for target, source in table.items()],
            # Python ignores SIGPIPE; programs need it, so that `yes | head` ends.
            setsigdef=_RESET,
            setsigmask=(),
        )

    def _tell_read(self, argv: Sequence[str]) -> None:
        if self.told_chars > MAX_TOLD_CHARS:
            return
        read = list_read(argv, self.top_path)
        self.told_chars += sum(map(len, read))
        if self.told_chars > MAX_TOLD_CHARS:
            read = [*read, *list_read(("cat", "."), self.top_path)]  # any file below, from now on
        if read:
            self.report({"read": read})

    def _fork(self, table: Mapping[int, int], reports: int, evaluate: Callable[[Runner], int]) -> int:
        child = os.fork()
        if child:
            return child
        code, said = 125, ""
        try:
            for number in _RESET:
                signal.signal(number, signal.SIG_DFL)
            for target, source in table.items():
                os.dup2(source, target)
            # Open ends of other pipes would keep their readers waiting.
            kept = sorted({self.null, self.top, reports})
            for first, last in pairwise((2, *kept, MAX_FILES)):
                os.closerange(first + 1, last)
            self.enclosing = []
            self.report = partial(_write_report, reports)
            code = evaluate(DirectRunner(self, reports))
        except CommandRefusedError as refusal:
            # The first line keeps words of files in it from being taken for ours.
            code, said = REFUSED, f"stopped at a command that was made from input or in a loop:\n{refusal.explain()}"
            self.report({"refused": True})
        except OSError as error:
            code, said = REFUSED, f"cannot run this: {error.strerror}\n"
        except (MemoryError, RecursionError):
            code, said = OUT_OF_MEMORY, "this takes too much memory. Search for something narrower.\n"
        finally:
            with suppress(OSError):
                os.write(2, said.encode(errors="replace"))
            os._exit(code)

    def _run_xargs(self, stage: XargsStage) -> int:
        data = bytearray()
        while len(data) < MAX_STDIN_BYTES and (chunk := os.read(0, _CHUNK)):
            data += chunk

        def run(argv: list[str]) -> int:
            check_installed(argv[0], self.programs)
            try:
                child = self.spawn(argv, {0: self.null})
            except OSError as error:
                os.write(2, f"xargs: {argv[0]}: {error.strerror}\n".encode())
                return REFUSED
            _, status = os.waitpid(child, 0)
            return os.waitstatus_to_exitcode(status)

        code, said = run_xargs(stage.xargs, os.fsdecode(bytes(data)), stage.depth, run)
        os.write(2, said.encode(errors="surrogateescape"))
        return code


@dataclass(frozen=True, slots=True)
class DirectRunner:
    """Runs programs in the streams of this process. Whoever forked it keeps the time and the limit of output."""

    launcher: ProgramLauncher
    reports: int

    def redirect(self, streams: Sequence[Stream]) -> AbstractContextManager[None]:
        return self.launcher.redirect(streams)

    def run(self, stages: Sequence[Stage]) -> int:
        streams = (os.dup(0), os.dup(1), os.dup(2))
        try:
            children = self.launcher.start(stages, streams, self.reports)
        finally:
            for descriptor in streams:
                os.close(descriptor)
        codes = [exit_code(os.waitpid(child, 0)[1]) if child else 1 for child in children]
        return codes[-1]

    def write_error(self, text: str) -> None:
        table = self.launcher.apply_enclosing({0: 0, 1: 1, 2: 2})
        os.write(table[2], text.encode(errors="surrogateescape"))


def exit_code(status: int) -> int:
    """Returns the exit code as a shell tells it: a signal as 128 plus its number."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _write_report(descriptor: int, report: Report) -> None:
    os.write(descriptor, json.dumps(report).encode() + b"\n")


def _open_file(path: str) -> int:
    """Opens a file, and nothing that could be waited for. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode) or path == "/dev/null":
        return descriptor
    os.close(descriptor)
    raise OSError(0, "Is a directory" if stat.S_ISDIR(mode) else "Not a file")
