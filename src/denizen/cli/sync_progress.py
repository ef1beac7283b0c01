"""How far a sync is, on standard error: a bar for each source, and where that is no terminal now and then a line."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import field
from typing import TYPE_CHECKING, Protocol

import anyio
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from denizen.cli.terminal import echo
from denizen.domain.embedding_progress import describe_left
from denizen.domain.record import record
from denizen.ports.source import WAITING

if TYPE_CHECKING:
    from denizen.ports.source import ReadingProgress as Told

LOOK_EVERY_S = 0.1
PARTS = 10
"""A line for each further tenth: what is quick has none, and a log of what is slow stays short."""

Look = Callable[[], "Mapping[str, Told]"]


class _ProgressView(Protocol):
    def draw(self, seen: Mapping[str, Told]) -> None: ...


@record
class _ProgressBars:
    bars: Progress
    tasks: dict[str, TaskID] = field(default_factory=dict[str, TaskID])

    def draw(self, seen: Mapping[str, Told]) -> None:
        for source, told in seen.items():
            if source not in self.tasks:
                self.tasks[source] = self.bars.add_task("", source=source, total=None)
            self.bars.update(
                self.tasks[source], description=_describe(told), completed=told.done, total=told.total or None
            )


@record
class ProgressLines:
    """Progress as lines, for work that takes a while: the first look prints nothing, unless a source cannot be read."""

    write: Callable[[str], None]
    seen: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])

    def draw(self, seen: Mapping[str, Told]) -> None:
        for source, told in seen.items():
            part = told.done * PARTS // told.total if told.total else 0
            stage, before = self.seen.get(source, ("", 0))
            self.seen[source] = (told.stage, part)
            if told.stage.startswith(WAITING) and stage != told.stage:
                self.write(f"{source}: {told.stage}")
            if 0 < told.done < told.total and stage == told.stage and part > before:
                self.write(f"{source}: {_describe(told)}")


@asynccontextmanager
async def show_sync_progress(look: Look) -> AsyncGenerator[None]:
    """Until the block ends."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.fields[source]}", markup=False),
        BarColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        shown: _ProgressView = ProgressLines(lambda line: echo(line, err=True)) if bars.disable else _ProgressBars(bars)
        async with anyio.create_task_group() as group:
            group.start_soon(_follow, look, shown)
            yield
            group.cancel_scope.cancel()
        shown.draw(look())


async def _follow(look: Look, shown: _ProgressView) -> None:
    while True:
        shown.draw(look())
        await anyio.sleep(LOOK_EVERY_S)


def _describe(told: Told) -> str:
    """Git tells percents."""
    if not 0 < told.done < told.total:
        return told.stage
    if told.total == 100:
        return f"{told.stage}, {told.done} %"
    left = f", {describe_left(told.left_s)}" if told.left_s is not None else ""
    return f"{told.stage}, {told.done} of {told.total}{left}"
