"""Turns the text of a line into commands that passed every check, ready to run. Runs nothing.

The whole line is planned before its first command starts: a line is refused as a whole or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from denizen.adapters.sandbox.inside.expansion import GlobWalker, check_path, expand
from denizen.adapters.sandbox.inside.policy import check_command, refuse_program
from denizen.adapters.sandbox.inside.words import (
    CommandRefusedError,
    Operator,
    ParsedPipeline,
    SimpleCommand,
    StreamRedirect,
    parse_line,
)
from denizen.adapters.sandbox.inside.xargs import XargsCommand, parse_xargs

MAX_COMMANDS = 32
"""The limit for one line."""
MAX_STAGES = 10
"""The limit for one pipeline: its commands run at the same time, each with the memory that one may have."""


@dataclass(frozen=True, slots=True)
class PipelineStage:
    """One command of a pipeline. `xargs` is set when the command is our own xargs."""

    argv: tuple[str, ...]
    redirects: tuple[StreamRedirect, ...]
    xargs: XargsCommand | None = None


@dataclass(frozen=True, slots=True)
class PlannedPipeline:
    """A pipeline that passed every check, and the operator before it."""

    operator: Operator
    stages: tuple[PipelineStage, ...]


@dataclass(frozen=True, slots=True)
class LinePlan:
    """A line that passed every check. It runs in `folder`, relative to the top and `depth` levels below it."""

    folder: str
    depth: int
    pipelines: tuple[PlannedPipeline, ...]


@dataclass(frozen=True, slots=True)
class LinePlanner:
    """Plans lines. `top` is the path of the top folder, and `handle` a descriptor of it, since its path may lead
    through folders that the worker may not enter. `installed` are the programs that this machine has.
    """

    top: str
    handle: int
    installed: Collection[str]

    def plan(self, text: str) -> LinePlan:
        """Plans the line and leaves the process in the folder of the line. Raises CommandRefusedError."""
        pipelines = parse_line(text)
        os.fchdir(self.handle)
        if sum(len(pipeline.commands) for pipeline in pipelines) > MAX_COMMANDS:
            raise CommandRefusedError(
                f"the line has more than {MAX_COMMANDS} commands", "Send several lines as a batch."
            )
        if any(len(pipeline.commands) > MAX_STAGES for pipeline in pipelines):
            raise CommandRefusedError(
                f"a pipeline has more than {MAX_STAGES} commands", "Send several lines as a batch."
            )
        folder, depth, walk = ".", 0, GlobWalker()
        if self._is_cd(pipelines[0]):
            folder, depth = self._enter(pipelines, walk)
            pipelines = pipelines[1:]
        planned = tuple(
            PlannedPipeline(
                each.operator if number else "", tuple(self._stage(command, depth, walk) for command in each.commands)
            )
            for number, each in enumerate(pipelines)
        )
        return LinePlan(folder, depth, planned)

    @staticmethod
    def _is_cd(pipeline: ParsedPipeline) -> bool:
        return "".join(char for char, _ in pipeline.commands[0].words[0]) == "cd" and len(pipeline.commands) == 1

    def _enter(self, pipelines: Sequence[ParsedPipeline], walk: GlobWalker) -> tuple[str, int]:
        command = pipelines[0].commands[0]
        words = [text for word in command.words[1:] for text in expand(word, 0, walk)]
        if len(words) != 1 or command.redirects or (len(pipelines) > 1 and pipelines[1].operator != "&&"):
            raise CommandRefusedError(
                "cd is used in a way that is not allowed", "Write `cd DIR && ...` at the beginning."
            )
        folder = words[0]
        if folder.startswith("-"):
            raise CommandRefusedError(
                "there is no folder to go back to", "Write `cd DIR && ...`; each line begins at the top."
            )
        check_path(folder, 0)
        # A link below the top may lead out of it.
        reached = os.path.realpath(folder)
        if reached != self.top and not reached.startswith(f"{self.top.rstrip('/')}/"):
            raise CommandRefusedError(f"`{folder[:80]}` leads out of the top folder", "Name a folder below it.")
        inner = os.path.relpath(reached, self.top)
        try:
            os.chdir(inner)
        except OSError as error:
            raise CommandRefusedError(
                f"cd: {folder[:80]}: {error.strerror}", "`ls` or `find . -type d` show what there is."
            ) from None
        return inner, 0 if inner == "." else inner.count("/") + 1

    def _stage(self, command: SimpleCommand, depth: int, walk: GlobWalker) -> PipelineStage:
        argv = tuple(text for word in command.words for text in expand(word, depth, walk))
        if not argv or not argv[0]:
            raise CommandRefusedError("a command has no program", "Write one, such as ls.")
        self._check_installed(argv[0])
        if argv[0] == "xargs":
            xargs = parse_xargs(argv, depth)
            self._check_installed(xargs.command[0])
            return PipelineStage(argv, command.redirects, xargs)
        check_command(argv, depth)
        return PipelineStage(argv, command.redirects)

    def _check_installed(self, name: str) -> None:
        refuse_program(name)
        if name != "xargs" and name not in self.installed:
            others = ", ".join(sorted({*self.installed, "xargs"}))
            raise CommandRefusedError(f"`{name}` is not installed here", f"There are {others}.")
