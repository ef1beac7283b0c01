"""The contract of the store about sources of events: states, looks that one process claims, and seen items."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from denizen.domain.event_source import EventSourceState
from denizen.domain.feed import FeedVersion
from denizen.ports.store import Store
from tests.clock import NOON

TICKETS = EventSourceState(key="poll:tickets", url="https://a.b/\x00", looked_at=NOON, version=FeedVersion(etag='"1"'))


@pytest.mark.anyio
class EventSourceContract:
    async def test_a_source_has_one_state_until_it_is_removed(self, store: Store) -> None:
        other = replace(TICKETS, key="poll:other", failures=2, failure="gone \ud800", was_reached=True)
        async with store.work() as work:
            assert await work.event_sources.add(TICKETS)
            assert not await work.event_sources.add(replace(TICKETS, url="https://c.d"))
            assert not await work.event_sources.set_state(other)
            assert await work.event_sources.add(other)
            changed = replace(TICKETS, looked_at=NOON + timedelta(hours=1), version=FeedVersion(last_modified="now"))
            assert await work.event_sources.set_state(changed)
            assert await work.event_sources.list_states() == [other, changed]
            await work.event_sources.remove([other.key, "none"])
            await work.event_sources.remove([])
            assert await work.event_sources.list_states() == [changed]

    async def test_of_two_processes_that_want_to_look_at_a_source_one_does(self, store: Store) -> None:
        later = NOON + timedelta(minutes=5)
        async with store.work() as work:
            await work.event_sources.add(TICKETS)
            assert await work.event_sources.claim(TICKETS.key, before=NOON, at=later)
        async with store.work() as work:
            assert not await work.event_sources.claim(TICKETS.key, before=NOON, at=later)
            assert await work.event_sources.list_states() == [replace(TICKETS, looked_at=later)]

    async def test_the_newest_items_that_a_source_has_seen_are_known_until_it_is_removed(self, store: Store) -> None:
        async with store.work() as work:
            await work.event_sources.add_seen("poll:a", ["1", "2\x00"], keep=9)
            await work.event_sources.add_seen("poll:a", ["1", "3"], keep=9)
            await work.event_sources.add_seen("poll:b", ["1"], keep=9)
            assert await work.event_sources.list_seen("poll:a") == {"1", "2\x00", "3"}
            await work.event_sources.add_seen("poll:a", ["4"], keep=2)
            assert await work.event_sources.list_seen("poll:a") == {"3", "4"}
            await work.event_sources.remove(["poll:a"])
            assert await work.event_sources.list_seen("poll:a") == set()
            assert await work.event_sources.list_seen("poll:b") == {"1"}
