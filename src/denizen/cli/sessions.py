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
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="How many at most.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each session, a line each.")
@with_denizen
async def command(denizen: Denizen, agent: str, platform: str, limit: int, *, as_json: bool) -> None:
    """List the open sessions with messages, the latest first.

    Sessions of the terminal are continued by name: denizen chat --session NAME, denizen ask --session NAME.
    Questions that stood alone are not listed.
    """
    rows = await denizen.queries.list_sessions(platform=platform, agent=agent, limit=limit)
    for row in rows:
        if as_json:
            click.echo(printable_json(_fields(row)))
        else:
            messages = "1 message" if row.messages == 1 else f"{row.messages} messages"
            echo(f"{row.last_at:%Y-%m-%d %H:%M}  {row.session.agent}  {_where(row)}  {messages}")
    if not rows and not as_json:
        echo("There are no sessions.")


def _where(row: RecentSession) -> str:
    """Platform, channel, and the thread, which is the name of a session of the terminal and the web."""
    return " ".join(filter(None, (row.place.platform, row.place.channel, row.place.thread)))


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
