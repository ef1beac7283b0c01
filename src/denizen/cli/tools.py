"""`denizen tools`: what agents may use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from denizen.cli.home import with_denizen
from denizen.cli.terminal import echo, printable_json

if TYPE_CHECKING:
    from denizen.app.build import Denizen


@click.command()
@click.option("-a", "--agent", default="", help="Only what this agent may use.")
@click.option("--schema", is_flag=True, help="Show the arguments too.")
@with_denizen
async def command(denizen: Denizen, agent: str, *, schema: bool) -> None:
    """List tools with their risk tier (0 harmless to 3 dangerous), what the gate does with their calls, and why; and
    the built-in skills that are off, with how to switch them on.
    """
    from denizen.app.toolsets import list_idle_tools

    tools = await denizen.queries.list_tools(agent)
    names = max((len(tool.spec.name) for tool in tools), default=0)
    sources = max((len(tool.spec.source) for tool in tools), default=0)
    for tool in tools:
        spec, what = tool.spec, (tool.spec.description.splitlines() or [""])[0]
        echo(f"{spec.name:<{names}}  tier {int(tool.tier)}  {spec.source:<{sources}}  {what}")
        echo(f"    {tool.outlook.mode}: {tool.outlook.why}")
        if spec.listed_only and not agent:
            echo("    only for an agent whose `tools` name it in full")
        if schema:
            echo(f"    {printable_json(dict(spec.parameters))}")
    idle = [] if agent else list_idle_tools(denizen.settings)
    if idle:
        echo("\nOff:")
    for each in idle:
        echo(f"{each.skill}: {each.fix}")
        echo(f"    {', '.join(each.tools)}")
