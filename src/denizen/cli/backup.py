"""`denizen backup`: makes, lists and checks backups."""

from __future__ import annotations

from pathlib import Path

import click

from denizen.cli.command_group import CommandGroup
from denizen.cli.home import load_home_settings
from denizen.cli.long_work import show_long_work
from denizen.cli.terminal import echo
from denizen.domain.clock import SystemClock
from denizen.domain.errors import DenizenError

IDENTITY = click.option(
    "--identity",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    default=None,
    help="File with the private key of age, for an encrypted backup.",
)


@click.group(cls=CommandGroup, invoke_without_command=True)
@click.option(
    "--to", "target", type=click.Path(path_type=Path), default=None, help="The new file.  [default: below backups]"
)
@click.option("--with-secrets", is_flag=True, help="Also secrets.env and private keys.")
@click.option("--recipient", default="", help="Encrypt for this public key of age.  [default: none]")
@click.pass_context
def command(ctx: click.Context, target: Path | None, recipient: str, *, with_secrets: bool) -> None:
    """Make a backup while Denizen runs: the databases at one moment, and the files of the home folder.

    It goes into the folder `backups` of the home folder, unless --to says otherwise. Secrets are left out unless
    --with-secrets is given. `denizen restore` makes a home folder of it.
    """
    if ctx.invoked_subcommand is not None:
        return
    from denizen.app.backups import BackupOptions, describe_backup, make_backup

    settings = load_home_settings(ctx.obj)
    options = BackupOptions(
        target=target.absolute() if target else None, with_secrets=with_secrets, recipient=recipient
    )
    with show_long_work() as report:
        made = make_backup(settings, options, SystemClock().now(), report)
    echo(f"{made.file}\n{describe_backup(made.manifest)}")
    for name, why in made.manifest.left_out.items():
        echo(f"left out: {name} ({why})")


@command.command("list")
@click.pass_obj
def list_(home: Path) -> None:
    """List the backups in the folder of this home, and in that of the schedule, the newest first."""
    from denizen.app.backup_files import BACKUPS_FOLDER
    from denizen.app.backup_schedule import find_backup_folder
    from denizen.app.backups import list_backups

    folders, schedule = {home / BACKUPS_FOLDER}, ""
    try:
        settings = load_home_settings(home)
    except DenizenError:
        echo(f"The configuration cannot be used, so only {home / BACKUPS_FOLDER} is looked at.", err=True)
    else:
        folders.add(find_backup_folder(settings))
        schedule = settings.config.backups.schedule
    found = sorted((file for each in folders for file in list_backups(each)), key=lambda file: file.name, reverse=True)
    for file in found:
        encrypted = "  encrypted" if file.suffix == ".age" else ""
        echo(f"{file}  {file.stat().st_size / 1e6:.1f} MB{encrypted}")
    if not found:
        echo("There are no backups yet. `denizen backup` makes one.")
    if not schedule:
        echo("None are made at set times: backups.schedule in denizen.yaml says when.")


@command.command()
@click.argument("file", type=click.Path(path_type=Path))
@IDENTITY
def verify(file: Path, identity: Path | None) -> None:
    """Rehearse a restore of FILE in a folder that is removed afterwards: unpack it, check every file and database,
    read a sample of every table, and try the upgrade of the store.
    """
    from denizen.app.backups import describe_backup, verify_backup

    with show_long_work() as report:
        manifest = verify_backup(file.absolute(), identity, report)
    echo(f"ok: {describe_backup(manifest)}")
