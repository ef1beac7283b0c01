"""Reads the feeds that places follow, and owes each new item to the outbox, once.

An item is noted as seen in the same moment in which its post is owed, and the id of the post derives from it. So of
several processes one posts it, and a crash neither loses nor repeats it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import groupby

import anyio

from denizen.domain.clock import Clock
from denizen.domain.errors import DenizenError
from denizen.domain.feed import (
    MAX_POSTS,
    POLL_EVERY,
    FeedPoll,
    FeedSubscription,
    FeedVersion,
    choose_items,
    item_id,
    plan_post,
)
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.events.signal import Signal
from denizen.engine.outbox.outbox import DeliveryOutbox
from denizen.ports.feeds import FeedReader, FeedReading
from denizen.ports.store import Store

LOOK_EVERY_S = 30.0
"""How often one looks for what nobody announced: another process may have subscribed."""
AT_ONCE = 4
"""So many feeds are read at a time."""
FAILURE_CHARS = 500

_log = logging.getLogger("denizen.feeds")


class FeedPoller:
    """One for a process. `run` reads what is due, until it is cancelled. Feeds whose account is away wait for it."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        reader: FeedReader,
        channels: ConnectedAccounts,
        outbox: DeliveryOutbox,
        changed: Signal,
    ) -> None:
        self._store = store
        self._clock = clock
        self._reader = reader
        self._channels = channels
        self._outbox = outbox
        self._changed = changed

    async def run(self) -> None:
        """Reads what is due, until it is cancelled."""
        while True:
            changed = self._changed.next
            wait_s = await self.poll_due()
            with anyio.move_on_after(wait_s):
                await changed.wait()

    async def poll_due(self) -> float | None:
        """Reads every feed that is due. One that several places follow is read once for all of them, and no sooner
        than `POLL_EVERY` after anybody had it read. Returns how many seconds to wait for the next look; None while no
        account is connected, which nothing could be posted by.
        """
        if not self._channels.list_all():
            return None
        now = self._clock.now()
        async with self._store.work(write=False) as work:
            found = await work.feeds.list_subscriptions()
        limiter = anyio.CapacityLimiter(AT_ONCE)
        async with anyio.create_task_group() as group:
            for _, each in groupby(sorted(found, key=_url), _url):
                followers = list(each)
                if any(now - follower.poll.polled_at < POLL_EVERY for follower in followers):
                    continue
                due = [
                    follower
                    for follower in followers
                    if follower.poll.next_at <= now
                    and self._channels.find(follower.place.platform, follower.account) is not None
                ]
                if due:
                    group.start_soon(self._poll, due, limiter)
        return LOOK_EVERY_S

    async def _poll(self, due: Sequence[FeedSubscription], limiter: anyio.CapacityLimiter) -> None:
        async with limiter:
            now = self._clock.now()
            async with self._store.work() as work:
                mine = [
                    each for each in due if await work.feeds.claim_poll(each.id, before=each.poll.polled_at, at=now)
                ]
            if not mine:
                return
            versions = {each.poll.version for each in mine}
            try:
                reading = await self._reader.read(mine[0].url, versions.pop() if len(versions) == 1 else FeedVersion())
            except DenizenError as error:
                await self._fail(mine, error)
                return
            for each in mine:
                await self._post_new(each, reading)

    async def _fail(self, due: Sequence[FeedSubscription], error: DenizenError) -> None:
        now = self._clock.now()
        _log.warning("a feed could not be read", extra={"feeds": [each.id for each in due], **error.fields})
        async with self._store.work() as work:
            for each in due:
                poll = FeedPoll(
                    polled_at=now,
                    version=each.poll.version,
                    failures=each.poll.failures + 1,
                    failure=error.explain()[:FAILURE_CHARS],
                )
                await work.feeds.set_poll(each.id, poll)

    async def _post_new(self, subscription: FeedSubscription, reading: FeedReading) -> None:
        """Posts what is new, the oldest first. While more is left than is posted at a time, the feed is not asked
        whether it has changed, so that the rest comes with the next time.
        """
        now, document = self._clock.now(), reading.document
        async with self._store.work() as work:
            seen = await work.feeds.list_seen(subscription.id) if document else ()
            new = choose_items(document.items, seen, subscription.id) if document else ()
            version = reading.version if len(new) <= MAX_POSTS else FeedVersion()
            if not await work.feeds.set_poll(subscription.id, FeedPoll(polled_at=now, version=version)):
                return  # it was ended meanwhile
            posted = new[:MAX_POSTS]
            await work.feeds.add_seen(subscription.id, [item_id(subscription.id, item.key) for item in posted])
            await work.outbox.add([plan_post(subscription, item, now=now) for item in posted])
        if posted:
            _log.info("a feed has new items", extra={"feed": subscription.id, "items": len(posted)})
            self._outbox.wake(subscription.place.platform, subscription.account)


def _url(subscription: FeedSubscription) -> str:
    return subscription.url
