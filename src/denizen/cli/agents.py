"""`denizen agents`: who is configured."""

from __future__ import annotations

from pathlib import Path

import anyio
import click


@click.command()
@click.pass_obj
def command(home: Path) -> None:
    """List the configured agents; the default one is marked."""
    anyio.run(_list, home)


async def _list(home: Path) -> None:
    from denizen.app.build import Opening, open_denizen

    async with open_denizen(home, Opening(durable=False)) as denizen:
        default = denizen.runtime.current.default_agent
        for agent in denizen.queries.list_agents():
            mark = "*" if agent.name == default else " "
            click.echo(f"{mark} {agent.name:<20} model {agent.model_word:<16} {agent.description}".rstrip())
