"""Evaluates parsed commands: lists, loops, variables and the current folder. Every program that is to run is expanded
and checked here, and handed to a runner.

A text is evaluated twice. The rehearsal takes every branch and runs nothing, so that a text of which any command is
refused is refused before its first program starts. Then it is evaluated in earnest, where every command is expanded and
checked again: only then is it known which branches are taken.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol

from denizen.adapters.sandbox.inside.expansion import Expander
from denizen.adapters.sandbox.inside.grammar import (
    Assignment,
    Command,
    CommandList,
    ForLoop,
    InputRedirect,
    Pipeline,
    Redirect,
    SimpleCommand,
    StreamRedirect,
)
from denizen.adapters.sandbox.inside.paths import cut_text, resolve_path
from denizen.adapters.sandbox.inside.policy import check_installed, resolve_command
from denizen.adapters.sandbox.inside.words import CommandRefusedError
from denizen.adapters.sandbox.inside.xargs import XargsCommand, parse_xargs

MAX_RUNS = 1000
"""The limit for the commands that one text runs, with every turn of its loops."""
MAX_TURNS = 1000
"""The limit for the turns of all loops of one text."""
_BUILTINS = frozenset({"cd", "break", "continue"})


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that a command reads in the place of standard input, checked."""

    path: str


Stream = StreamRedirect | InputFile


@dataclass(frozen=True, slots=True)
class ProgramStage:
    """A checked program of a pipeline."""

    argv: tuple[str, ...]
    streams: tuple[Stream, ...] = ()


@dataclass(frozen=True, slots=True)
class XargsStage:
    """Our own xargs in a pipeline, in a folder `depth` levels below the top."""

    xargs: XargsCommand
    depth: int
    streams: tuple[Stream, ...] = ()


@dataclass(frozen=True, slots=True)
class LoopStage:
    """A loop that is part of a pipeline. `evaluate` runs it with a runner and returns its exit code."""

    evaluate: Callable[[Runner], int]
    streams: tuple[Stream, ...] = ()


Stage = ProgramStage | XargsStage | LoopStage


class Runner(Protocol):
    """Runs what was checked."""

    def run(self, stages: Sequence[Stage]) -> int | None:
        """Runs a pipeline. Returns the exit code of its last command, None if nothing really ran."""
        ...

    def redirect(self, streams: Sequence[Stream]) -> AbstractContextManager[None]:
        """Redirects all that runs within the context."""
        ...

    def write_error(self, text: str) -> None: ...


class Rehearsal:
    """A runner that runs nothing but the bodies of loops."""

    def run(self, stages: Sequence[Stage]) -> int | None:
        for stage in stages:
            if isinstance(stage, LoopStage):
                stage.evaluate(self)
        return None

    def redirect(self, streams: Sequence[Stream]) -> AbstractContextManager[None]:
        return nullcontext()

    def write_error(self, text: str) -> None:
        pass


class _LoopLeftError(Exception):
    """A `break` or `continue` ran."""

    def __init__(self, *, is_over: bool) -> None:
        super().__init__()
        self.is_over = is_over


@dataclass(slots=True)
class Evaluator:
    """Evaluates one text. `top` is a descriptor of the top folder, since its path may lead through folders that this
    process may not enter; `installed` are the programs of this machine.
    """

    runner: Runner
    top: int
    installed: Collection[str]
    expander: Expander = field(default_factory=Expander)
    folder: str = "."
    status: int | None = 0
    """The exit code so far; None in a rehearsal, where it is not known."""
    runs: int = 0
    turns: int = 0
    loops: int = 0

    def evaluate(self, commands: CommandList) -> int:
        """Returns the exit code. Begins in the top folder. Raises CommandRefusedError."""
        self._enter(".")
        self._evaluate_list(commands)
        return self.status or 0

    def _enter(self, folder: str) -> None:
        os.fchdir(self.top)
        os.chdir(folder)
        self._stand_in(folder)

    def _stand_in(self, folder: str) -> None:
        self.folder = folder
        self.expander.depth = 0 if folder == "." else folder.count("/") + 1

    def _evaluate_list(self, commands: CommandList) -> None:
        for pipeline in commands:
            is_unknown = self.status is None and pipeline.operator != ";"
            if not is_unknown and pipeline.operator == ("||" if self.status == 0 else "&&"):
                continue
            status = self._evaluate_pipeline(pipeline)
            if pipeline.is_negated and status is not None:
                status = int(status == 0)
            self.status = None if is_unknown else status
            self.expander.status = self.status or 0

    def _evaluate_pipeline(self, pipeline: Pipeline) -> int | None:
        command, *others = pipeline.commands
        if others:
            return self.runner.run(
                [self._make_stage(command, has_input=place > 0) for place, command in enumerate(pipeline.commands)]
            )
        if isinstance(command, Assignment):
            for name, word in command.values:
                self.expander.variables[name] = self.expander.expand_value(word)
            return 0
        streams = self._check_redirects(command.redirects)
        if isinstance(command, ForLoop):
            with self.runner.redirect(streams):
                return self._evaluate_loop(command)
        argv = self._expand(command)
        if argv[0] in _BUILTINS:
            with self.runner.redirect(streams):
                return self._run_builtin(argv)
        return self.runner.run([self._check(argv, streams, has_input=False)])

    def _make_stage(self, command: Command, *, has_input: bool) -> Stage:
        if isinstance(command, Assignment):
            raise CommandRefusedError("a variable is set within a pipeline", "Set it before, as in `f=docs/a.md; ...`.")
        streams = self._check_redirects(command.redirects)
        if isinstance(command, ForLoop):
            return LoopStage(lambda runner: self._evaluate_apart(command, runner), streams)
        argv = self._expand(command)
        if argv[0] in _BUILTINS:
            raise CommandRefusedError(
                f"{argv[0]} stands within a pipeline", f"Write {argv[0]} as a command of its own, before && or ;."
            )
        return self._check(argv, streams, has_input=has_input)

    def _evaluate_apart(self, loop: ForLoop, runner: Runner) -> int:
        """Evaluates a loop of a pipeline, which leaves variables and folder as they were."""
        before, variables, folder = self.runner, {**self.expander.variables}, self.folder
        self.runner = runner
        try:
            return self._evaluate_loop(loop) or 0
        finally:
            self.runner, self.expander.variables = before, variables
            self._enter(folder)

    def _expand(self, command: SimpleCommand) -> list[str]:
        self.runs += 1
        if self.runs > MAX_RUNS:
            raise CommandRefusedError(
                f"it runs more than {MAX_RUNS} commands",
                "Use grep -r, find -exec or xargs, which take many files at once.",
            )
        argv = self.expander.expand_words(command.words)
        if not argv or not argv[0]:
            raise CommandRefusedError("a command has no program", "Write one, such as ls.")
        return argv

    def _check(self, argv: list[str], streams: tuple[Stream, ...], *, has_input: bool) -> Stage:
        """Returns the stage for a program. The only way to one."""
        depth = self.expander.depth
        if argv[0] == "xargs":
            xargs = parse_xargs(argv, depth)
            check_installed(xargs.program, self.installed)
            return XargsStage(xargs, depth, streams)
        has_file = any(isinstance(stream, InputFile) for stream in streams)
        resolved = resolve_command(self._tell_folder(argv), depth, has_input=has_input or has_file)
        check_installed(resolved[0], self.installed)
        return ProgramStage(tuple(resolved), streams)

    def _tell_folder(self, argv: list[str]) -> list[str]:
        """Replaces `pwd`: where the top folder really lies is not told, and paths are relative to it."""
        if argv[0] != "pwd":
            return argv
        if not {*argv[1:]} <= {"-P", "-L"}:
            raise CommandRefusedError("pwd takes nothing", "Write pwd.")
        return ["echo", self.folder if self.folder == "." else f"./{self.folder}"]

    def _check_redirects(self, redirects: Sequence[Redirect]) -> tuple[Stream, ...]:
        return tuple(self._check_input(each) if isinstance(each, InputRedirect) else each for each in redirects)

    def _check_input(self, redirect: InputRedirect) -> InputFile:
        found = self.expander.expand(redirect.path)
        if len(found) != 1 or not found[0]:
            raise CommandRefusedError("< needs one file", "Write `< FILE`, or name the files as arguments.")
        if found[0] != "/dev/null":
            resolve_path(found[0], self.expander.depth)
        return InputFile(found[0])

    def _evaluate_loop(self, loop: ForLoop) -> int | None:
        items = self.expander.expand_words(loop.items)
        self.turns += len(items)
        if self.turns > MAX_TURNS:
            raise CommandRefusedError(
                f"its loops have more than {MAX_TURNS} turns", "Use grep -r, find -exec or xargs instead of a loop."
            )
        self.status = 0
        self.loops += 1
        try:
            for item in items:
                self.expander.variables[loop.name] = item
                try:
                    self._evaluate_list(loop.body)
                except _LoopLeftError as left:
                    self.status = 0
                    if left.is_over:
                        break
        finally:
            self.loops -= 1
        return self.status

    def _run_builtin(self, argv: list[str]) -> int:
        if argv[0] == "cd":
            return self._change_folder(argv[1:])
        if not self.loops or len(argv) > 1:
            raise CommandRefusedError(
                f"{argv[0]} stands outside of a loop, or has a number", f"Write {argv[0]} in a loop."
            )
        if not isinstance(self.runner, Rehearsal):
            raise _LoopLeftError(is_over=argv[0] == "break")
        return 0

    def _change_folder(self, args: list[str]) -> int:
        if len(args) != 1 or not args[0] or args[0].startswith("-"):
            raise CommandRefusedError(
                "cd takes one folder, and there is none to go back to",
                "Write `cd DIR`; each command begins at the top.",
            )
        inner = resolve_path(args[0], self.expander.depth)
        try:
            os.chdir(args[0])
        except OSError as error:
            self.runner.write_error(f"cd: {cut_text(args[0])}: {error.strerror}\n")
            return 1
        self._stand_in(inner)
        return 0
