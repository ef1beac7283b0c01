"""`denizen fleet`: the processes that share one Postgres."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from denizen.cli.command_group import CommandGroup
from denizen.cli.terminal import echo, printable_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from denizen.domain.fleet import FleetNode


@click.group(cls=CommandGroup)
def command() -> None:
    """Look at the processes that share the work. They are started with `denizen run --role`."""


@command.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each process, a line each.")
@click.pass_obj
def status(home: Path, *, as_json: bool) -> None:
    """Show which processes live, what they do, and which has which account."""
    import anyio

    nodes = anyio.run(_load, home)
    if as_json:
        for each in nodes:
            echo(printable_json(asdict(each)))
        return
    if not nodes:
        echo("No process was heard of in the last hour. Start one with: denizen run --role worker")
    for each in nodes:
        begun = f"since {each.started_at:%Y-%m-%d %H:%M}"
        state = begun if each.is_alive else f"silent since {each.seen_at:%H:%M:%S}"
        runs = f", {each.runs} under way" if each.role.runs_turns else ""
        echo(f"{each.name}  {each.role}, {state}{runs}, version {each.version}")
        for held in each.accounts:
            echo(f"    {held.platform} account of {held.agent}")


async def _load(home: Path) -> Sequence[FleetNode]:
    from denizen.adapters.fleet.nodes import FleetTables, list_nodes
    from denizen.app.fleet import require_postgres
    from denizen.app.home.environment import read_environment
    from denizen.app.settings import load_settings
    from denizen.builtin_skills import BUILTIN

    settings = load_settings(home, read_environment(), known_tools=BUILTIN, needs_models=False)
    require_postgres(settings.store_url, "A fleet")
    return await list_nodes(FleetTables(settings.store_url))
