"""`denizen sessions`: which sessions there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from denizen.cli.home import with_denizen
from denizen.cli.terminal import echo, printable_json

if TYPE_CHECKING:
    from denizen.app.build import Denizen
    from denizen.ports.store import RecentSession


@click.command()
@click.option("-a", "--agent", default="", help="Only those of this agent.")
@click.option("--platform", default="", help="Only those on this platform: terminal, web, api, discord, ...")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="How many at most.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each session, a line each.")
@with_denizen
async def command(denizen: Denizen, agent: str, platform: str, limit: int, *, as_json: bool) -> None:
    """List the open sessions with messages, the latest first.

    Sessions of the terminal are continued by name: denizen chat --session NAME, denizen ask --session NAME.
    Questions that stood alone are not listed.
    """
    found = await denizen.queries.list_sessions(platform=platform, agent=agent, limit=limit + 1)
    rows = found[:limit]
    if as_json:
        for fields in map(_fields, rows):
            click.echo(printable_json(fields))
    elif not rows:
        echo("There are no sessions.")
    else:
        table = [("last message", "agent", "platform", "channel", "name", "messages"), *map(_cells, rows)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for cells in table:
            echo("  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip())
    if len(found) > limit:
        echo(f"There are more: --limit {2 * limit} shows older ones.", err=True)


def _cells(row: RecentSession) -> tuple[str, ...]:
    """The name of a session of the terminal and the web is its thread."""
    place, when = row.place, f"{row.last_at:%Y-%m-%d %H:%M}"
    return when, row.session.agent, place.platform, place.channel, place.thread, str(row.messages)


def _fields(row: RecentSession) -> dict[str, object]:
    return {
        "id": row.session.id,
        "agent": row.session.agent,
        "platform": row.place.platform,
        "channel": row.place.channel,
        "name": row.place.thread,
        "messages": row.messages,
        "began_at": row.session.created_at.isoformat(),
        "last_at": row.last_at.isoformat(),
    }
