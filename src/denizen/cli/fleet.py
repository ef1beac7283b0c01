"""`denizen fleet`: the processes that share one Postgres."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from denizen.cli.terminal import echo, printable_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from denizen.domain.fleet import FleetNode


@click.group()
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
        echo(_show(each))


async def _load(home: Path) -> Sequence[FleetNode]:
    from denizen.adapters.fleet.nodes import FleetTables, list_nodes
    from denizen.app.fleet import require_postgres
    from denizen.app.home.environment import read_environment
    from denizen.app.settings import load_settings
    from denizen.builtin_skills import BUILTIN

    settings = load_settings(home, read_environment(), known_tools=BUILTIN, needs_models=False)
    require_postgres(settings.store_url, "A fleet")
    return await list_nodes(FleetTables(settings.store_url))


def _show(node: FleetNode) -> str:
    state = f"since {node.started_at:%Y-%m-%d %H:%M}" if node.is_alive else f"silent since {node.seen_at:%H:%M:%S}"
    runs = f", {node.runs} under way" if node.role.runs_turns else ""
    held = "".join(f"\n    {each.platform} account of {each.agent}" for each in node.accounts)
    return f"{node.name}  {node.role}, {state}{runs}, version {node.version}{held}"
