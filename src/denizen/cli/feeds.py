"""`denizen feeds`: feeds whose items are posted in channels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from denizen.cli.command_group import CommandGroup
from denizen.cli.home import with_denizen
from denizen.cli.terminal import echo, printable_json

if TYPE_CHECKING:
    from denizen.app.build import Denizen
    from denizen.domain.feed import FeedSubscription
    from denizen.domain.json import JsonObject


PLATFORM = "discord"


@click.group(cls=CommandGroup)
def command() -> None:
    """Feeds (RSS and Atom) whose new items are posted in channels of Discord while `denizen run` runs."""


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each feed, a line each.")
@with_denizen
async def list_command(denizen: Denizen, *, as_json: bool) -> None:
    """List the feeds, with when each was read and why it could not be."""
    found = await denizen.platforms.feeds.list_subscriptions()
    for each in found:
        echo(printable_json(_fields(each)) if as_json else _line(each))
    if not found and not as_json:
        echo("No feed is followed. `denizen feeds add URL --channel ID` follows one.")


@command.command()
@click.argument("url")
@click.option("--channel", required=True, help="The id of a channel of Discord that the account sees.")
@click.option("--format", "shape", type=click.Choice(["embed", "compact", "full"]), default="embed", show_default=True)
@click.option("--agent", default="", help="Whose account posts.  [default: the default agent]")
@with_denizen
async def add(denizen: Denizen, url: str, channel: str, shape: str, agent: str) -> None:
    """Follow a feed in a channel. What it lists now is not posted; `denizen run` posts what comes."""
    from denizen.domain.errors import InvalidInput
    from denizen.domain.feed import FeedFormat
    from denizen.engine.feeds.catalog import FeedRequest

    generation = denizen.runtime.current
    name = generation.agent(agent).name
    if (PLATFORM, name) not in generation.account_policies:
        raise InvalidInput(
            f"The agent {name} has no account on Discord.",
            code="account_unknown",
            fix="Name one that has, with --agent.",
        )
    room = await denizen.platforms.feeds.find_room(PLATFORM, channel)
    request = FeedRequest(
        url=url,
        place=room.place,
        guild=room.guild,
        account=name,
        format=FeedFormat(shape),
        subscriber=denizen.operator.key,
    )
    feed = await denizen.platforms.feeds.subscribe(request)
    echo(f"{feed.id}: {feed.title} is followed in {room.name or room.id}.")


@command.command()
@click.argument("feed")
@with_denizen
async def remove(denizen: Denizen, feed: str) -> None:
    """Follow a feed no longer."""
    await denizen.platforms.feeds.unsubscribe(feed)
    echo("Ended.")


def _fields(feed: FeedSubscription) -> JsonObject:
    return {
        "id": feed.id,
        "title": feed.title,
        "url": feed.url,
        "agent": str(feed.account),
        "platform": feed.place.platform,
        "channel": feed.place.thread or feed.place.channel,
        "format": feed.format.value,
        "subscriber": feed.subscriber,
        "read_at": feed.poll.polled_at.isoformat(),
        "failures": feed.poll.failures,
        "failure": feed.poll.failure,
    }


def _line(feed: FeedSubscription) -> str:
    state = f"failed {feed.poll.failures} times: {feed.poll.failure}" if feed.poll.failures else "read"
    where = f"{feed.place.platform} {feed.place.thread or feed.place.channel}"
    return (
        f"{feed.id}  {feed.title}  {feed.url}  {where}  {feed.format}  {feed.poll.polled_at:%Y-%m-%d %H:%M} UTC {state}"
    )
