"""`denizen backup`: makes, lists and checks backups."""

from __future__ import annotations

from pathlib import Path

import click

from denizen.cli.home import load_home_settings
from denizen.cli.long_work import show_long_work
from denizen.cli.terminal import echo
from denizen.domain.clock import SystemClock

IDENTITY = click.option(
    "--identity",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    default=None,
    help="File with the private key of age, for an encrypted backup.",
)


@click.group(invoke_without_command=True)
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
    """List the backups in the folder of this home."""
    from denizen.app.backup_files import BACKUPS_FOLDER
    from denizen.app.backups import list_backups

    found = list_backups(home / BACKUPS_FOLDER)
    for file in found:
        echo(f"{file}  {file.stat().st_size / 1e6:.1f} MB")
    if not found:
        echo("There are no backups yet. `denizen backup` makes one.")


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
