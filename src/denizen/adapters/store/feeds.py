"""Subscriptions to feeds, and the items that each has seen."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial

import sqlalchemy as sa

from denizen.adapters.store.columns import EnumValue, EscapedText, UtcTime, id_columns, metadata, texts, times
from denizen.adapters.store.repository import SqlRepository, insert_rows, read_record, write_record
from denizen.domain.feed import FeedFormat, FeedPoll, FeedSubscription
from denizen.domain.statistics import FORGOTTEN

feeds = sa.Table(
    "feeds",
    metadata,
    *id_columns(),
    *texts("url", "title", "account", "platform", "channel", "thread", "guild", "subscriber"),
    sa.Column("format", EnumValue(FeedFormat), nullable=False),
    *times("created_at", "polled_at"),
    *texts("etag", "last_modified", "failure"),
    sa.Column("failures", sa.Integer(), nullable=False),
)
feed_items = sa.Table(
    "feed_items",
    metadata,
    sa.Column("id", sa.Text(), primary_key=True),
    sa.Column("feed", sa.Text(), nullable=False),
    sa.Index("ix_feed_items_feed", "feed"),
)
"""An item stays for as long as its subscription: an item that a feed lists once more is not posted once more."""

_ALL = sa.select(feeds).order_by(feeds.c.position)
_ONE = feeds.c.id == sa.bindparam("which")
_REMOVE = sa.delete(feeds).where(_ONE)
_REMOVE_ITEMS = sa.delete(feed_items).where(feed_items.c.feed == sa.bindparam("which"))
_CLAIM = (
    sa.update(feeds)
    .where(_ONE, feeds.c.polled_at == sa.bindparam("known_at", type_=UtcTime()))
    .values(polled_at=sa.bindparam("new_at", type_=UtcTime()))
)
_SET = sa.update(feeds).where(_ONE)
_SEEN = sa.select(feed_items.c.id).where(feed_items.c.feed == sa.bindparam("which"))
_FORGET = (
    sa.update(feeds)
    .where(feeds.c.subscriber == sa.bindparam("whose", type_=EscapedText()))
    .values(subscriber=FORGOTTEN)
)


class SqlFeeds(SqlRepository):
    """Implements `denizen.ports.feeds.FeedRepository`."""

    async def add(self, subscription: FeedSubscription) -> bool:
        return await self._add(feeds, write_record(subscription))

    async def list_subscriptions(self) -> Sequence[FeedSubscription]:
        return await self._list(partial(read_record, FeedSubscription), _ALL)

    async def remove(self, subscription_id: str) -> bool:
        await self._change(_REMOVE_ITEMS, {"which": subscription_id})
        return await self._change(_REMOVE, {"which": subscription_id}) == 1

    async def claim_poll(self, subscription_id: str, *, before: datetime, at: datetime) -> bool:
        return await self._change(_CLAIM, {"which": subscription_id, "known_at": before, "new_at": at}) == 1

    async def set_poll(self, subscription_id: str, poll: FeedPoll) -> bool:
        return await self._change(_SET.values(write_record(poll)), {"which": subscription_id}) == 1

    async def list_seen(self, subscription_id: str) -> Collection[str]:
        return set(await self._list(lambda row: str(row.id), _SEEN, {"which": subscription_id}))

    async def add_seen(self, subscription_id: str, items: Sequence[str]) -> None:
        rows = [{"id": each, "feed": subscription_id} for each in items]
        await self._execute(insert_rows(self._dialect.insert, feed_items), rows)

    async def forget_subscriber(self, subscriber: str) -> int:
        return await self._change(_FORGET, {"whose": subscriber})
