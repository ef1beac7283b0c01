"""`denizen listeners`: what is done about events, as it is configured."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from denizen.cli.command_group import CommandGroup
from denizen.cli.home import with_denizen
from denizen.cli.terminal import echo, printable_json

if TYPE_CHECKING:
    from denizen.app.build import Denizen


@click.group(cls=CommandGroup)
def command() -> None:
    """The listeners and the routes of webhooks in the configuration, with what they do."""


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, as GET /api/listeners gives them.")
@with_denizen
async def list_listeners(denizen: Denizen, *, as_json: bool) -> None:
    """List the listeners in force."""
    from denizen.web.api.events import listener_to_wire

    found = denizen.events.log.list_listeners()
    for each in found:
        action = each.action
        if as_json:
            echo(printable_json(asdict(listener_to_wire(each))))
            continue
        where = f" in {action.channel}" if action.channel else ""
        whence = f" of {each.source}" if each.source else ""
        does = action.kind.value if action.kind.value == "log" else f"{action.kind.value} {action.agent}{where}"
        echo(f"{each.key}  on {', '.join(each.on)}{whence}  {does}")
    if not found and not as_json:
        echo("There are no listeners. Write some under `listeners` or `webhooks.routes`.")
