"""REST resources in memory: each new item is an event once, whatever fails on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from denizen.domain.errors import Unavailable
from denizen.domain.event_listener import ActionKind, EventAction, EventListener
from denizen.domain.event_source import MAX_ITEMS, MAX_KEY_CHARS, EventSourceState, PollSource, SourceMapping
from denizen.domain.feed import FeedVersion
from denizen.domain.json import Json
from denizen.engine.event_bus.polls import LONGEST_LISTING, ResourcePoller
from denizen.ports.event_sources import ResourceReading
from denizen.ports.events import EventSearch
from tests.engine.platform_fixture import ADA, PlatformFixture, World, open_platform

pytestmark = pytest.mark.anyio

KEEP = EventListener(name="keep", on=("poll.*",), action=EventAction(kind=ActionKind.LOG, agent=ADA))
TICKETS = PollSource(
    name="tickets", url="https://a.b/tickets", items="data.list", mapping=SourceMapping(id="id", type="state")
)
STATUS = PollSource(name="status", url="https://a.b/status", items="status")


@dataclass
class ResourceServer:
    """One resource in memory, with a version."""

    content: Json = None
    is_down: bool = False
    asked: list[FeedVersion] = field(default_factory=list[FeedVersion])

    def list_tickets(self, *names: str) -> None:
        self.content = {"data": {"list": [{"id": name, "state": "Open!"} for name in names]}}

    async def read(self, source: PollSource, known: FeedVersion) -> ResourceReading:
        del source
        self.asked.append(known)
        if self.is_down:
            raise Unavailable("The server of the resource answered 500.", code="poll_status")
        version = FeedVersion(etag=str(hash(str(self.content))))
        return ResourceReading(self.content, version, has_changed=known != version)


def make_poller(server: PlatformFixture, reader: ResourceServer) -> ResourcePoller:
    return ResourcePoller(server.runtime, server.store, server.world.clock, server.bus, reader)


async def look(server: PlatformFixture, poller: ResourcePoller, after: timedelta = TICKETS.every) -> Sequence[Json]:
    """Returns the data of all events once the time has passed, the oldest first."""
    server.world.clock.advance(after.total_seconds())
    await poller.poll_due()
    async with server.store.work(write=False) as work:
        return [each.event.data for each in reversed(await work.events.search(EventSearch(limit=1000)))]


async def read_state(server: PlatformFixture) -> EventSourceState:
    async with server.store.work(write=False) as work:
        [state] = await work.event_sources.list_states()
        return state


async def test_only_items_that_are_new_since_the_first_look_become_events_each_once() -> None:
    reader = ResourceServer()
    reader.list_tickets("1", "2")
    world = World()
    async with open_platform(world, events=[KEEP], sources=[TICKETS]) as server:
        poller = make_poller(server, reader)
        assert await look(server, poller) == []
        reader.list_tickets("3", "2", "1", "3")
        [event] = await look(server, poller)
        assert event == {"id": "3", "state": "Open!"}
        assert len(await look(server, poller)) == 1  # nothing has changed
    async with open_platform(world, events=[KEEP], sources=[TICKETS]) as server:
        reader.list_tickets("4", "1")
        poller, other = make_poller(server, reader), make_poller(server, reader)
        await look(server, poller)
        assert len(await look(server, other, timedelta())) == 2
        async with server.store.work(write=False) as work:
            [newest, _] = await work.events.search(EventSearch())
        assert (newest.event.type, newest.event.source, newest.event.id) == ("poll.tickets.open", "/polls/tickets", "4")


async def test_a_first_look_may_count_and_many_items_come_in_parts() -> None:
    reader = ResourceServer()
    reader.list_tickets(*map(str, range(MAX_ITEMS + 5)))
    async with open_platform(events=[KEEP], sources=[replace(TICKETS, takes_first=True)]) as server:
        poller = make_poller(server, reader)
        assert len(await look(server, poller)) == MAX_ITEMS
        assert len(await look(server, poller)) == MAX_ITEMS + 5


async def test_a_resource_is_asked_at_its_interval_and_less_often_while_it_fails_and_loses_nothing() -> None:
    reader = ResourceServer(is_down=True)
    reader.list_tickets("1")
    async with open_platform(events=[KEEP], sources=[TICKETS]) as server:
        poller = make_poller(server, reader)
        await look(server, poller)
        assert (await read_state(server)).failures == 1 and "500" in (await read_state(server)).failure
        await look(server, poller)
        assert len(reader.asked) == 1  # it is asked half as often
        reader.is_down = False
        assert await look(server, poller) == []  # the first look that succeeds is the first one
        assert (await read_state(server)).failures == 0
        reader.is_down = True
        reader.list_tickets("1", "2")
        await look(server, poller)
        reader.is_down = False
        assert len(await look(server, poller, TICKETS.every * 2)) == 1


async def test_what_is_no_list_is_an_event_whenever_it_has_changed() -> None:
    reader = ResourceServer({"status": "up", "at": 1})
    async with open_platform(events=[KEEP], sources=[STATUS]) as server:
        poller = make_poller(server, reader)
        assert await look(server, poller) == []
        found = list[Json]()
        for at, state in enumerate(("up", "down", "up", "up")):
            reader.content = {"status": state, "at": at}
            found = [*await look(server, poller)]
        assert found == [{"value": "down"}, {"value": "up"}]


async def test_events_that_no_listener_waits_for_are_not_kept_and_a_new_address_is_looked_at_anew() -> None:
    reader, world = ResourceServer(), World()
    reader.list_tickets("1")
    async with open_platform(world, events=[replace(KEEP, on=("poll.other",))], sources=[TICKETS]) as server:
        poller = make_poller(server, reader)
        await look(server, poller)
        reader.list_tickets("1", "2")
        assert await look(server, poller) == []
    moved = replace(TICKETS, url="https://a.b/v2/tickets")
    async with open_platform(world, events=[KEEP], sources=[moved]) as server:
        reader.list_tickets("1", "2", "3")
        assert await look(server, make_poller(server, reader)) == []


async def test_an_id_that_no_index_holds_is_kept_as_its_digest() -> None:
    reader, name = ResourceServer(), "x" * 10_000
    reader.list_tickets("1")
    async with open_platform(events=[KEEP], sources=[TICKETS]) as server:
        poller = make_poller(server, reader)
        await look(server, poller)
        reader.list_tickets("1", name)
        assert await look(server, poller) == [{"id": name, "state": "Open!"}]
        reader.list_tickets(name)
        assert len(await look(server, poller)) == 1
        async with server.store.work(write=False) as work:
            assert max(map(len, await work.event_sources.list_seen(TICKETS.key))) <= MAX_KEY_CHARS


async def test_a_list_that_is_too_long_is_refused() -> None:
    reader = ResourceServer()
    reader.list_tickets(*map(str, range(LONGEST_LISTING + 1)))
    async with open_platform(events=[KEEP], sources=[TICKETS]) as server:
        await look(server, make_poller(server, reader))
        assert "lists 2001 items" in (await read_state(server)).failure


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ({"tickets": [], "next": 2}, "The answer has the fields tickets, next"),
        ({"data": {"lists": []}}, "'data' has the fields lists"),
        ({"data": []}, "'data' is a list"),
        ([], "The answer is a list"),
        ("down", "The answer is no object"),
    ],
)
async def test_a_path_of_items_that_leads_nowhere_is_told_with_what_is_there(content: Json, why: str) -> None:
    reader = ResourceServer(content)
    async with open_platform(events=[KEEP], sources=[TICKETS]) as server:
        poller = make_poller(server, reader)
        await look(server, poller)
        failure = (await read_state(server)).failure
        assert "nothing at 'data.list'" in failure and why in failure and "Correct `items`" in failure
        reader.list_tickets("1")
        await look(server, poller, TICKETS.every * 2)
        assert (await read_state(server)).failures == 0


@pytest.mark.parametrize("content", [{"data": {"list": None}}, {"data": {}}])
async def test_a_resource_may_leave_out_an_empty_list_once_it_had_one(content: Json) -> None:
    reader = ResourceServer()
    reader.list_tickets("1")
    async with open_platform(events=[KEEP], sources=[TICKETS]) as server:
        poller = make_poller(server, reader)
        await look(server, poller)
        reader.content = content
        await look(server, poller)
        assert (await read_state(server)).failures == 0
        reader.list_tickets("2")
        assert await look(server, poller) == [{"id": "2", "state": "Open!"}]
