"""`denizen events`: the log of events, emitting one, and replaying what failed."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from denizen.cli.command_group import CommandGroup
from denizen.cli.home import with_denizen
from denizen.cli.terminal import echo, printable_json

if TYPE_CHECKING:
    from denizen.app.build import Denizen
    from denizen.domain.cloud_event import CloudEvent
    from denizen.domain.event_listener import EventDelivery


@click.group(cls=CommandGroup)
def command() -> None:
    """The log of events: webhooks, Discord, WebSockets, polls, emitted events; and what listeners did about it."""


@command.command("list")
@click.option("--type", "kind", default="", help="A type, such as 'github.*'; * stands for anything.")
@click.option("--words", default="", help="A part of source, subject, actor or data.")
@click.option("-n", "count", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many at most.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, as GET /api/events gives them.")
@with_denizen
async def list_events(denizen: Denizen, kind: str, words: str, count: int, *, as_json: bool) -> None:
    """List the newest events, the newest first."""
    from denizen.ports.events import EventSearch
    from denizen.web.api.events import event_to_wire

    found = await denizen.events.log.search(EventSearch(type=kind, words=words, limit=count))
    for entry in found:
        if as_json:
            echo(printable_json(asdict(event_to_wire(entry.event, entry.deliveries, position=entry.position))))
        else:
            echo(_format_event(entry.event))
            for delivery in entry.deliveries:
                echo(f"    {_format_delivery(delivery)}")
    if not found and not as_json:
        echo("No event fits." if kind or words else "There are no events.")


@command.command()
@click.argument("key")
@with_denizen
async def show(denizen: Denizen, key: str) -> None:
    """Show an event with its data, as JSON."""
    from denizen.web.api.events import event_to_wire

    echo(printable_json(asdict(event_to_wire(*await denizen.events.log.get(key)))))


@command.command()
@click.argument("name")
@click.option("--data", default="{}", metavar="JSON", help="An object.")
@click.option("--subject", default="", help="What it is about.")
@click.option("--key", default="", help="Names the event: the same key twice is one event.")
@with_denizen
async def emit(denizen: Denizen, name: str, data: str, subject: str, key: str) -> None:
    """Emit an event of the type denizen.emitted.NAME. A server that runs delivers it."""
    from denizen.adapters.webhooks import read_body
    from denizen.domain.errors import InvalidInput
    from denizen.engine.event_bus.log import Emission

    fix = """Write an object, such as --data '{"dish": "soup"}'."""
    try:
        content = read_body(data.encode(errors="surrogatepass"))
    except InvalidInput:
        raise InvalidInput("What follows --data is not valid JSON.", code="json_invalid", fix=fix) from None
    if data.strip() and not data.lstrip().startswith("{"):
        raise InvalidInput("What follows --data is no object.", code="json_invalid", fix=fix)
    emission = Emission(name=name, subject=subject, data=content, key=key)
    event = await denizen.events.log.emit(denizen.operator, emission)
    _, deliveries = await denizen.events.log.get(event.key)
    echo(f"Emitted {event.key} ({event.type}) for {len(deliveries)} listener{'' if len(deliveries) == 1 else 's'}.")


@command.command()
@with_denizen
async def sources(denizen: Denizen) -> None:
    """List the WebSockets and polls of the configuration, and how they were when a server looked last."""
    found = await denizen.events.log.list_sources()
    for each in found:
        when = f" at {each.state.looked_at:%Y-%m-%d %H:%M:%S}" if each.state else ""
        echo(f"{each.source.key}  {each.status.value}{when}  {each.address}")
        if each.state and each.state.failure:
            echo(f"    {each.state.failure.replace(chr(10), ' ')}")
    if not found:
        echo("There are none. Write them under events.websockets or events.polls.")


@command.command()
@with_denizen
async def failed(denizen: Denizen) -> None:
    """List the deliveries that have failed, the newest first."""
    found = await denizen.events.log.list_failed()
    for delivery in found:
        echo(f"{_format_delivery(delivery)}\n    event {delivery.event}")
    if not found:
        echo("No delivery has failed.")


@command.command()
@click.argument("delivery")
@with_denizen
async def replay(denizen: Denizen, delivery: str) -> None:
    """Try a delivery that failed or was skipped once more. A server that runs does it."""
    await denizen.events.log.replay(delivery)
    echo(f"Waiting to be tried: {delivery}.")


def _format_event(event: CloudEvent) -> str:
    about = " ".join(filter(None, (event.subject, f"by {event.actor}" if event.actor else "")))
    return f"{event.key}  {event.time:%Y-%m-%d %H:%M:%S}  {event.type}  {event.source}  {about}".rstrip()


def _format_delivery(delivery: EventDelivery) -> str:
    note = f": {delivery.note.replace(chr(10), ' ')}" if delivery.note else ""
    turn = f"  turn {delivery.turn_id}" if delivery.turn_id else ""
    return f"{delivery.id}  {delivery.listener}  {delivery.status.value}{note}{turn}"
