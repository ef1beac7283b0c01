"""The contract of the store about feeds: subscriptions, polls that one process claims, and items that were seen."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from denizen.domain.conversation import Place
from denizen.domain.feed import FeedFormat, FeedPoll, FeedSubscription, FeedVersion
from denizen.domain.statistics import FORGOTTEN
from denizen.ports.store import Store
from tests.clock import NOON
from tests.contracts.store.records import AGENT, PLACE

ANA, BOB = "platform_user:discord:1", "platform_user:discord:2"


def make_feed(key: str, *, subscriber: str = ANA) -> FeedSubscription:
    return FeedSubscription(
        id=key,
        url=f"https://example.org/{key}",
        title="News \x00 \ud800",
        account=AGENT,
        place=PLACE,
        guild="g",
        format=FeedFormat.FULL,
        subscriber=subscriber,
        created_at=NOON,
        poll=FeedPoll(polled_at=NOON, version=FeedVersion(etag='"1"')),
    )


async def add_feeds(store: Store, *feeds: FeedSubscription) -> None:
    async with store.work() as work:
        for feed in feeds:
            assert await work.feeds.add(feed)


@pytest.mark.anyio
class FeedContract:
    async def test_subscriptions_come_back_as_they_were_made_in_their_order(self, store: Store) -> None:
        first, second = make_feed("b"), replace(make_feed("a"), place=Place("other", "1", "t"))
        await add_feeds(store, first, second)
        async with store.work() as work:
            assert not await work.feeds.add(replace(first, title="another"))
            assert await work.feeds.list_subscriptions() == [first, second]

    async def test_of_two_processes_that_want_to_read_a_feed_one_does(self, store: Store) -> None:
        await add_feeds(store, make_feed("a"))
        later = NOON + timedelta(minutes=5)
        async with store.work() as work:
            assert await work.feeds.claim_poll("a", before=NOON, at=later)
        async with store.work() as work:
            assert not await work.feeds.claim_poll("a", before=NOON, at=later)
            assert not await work.feeds.claim_poll("none", before=NOON, at=later)
            [known] = await work.feeds.list_subscriptions()
            assert known.poll == FeedPoll(polled_at=later, version=FeedVersion(etag='"1"'))

    async def test_how_reading_went_is_kept(self, store: Store) -> None:
        await add_feeds(store, make_feed("a"), make_feed("b"))
        poll = FeedPoll(polled_at=NOON, version=FeedVersion(last_modified="today"), failures=2, failure="it is gone")
        async with store.work() as work:
            assert await work.feeds.set_poll("a", poll)
            assert not await work.feeds.set_poll("none", poll)
            assert [each.poll for each in await work.feeds.list_subscriptions()] == [poll, make_feed("b").poll]

    async def test_what_was_seen_is_known_until_the_subscription_ends(self, store: Store) -> None:
        await add_feeds(store, make_feed("a"), make_feed("b"))
        async with store.work() as work:
            await work.feeds.add_seen("a", ["1", "2"])
            await work.feeds.add_seen("a", ["2", "3"])
            await work.feeds.add_seen("b", ["4"])
            await work.feeds.add_seen("b", [])
            assert await work.feeds.list_seen("a") == {"1", "2", "3"}
            assert await work.feeds.remove("a")
            assert not await work.feeds.remove("a")
            assert await work.feeds.list_seen("a") == set()
            assert await work.feeds.list_seen("b") == {"4"}

    async def test_who_is_forgotten_is_named_by_no_feed_and_the_feed_stays(self, store: Store) -> None:
        await add_feeds(store, make_feed("a"), make_feed("b", subscriber=BOB))
        async with store.work() as work:
            assert await work.feeds.forget_subscriber(ANA) == 1
            assert [each.subscriber for each in await work.feeds.list_subscriptions()] == [FORGOTTEN, BOB]
