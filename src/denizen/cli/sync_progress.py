"""How far a sync is: a bar for each source on standard error, and nothing where that is no terminal."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

if TYPE_CHECKING:
    from denizen.ports.source import Progress as Told

LOOK_EVERY_S = 0.1

Look = Callable[[], "Mapping[str, Told]"]


@asynccontextmanager
async def show_progress(look: Look) -> AsyncGenerator[None]:
    """Until the block ends."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.fields[source]}", markup=False),
        BarColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        tasks: dict[str, TaskID] = {}
        async with anyio.create_task_group() as group:
            group.start_soon(_follow, look, bars, tasks)
            yield
            group.cancel_scope.cancel()
        _draw(look(), bars, tasks)


async def _follow(look: Look, bars: Progress, tasks: dict[str, TaskID]) -> None:
    while not bars.disable:
        _draw(look(), bars, tasks)
        await anyio.sleep(LOOK_EVERY_S)


def _draw(seen: Mapping[str, Told], bars: Progress, tasks: dict[str, TaskID]) -> None:
    for source, told in seen.items():
        if source not in tasks:
            tasks[source] = bars.add_task("", source=source, total=None)
        bars.update(tasks[source], description=told.stage, completed=told.done, total=told.total or None)
