"""`denizen upgrade`: what an upgrade of the database has left, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from denizen.cli.command_group import CommandGroup
from denizen.cli.home import load_home_settings
from denizen.cli.long_work import LongWorkStep, show_long_work
from denizen.cli.terminal import echo
from denizen.domain.errors import Conflict

if TYPE_CHECKING:
    from denizen.adapters.store.dialect import SqlDialect
    from denizen.adapters.store.upgrade_undo import TableChange


@click.group(cls=CommandGroup)
def command() -> None:
    """Go back to the database of before an upgrade.

    A new version of Denizen upgrades the database when it starts: it copies it, tries the upgrade on the copy, and only
    then changes it. The copy stays, so that you can go back.
    """


@command.command()
@click.pass_obj
def status(home: Path) -> None:
    """Show the copy that the last upgrade has left, and what was written since."""
    from denizen.adapters.store.upgrade_undo import find_upgrade_copy

    dialect = _open(home)
    copy = find_upgrade_copy(dialect)
    if copy is None:
        echo("There is no copy from before an upgrade.")
        return
    echo(f"The tables were upgraded from {copy.revision} to {copy.upgraded_to}. The copy is {copy.place}.")
    changes = _list_changes(dialect)
    echo("Nothing was written since." if not changes else "Written since:")
    for each in changes:
        echo(f"{each.written:>10} new or changed, {each.gone} gone or changed  {each.table}")


@command.command()
@click.option("--lose-changes", is_flag=True, help="Go back although something was written since the upgrade.")
@click.confirmation_option(
    "--yes",
    prompt="Go back to the database of before the upgrade? denizen.yaml stays as it is; what the history of the "
    "configuration has recorded since is left behind.",
)
@click.pass_obj
def undo(home: Path, *, lose_changes: bool) -> None:
    """Go back to the database of before the upgrade. Stop Denizen first.

    It refuses when something was written since the upgrade, and says in which tables; --lose-changes goes back without
    it. The newer tables are kept beside the others. The configuration files stay as they are; versions that the history
    of the configuration has recorded since do not count as written, and are in the newer tables only. Install the
    older version before you start Denizen again: a newer one upgrades the tables again.
    """
    from denizen.adapters.store.upgrade_undo import undo_upgrade

    dialect = _open(home)
    changes = () if lose_changes else _list_changes(dialect)
    if changes:
        rows = ", ".join(f"{each.written + each.gone} in {each.table}" for each in changes)
        raise Conflict(
            "Something was written since the upgrade.",
            code="upgrade_written",
            why=f"These rows differ from the copy: {rows}.",
            fix="With --lose-changes you go back without them; the newer tables are kept.",
        )
    kept = undo_upgrade(dialect)
    echo(f"Denizen uses the tables of before the upgrade. The newer ones are kept: {kept}.")
    echo("Install the older version before you start it: a newer one upgrades the tables again.")


@command.command()
@click.confirmation_option("--yes", prompt="Remove the copies? Then there is no way back from the last upgrade.")
@click.pass_obj
def cleanup(home: Path) -> None:
    """Remove the copies that upgrades have left, to free space."""
    from denizen.adapters.store.upgrade_undo import remove_copies

    removed = remove_copies(_open(home))
    for each in removed:
        echo(f"removed {each}")
    if not removed:
        echo("There are no copies.")


def _open(home: Path) -> SqlDialect:
    from denizen.adapters.store import open_dialect

    return open_dialect(load_home_settings(home).store_url)


def _list_changes(dialect: SqlDialect) -> Sequence[TableChange]:
    from denizen.adapters.store.upgrade_undo import list_changes

    with show_long_work() as show:
        return list_changes(dialect, lambda done, all_: show(LongWorkStep(stage="comparing", done=done, total=all_)))
