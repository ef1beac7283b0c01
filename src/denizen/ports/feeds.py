"""Reading feeds, and keeping which places follow them and which items they have seen."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from denizen.domain.feed import FeedDocument, FeedPoll, FeedSubscription, FeedVersion
from denizen.domain.record import record


@record
class FeedReading:
    """A feed that was read: None when nothing has changed since that version."""

    document: FeedDocument | None
    version: FeedVersion


class FeedReader(Protocol):
    """Reads RSS and Atom from the web."""

    async def read(self, url: str, known: FeedVersion) -> FeedReading:
        """Reads the feed. Raises what `ports.fetch.Fetcher` does, InvalidInput (`feed_unreadable`, `feed_too_large`)
        for what is no feed that can be read, and Unavailable (`feed_status`) for an error of its server.
        """
        ...


class FeedRepository(Protocol):
    """The subscriptions, and the ids of the items that each has seen."""

    async def add(self, subscription: FeedSubscription) -> bool:
        """Adds the subscription. False, and nothing changes, when its id exists."""
        ...

    async def list_subscriptions(self) -> Sequence[FeedSubscription]:
        """Returns all of them, in the order in which they were made."""
        ...

    async def remove(self, subscription_id: str) -> bool:
        """Removes the subscription with what it has seen. False when there is none."""
        ...

    async def claim_poll(self, subscription_id: str, *, before: datetime, at: datetime) -> bool:
        """Notes that the feed is read at that time. Of several that claim the same poll one gets True; False when it
        was read after `before`, or is gone.
        """
        ...

    async def set_poll(self, subscription_id: str, poll: FeedPoll) -> bool:
        """Notes how the reading went. False when the subscription is gone."""
        ...

    async def list_seen(self, subscription_id: str) -> Collection[str]:
        """Returns the ids of the items that were seen."""
        ...

    async def add_seen(self, subscription_id: str, items: Sequence[str]) -> None:
        """Notes items as seen, those that are there already stay."""
        ...

    async def forget_subscriber(self, subscriber: str) -> int:
        """Takes the name of that person out of the subscriptions. Returns how many there were."""
        ...
