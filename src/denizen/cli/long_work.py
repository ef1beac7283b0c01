"""How far work is that takes minutes, on standard error: a bar, and where that is no terminal a line for each step."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from denizen.cli.terminal import echo
from denizen.domain.record import record


class LongWorkProgress(Protocol):
    """The step that is under way, in words, and how much of it is done."""

    @property
    def stage(self) -> str: ...
    @property
    def done(self) -> int: ...
    @property
    def total(self) -> int: ...


@record(kw_only=True)
class LongWorkStep:
    """Implements `LongWorkProgress`."""

    stage: str
    done: int
    total: int


@contextmanager
def show_long_work() -> Generator[Callable[[LongWorkProgress], None]]:
    """Shows what the yielded function is told, until the block ends."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        task = bars.add_task("", total=None)
        told = ""

        def report(progress: LongWorkProgress) -> None:
            nonlocal told
            if bars.disable and progress.stage != told:
                echo(f"{progress.stage} ...", err=True)
            told = progress.stage
            bars.update(task, description=progress.stage, completed=progress.done, total=progress.total or None)

        yield report
