"""`denizen background`: the tasks that agents gave to other agents without waiting for them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from denizen.cli.command_group import CommandGroup
from denizen.cli.home import with_denizen
from denizen.cli.terminal import echo, printable_json
from denizen.domain.delegation import BackgroundTask
from denizen.domain.words import truncate

if TYPE_CHECKING:
    from denizen.app.build import Denizen

TASK_CHARS = 100
_TIME = "%Y-%m-%d %H:%M:%S UTC"


@click.group(cls=CommandGroup)
def command() -> None:
    """List, show or cancel background tasks. Whoever has a shell here sees everybody's."""


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, as GET /api/background-tasks has them.")
@with_denizen
async def list_command(denizen: Denizen, *, as_json: bool) -> None:
    """List the tasks that run, and those that ended within the hour, the newest first."""
    from denizen.web.api.background_tasks import task_to_wire

    tasks = await denizen.delegations.list_tasks()
    if as_json:
        for task in tasks:
            click.echo(printable_json(asdict(task_to_wire(task))))
        return
    if not tasks:
        echo("There are no background tasks.")
    for task in tasks:
        echo(_head(task))
        echo(f"  {truncate(' '.join(task.task.split()), TASK_CHARS)}")


@command.command()
@click.argument("task")
@with_denizen
async def show(denizen: Denizen, task: str) -> None:
    """Show a task with its result."""
    found = await denizen.delegations.get_task(task)
    echo(_head(found))
    echo(f"  given away by turn {found.parent.id} of {found.delegator}, done in turn {found.turn_id}")
    echo(f"  task: {found.task}")
    if found.result:
        echo(f"  result: {found.result}")


@command.command()
@click.argument("task")
@click.pass_obj
def cancel(home: Path, task: str) -> None:
    """Stop a task that runs."""

    async def run() -> None:
        from denizen.app.build import OpenOptions, open_denizen

        # With durable runs: the task may run in the server.
        async with open_denizen(home, OpenOptions(needs_models=False)) as denizen:
            stopped = await denizen.delegations.cancel(task)
        echo(f"{stopped.id} is stopped.")

    anyio.run(run)


def _head(task: BackgroundTask) -> str:
    ended = f", ended {task.finished_at:{_TIME}}" if task.finished_at else ""
    return f"{task.id}  {task.agent}  {task.state}  for {task.asker}, since {task.created_at:{_TIME}}{ended}"
