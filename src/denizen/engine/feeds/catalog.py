"""Subscribes places to feeds, lists what they follow, and ends that. Who may do so is decided by the callers."""

from __future__ import annotations

from collections.abc import Sequence

from denizen.domain.clock import Clock
from denizen.domain.conversation import Place
from denizen.domain.errors import Conflict, InvalidInput, LimitExceeded, NotFound
from denizen.domain.feed import MAX_FEEDS, FeedFormat, FeedPoll, FeedSubscription, FeedVersion, item_id, subscription_id
from denizen.domain.ids import AgentName
from denizen.domain.record import record
from denizen.domain.room import Room
from denizen.engine.events.signal import Signal
from denizen.ports.feeds import FeedReader
from denizen.ports.store import Store

URL_CHARS = 2000


@record(kw_only=True)
class FeedRequest:
    """A wish to follow a feed: the place and server where its items are posted, the account that posts them, and the
    key of who asks.
    """

    url: str
    place: Place
    guild: str
    account: AgentName
    format: FeedFormat
    subscriber: str


class FeedCatalog:
    """The subscriptions of a home. `changed` is sent with each new one."""

    def __init__(self, store: Store, clock: Clock, reader: FeedReader, changed: Signal) -> None:
        self._store = store
        self._clock = clock
        self._reader = reader
        self.changed = changed

    async def subscribe(self, wanted: FeedRequest) -> FeedSubscription:
        """Reads the feed once, and follows it from there: nothing that it lists now is posted.

        Raises Conflict where it is followed in that place, LimitExceeded, and what `FeedReader.read` does.
        """
        url = wanted.url.strip()
        if len(url) > URL_CHARS:
            raise InvalidInput(
                "The address of the feed is too long.", code="feed_url", fix=f"Use at most {URL_CHARS} characters."
            )
        key = subscription_id(wanted.place, url)
        await self._check(key)
        reading = await self._reader.read(url, FeedVersion())
        assert reading.document is not None  # nothing was known of it
        now = self._clock.now()
        subscription = FeedSubscription(
            id=key,
            url=url,
            title=reading.document.title,
            account=wanted.account,
            place=wanted.place,
            guild=wanted.guild,
            format=wanted.format,
            subscriber=wanted.subscriber,
            created_at=now,
            poll=FeedPoll(polled_at=now, version=reading.version),
        )
        async with self._store.work() as work:
            if not await work.feeds.add(subscription):
                raise _followed(key)
            await work.feeds.add_seen(key, [item_id(key, item.key) for item in reading.document.items])
        self.changed.send()
        return subscription

    async def list_subscriptions(self) -> Sequence[FeedSubscription]:
        """Returns all of them, in the order in which they were made."""
        async with self._store.work(write=False) as work:
            return await work.feeds.list_subscriptions()

    async def unsubscribe(self, key: str) -> None:
        """Ends a subscription. What was planned to be posted is posted. Raises NotFound."""
        async with self._store.work() as work:
            if not await work.feeds.remove(key):
                raise unknown_feed(key)

    async def find_room(self, platform: str, channel: str, *, guild: str = "") -> Room:
        """Returns the room with that id, or with that name in the server. Raises NotFound."""
        wanted = channel.strip().removeprefix("<#").removesuffix(">").removeprefix("#")
        async with self._store.work(write=False) as work:
            room = await work.archive.find_room(platform, wanted)
            if room is None and guild:
                rooms = await work.archive.list_rooms(platform, guild=guild)
                named = [each for each in rooms if each.name == wanted]
                room = named[0] if len(named) == 1 else None
        if room is None or (guild and room.guild != guild):
            raise NotFound(
                f"There is no channel '{channel[:60]}' that the account sees here.",
                code="channel_unknown",
                fix="Name a channel that it may read and write in, best by its id.",
            )
        return room

    async def _check(self, key: str) -> None:
        known = await self.list_subscriptions()
        if any(each.id == key for each in known):
            raise _followed(key)
        if len(known) >= MAX_FEEDS:
            raise LimitExceeded(
                f"{MAX_FEEDS} feeds are followed, which is as many as there may be.",
                code="feeds_full",
                fix="End some: `denizen feeds list` shows them.",
            )


def unknown_feed(key: str) -> NotFound:
    """For an id that is nobody's, and for one that the asker may not see."""
    return NotFound(
        f"No feed '{key[:40]}' is followed here.", code="feed_unknown", fix="List the feeds to see their ids."
    )


def _followed(key: str) -> Conflict:
    return Conflict(
        "That feed is followed there already.",
        code="feed_followed",
        fix=f"End it first to follow it in another format; its id is {key}.",
    )
