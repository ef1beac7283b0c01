"""Feeds that channels follow: subscriptions, when they are read again, and how an item reads as a post. Pure.

Items are written by strangers: in a post nothing of them is markup, and nobody is pinged.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from denizen.domain.conversation import Place
from denizen.domain.delivery import Delivery, DeliveryKind, DeliveryTarget, EmbedCard, MessageContent, delivery_id
from denizen.domain.ids import AgentName, derive, turn_id
from denizen.domain.record import record

POLL_EVERY = timedelta(minutes=5)
"""A feed is never read more often."""
MAX_PAUSE = timedelta(days=1)
"""A feed that cannot be read is tried less and less often, but at least so often."""
MAX_FEEDS = 100
"""So many subscriptions a home may have."""
MAX_POSTS = 10
"""So many items of a feed are posted at a time; the others follow the next time."""
MAX_POST_CHARS = 2000
MAX_TITLE_CHARS = 240
MAX_EXCERPT_CHARS = 350
ID_CHARS = 15

_MARKUP = re.compile(r"[\\`*_~|\[\]<>#@]|(?<![^\n])[-+](?=\s)|(?<=:)//")
_LINK = re.compile(r"https?://[^\s<>()\"\\]{1,1500}")


class FeedFormat(StrEnum):
    """How items are posted: as a card with an excerpt, as a line with a link, or with their text."""

    EMBED = "embed"
    COMPACT = "compact"
    FULL = "full"


@record(kw_only=True)
class FeedItem:
    """One item. `key` names it within its feed for good; `url` is empty where there is none. Texts are plain."""

    key: str
    title: str
    url: str = ""
    text: str = ""


@record
class FeedDocument:
    """A feed as it is now, in the order in which it lists its items: mostly the newest first."""

    title: str
    items: Sequence[FeedItem] = ()


@record(kw_only=True)
class FeedVersion:
    """The marks of the version that was read last, by which its server need not send the same once more."""

    etag: str = ""
    last_modified: str = ""


@record(kw_only=True)
class FeedPoll:
    """How reading a feed went: when, and in a row how often it failed and why."""

    polled_at: datetime
    version: FeedVersion = FeedVersion()
    failures: int = 0
    failure: str = ""

    @property
    def next_at(self) -> datetime:
        """When it may be read again. A feed that fails is asked half as often each time."""
        return self.polled_at + min(POLL_EVERY * 2 ** min(self.failures, 10), MAX_PAUSE)


@record(kw_only=True)
class FeedSubscription:
    """A feed that a place follows. `account` is the agent whose login posts, `subscriber` the key of who asked for it,
    `guild` the server of the place.
    """

    id: str
    url: str
    title: str
    account: AgentName
    place: Place
    guild: str
    format: FeedFormat
    subscriber: str
    created_at: datetime
    poll: FeedPoll


def subscription_id(place: Place, url: str) -> str:
    """The same for the same feed in the same place: it is followed there once."""
    return derive("feed", place.conversation_id, url)[:ID_CHARS]


def item_id(subscription: str, key: str) -> str:
    return derive("item", subscription, key)


def choose_items(items: Iterable[FeedItem], known: Collection[str], subscription: str) -> Sequence[FeedItem]:
    """Returns the items that the subscription has not seen, the oldest first, each once."""
    unseen = {item_id(subscription, item.key): item for item in items}
    return [item for key, item in reversed(unseen.items()) if key not in known]


def plan_post(subscription: FeedSubscription, item: FeedItem, *, now: datetime) -> Delivery:
    """One message, and the same one whenever it is planned."""
    turn = turn_id(subscription.account, subscription.place.platform, item_id(subscription.id, item.key))
    return Delivery(
        id=delivery_id(turn, DeliveryKind.NOTICE, 0),
        turn_id=turn,
        position=0,
        kind=DeliveryKind.NOTICE,
        agent=subscription.account,
        target=DeliveryTarget(subscription.place),
        content=write_item(item, subscription.format, subscription.title),
        created_at=now,
    )


def write_item(item: FeedItem, format: FeedFormat, feed: str) -> MessageContent:  # noqa: A002 - the word for it
    """Returns the post about an item, of at most `MAX_POST_CHARS` characters."""
    title = _line(item.title) or "(no title)"
    link = item.url if _LINK.fullmatch(item.url) else ""
    match format:
        case FeedFormat.COMPACT:
            return MessageContent(f"{title}\n<{link}>" if link else title)
        case FeedFormat.EMBED:
            card = EmbedCard(title=title, text=_cut(escape_markup(item.text), MAX_EXCERPT_CHARS), url=link)
            return MessageContent(f"-# {_line(feed)}", embeds=(card,))
        case FeedFormat.FULL:
            head = "\n".join(part for part in (f"**{title}**", f"<{link}>" if link else "") if part)
            room = MAX_POST_CHARS - len(head) - 1
            return MessageContent(f"{head}\n{_cut(escape_markup(item.text), room)}".strip())


def escape_markup(text: str) -> str:
    """Returns the text in which nothing is markup of the platform: no link, no mention, no heading, no ping."""
    return _MARKUP.sub(lambda mark: _ESCAPED.get(mark[0], f"\\{mark[0]}"), text)


_ESCAPED = {"@": "@\u200b", "//": "/\u200b/"}


def _line(text: str) -> str:
    return _cut(escape_markup(" ".join(text.split())), MAX_TITLE_CHARS)


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return text[: limit - 1].rstrip().rstrip("\\") + "…"
