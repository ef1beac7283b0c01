"""Feeds (RSS and Atom) whose new items are posted in a channel.

To follow one is a standing post: it has the effects SCHEDULE and SEND, and somebody has to approve it. What feeds say
comes from strangers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from denizen.skill import (
    Effect,
    FeedAccess,
    FollowedFeed,
    Param,
    Skill,
    Taint,
    Tier,
    ToolContext,
    ToolError,
    ToolOutput,
    quote_untrusted,
)


@dataclass(frozen=True, slots=True)
class FeedSettings:
    """`server` is the address of one server of your own network, such as `http://feeds.lan:8080`, whose feeds may be
    followed besides those of the public web. It holds from the next start.
    """

    server: str = ""


skill = Skill("feeds", description="Posts the news of RSS and Atom feeds.", settings=FeedSettings)


@skill.tool(
    tier=Tier.SENSITIVE,
    timeout_s=60.0,
    reads={Taint.WEB},
    effects={Effect.SCHEDULE, Effect.SEND},
    destinations=("channel",),
)
async def subscribe_feed(
    context: ToolContext,
    url: Annotated[str, Param("of the RSS or Atom feed", max_length=2000)],
    channel: Annotated[str, "#name or id; empty: here"] = "",
    format: Annotated[Literal["embed", "compact", "full"], "of the posts"] = "embed",  # noqa: A002
) -> str:
    """Posts new items of a feed in a channel from now on."""
    feed = await _feeds(context).subscribe(url, channel=channel, format=format)
    return f"Followed from now on; new items come within minutes.\n{quote_untrusted(_line(feed), source=feed.url)}"


@skill.tool(tier=Tier.HARMLESS, read_only=True, reads={Taint.WEB})
async def list_feeds(context: ToolContext) -> str | ToolOutput:
    """Lists the feeds that this server follows."""
    found = await _feeds(context).list()
    if not found:
        return ToolOutput("No feed is followed here.", is_own=True)
    return quote_untrusted("\n".join(map(_line, found)), source="feeds")


@skill.tool(tier=Tier.SENSITIVE)
async def unsubscribe_feed(context: ToolContext, feed: Annotated[str, "its id"]) -> str:
    """Ends a feed."""
    await _feeds(context).unsubscribe(feed.strip())
    return "Ended."


def _feeds(context: ToolContext) -> FeedAccess:
    if context.feeds is None:
        raise ToolError("There are no feeds here.")
    return context.feeds


def _line(feed: FollowedFeed) -> str:
    problem = f"; the last try failed: {feed.problem}" if feed.problem else ""
    return f"{feed.id}: {feed.title[:200]} ({feed.url}) in <#{feed.channel}> as {feed.format}{problem}"
