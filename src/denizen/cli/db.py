"""`denizen db`: the database in use, and moving to another one."""

from __future__ import annotations

from pathlib import Path

import anyio
import click

from denizen.cli.command_group import CommandGroup
from denizen.cli.home import load_home_settings
from denizen.cli.long_work import LongWorkStep, show_long_work
from denizen.cli.terminal import echo


@click.group(cls=CommandGroup)
def command() -> None:
    """The database that holds everything: which it is, and how to move to another one."""


@command.command()
@click.pass_obj
def status(home: Path) -> None:
    """Show the database in use and the rows of each table."""
    from denizen.app.home.environment import read_environment
    from denizen.app.store_move import HomeStoreMove

    found = anyio.run(HomeStoreMove(load_home_settings(home), read_environment()).status)
    echo(f"{found.backend}: {found.place}")
    for each in found.tables:
        echo(f"{each.rows:>10}  {each.table}")
    echo(f"{sum(each.rows for each in found.tables):>10}  rows in {len(found.tables)} tables")
    if found.begun:
        echo(f"A move to {found.begun} has begun. `denizen db move` goes on with it, `denizen db forget` gives it up.")


@command.command()
@click.option(
    "--to", "url", required=True, metavar="URL", help="sqlite:///PATH or postgresql://USER:PASSWORD@HOST/NAME."
)
@click.pass_obj
def move(home: Path, url: str) -> None:
    """Move everything to another, empty database while Denizen runs.

    Rows are copied, changes are followed, every table is counted and hashed in both databases; then, in one short
    pause, the last changes follow, the configuration is switched, and a running Denizen restarts itself. The old
    database stays as it is and refuses writes. Until that pause Ctrl-C stops the move, and nothing has changed; the
    same command goes on with it.

    Write ${NAME} for a password in secrets.env; one in the URL is put there.
    """
    from denizen.app.home.environment import read_environment
    from denizen.app.store_move import HomeStoreMove
    from denizen.domain.store_move import MoveStage

    moving = HomeStoreMove(load_home_settings(home), read_environment())

    async def run() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(watch)
            await moving.run(url)
            group.cancel_scope.cancel()

    async def watch() -> None:
        while True:
            now = moving.progress
            report(LongWorkStep(stage=now.stage.value, done=now.done, total=now.total))
            await anyio.sleep(0.1)

    try:
        with show_long_work() as report:
            anyio.run(run)
    except KeyboardInterrupt:
        if moving.progress.stage is not MoveStage.DONE:
            echo(moving.progress.problem, err=True)
            raise
    done = moving.progress
    echo(f"Moved to {done.target}. Nobody could write for {done.pause_s:.2f} s. A running Denizen restarts itself.")


@command.command()
@click.confirmation_option("--yes", prompt="Give up the move, and note no more changes for it?")
@click.pass_obj
def forget(home: Path) -> None:
    """Give up a move that was interrupted. Empty the other database before you move there again."""
    from denizen.app.home.environment import read_environment
    from denizen.app.store_move import HomeStoreMove

    HomeStoreMove(load_home_settings(home), read_environment()).forget()
    echo("Given up.")
