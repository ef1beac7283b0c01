"""`denizen restore`: makes a home folder of a backup."""

from __future__ import annotations

from pathlib import Path

import click

from denizen.cli.backup import IDENTITY
from denizen.cli.long_work import show_long_work
from denizen.cli.terminal import echo


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--to", "target", type=click.Path(path_type=Path), required=True, help="The new home folder.")
@IDENTITY
def command(file: Path, target: Path, identity: Path | None) -> None:
    """Restore the backup FILE into a new home folder, which appears when everything is checked: the hash of each file,
    each page, reference and row count of the databases, and that this version can read them.

    It never overwrites anything, so the folder must be empty or not exist.
    """
    from denizen.app.backups import describe_backup, list_restore_steps, restore_backup

    with show_long_work() as report:
        manifest = restore_backup(file.absolute(), target, identity, report)
    echo(f"{target.absolute()}\n{describe_backup(manifest)}")
    for step in list_restore_steps(manifest, target.absolute()):
        echo(step)
    echo(f"Look at it with `denizen --home {target} doctor`, then start it with `denizen --home {target} run`.")
