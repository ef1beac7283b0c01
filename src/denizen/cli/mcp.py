"""`denizen mcp`: how the MCP servers fare, and trying one. Their tools are called by agents only, through the gate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from denizen.cli.command_group import CommandGroup
from denizen.cli.exit_codes import DONE, exit_code
from denizen.cli.home import with_denizen
from denizen.cli.log import leave_to_command
from denizen.cli.terminal import echo, printable_json
from denizen.domain.errors import DenizenError

if TYPE_CHECKING:
    from denizen.app.build import Denizen


@click.group(cls=CommandGroup)
def command() -> None:
    """MCP servers: programs and sites whose tools agents may use, below `mcp.servers` in the configuration.

    The servers are started for the command and ended with it; one that `denizen run` has is left alone.
    """
    leave_to_command("denizen.mcp")


@command.command("list")
@with_denizen
async def list_servers(denizen: Denizen) -> int:
    """Start every server and show whether it answers, what it is and how many tools it has.

    The exit code is that of the first server that does not answer.
    """
    from denizen.app.toolsets import examine_server

    first = DONE
    for name in _list_switched_off(denizen):
        echo(f"off   {name}")
    denizen.generation_deps.mcp.start()
    for toolset in denizen.mcp_toolsets:
        name = toolset.server.spec.name
        try:
            report = await examine_server(toolset, denizen.mask)
        except DenizenError as error:
            first = first or exit_code(error.family)
            echo(f"FAIL  {name}: {error.why}\n      fix: {error.fix}")
            continue
        echo(f"ok    {name}: {report.about}, {len(report.tools)} tools")
        for tool, why in report.left_out.items():
            echo(f"      left out: {tool}, because {why}")
    if not denizen.settings.mcp.servers:
        echo("No MCP server is configured. Write one below mcp.servers in the configuration.")
    return first


@command.command()
@click.argument("name")
@click.option("--schema", is_flag=True, help="Show the arguments of its tools too.")
@with_denizen
async def test(denizen: Denizen, name: str, *, schema: bool) -> None:
    """Start the server NAME and list its tools with their risk tier (0 harmless to 3 dangerous)."""
    from denizen.app.toolsets import examine_server

    toolset = next((each for each in denizen.mcp_toolsets if each.server.spec.name == name), None)
    if toolset is None:
        known = ", ".join(each.server.spec.name for each in denizen.mcp_toolsets) or "none"
        off = " It is switched off (enabled: false)." if name in _list_switched_off(denizen) else ""
        raise click.UsageError(f"There is no MCP server '{name}' in use.{off} In use: {known}.")
    report = await examine_server(toolset, denizen.mask)
    policy = denizen.runtime.current.policy
    echo(f"{report.about} answers.")
    for spec in report.tools:
        echo(f"{spec.name:<32} tier {int(policy.tier(spec))}  {spec.description.splitlines()[0]}")
        if schema:
            echo(f"    {printable_json(dict(spec.parameters))}")
    for tool, why in report.left_out.items():
        echo(f"left out: {tool}, because {why}")


def _list_switched_off(denizen: Denizen) -> list[str]:
    return [name for name, section in denizen.settings.mcp.servers.items() if not section.enabled]
