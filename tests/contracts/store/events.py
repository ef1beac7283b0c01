"""The contract of the store about events: each once, found by its attributes, and delivered by one process."""

from __future__ import annotations

from dataclasses import replace

import pytest

from denizen.domain.cloud_event import CloudEvent
from denizen.domain.event_listener import EventDelivery, EventDeliveryStatus
from denizen.domain.ids import TurnId
from denizen.domain.turn import TurnStatus
from denizen.ports.events import EventSearch
from denizen.ports.store import Store
from tests.clock import NOON
from tests.contracts.store.records import at, make_turn, open_conversation

PUSH = CloudEvent(
    id="1",
    source="/webhooks/hub",
    type="github.push",
    time=NOON,
    subject="club/site",
    actor="local:ana",
    data={"text": "100 % Ärger\x00\ud800", "list": [1, None, True]},
    cause="event_0",
    depth=2,
)
JOIN = replace(PUSH, source="/discord/1", type="discord.member.join", actor="platform_user:discord:7", data={})
WAITING = EventDelivery(
    id="d1", event=PUSH.key, listener="listener:a", status=EventDeliveryStatus.WAITING, due_at=NOON, created_at=NOON
)


async def add_events(store: Store, *events: CloudEvent) -> None:
    async with store.work() as work:
        for event in events:
            assert await work.events.append(event)


async def find(store: Store, **wanted: object) -> list[CloudEvent]:
    async with store.work(write=False) as work:
        found = await work.events.search(EventSearch(**wanted))  # pyright: ignore[reportArgumentType]
        return [each.event for each in found]


@pytest.mark.anyio
class EventContract:
    async def test_an_event_is_kept_once_as_it_came(self, store: Store) -> None:
        await add_events(store, PUSH, JOIN)
        async with store.work() as work:
            assert not await work.events.append(replace(PUSH, data={"other": 1}))
            assert await work.events.find(PUSH.key) == PUSH
            assert await work.events.find("event_none") is None

    async def test_events_are_found_by_type_source_words_and_position(self, store: Store) -> None:
        again = replace(PUSH, id="2", type="github_push")
        await add_events(store, PUSH, JOIN, again)
        assert await find(store) == [again, JOIN, PUSH]
        assert await find(store, type="github.*") == [PUSH]
        assert await find(store, type="*push", limit=1) == [again]
        assert await find(store, source="/discord/1") == [JOIN]
        assert await find(store, words="100 %") == [again, PUSH]
        assert await find(store, words="discord:7") == [JOIN]
        async with store.work(write=False) as work:
            newest = (await work.events.search(EventSearch(limit=1)))[0].position
        assert await find(store, before=newest) == [JOIN, PUSH]

    async def test_events_are_kept_for_thirty_days_and_as_long_as_something_is_to_be_done_about_them(
        self, store: Store
    ) -> None:
        await add_events(store, PUSH, JOIN)
        async with store.work() as work:
            await work.events.add_deliveries([WAITING])
        last, later = (replace(PUSH, id=str(days), time=at(24 * days)) for days in (30, 31))
        await add_events(store, last)
        assert await find(store) == [last, JOIN, PUSH]
        await add_events(store, later)
        assert await find(store) == [later, last, PUSH]

    async def test_deliveries_that_wait_for_the_same_moment_are_a_digest_of_their_listener(self, store: Store) -> None:
        due = at(1)
        first = replace(WAITING, due_at=due)
        second, other = replace(first, id="d2"), replace(first, id="d3", listener="listener:b")
        again, done = replace(first, id="d4", attempts=1), replace(first, id="d5", status=EventDeliveryStatus.DONE)
        async with store.work() as work:
            assert await work.events.find_digest(first.listener, after=NOON) is None
            await work.events.add_deliveries([first, second, other, again, done])
            assert await work.events.find_digest(first.listener, after=NOON) == due
            assert await work.events.find_digest(first.listener, after=due) is None
            assert await work.events.list_digest(second) == [first, second]
            assert await work.events.list_digest(again) == [again]

    async def test_the_events_of_somebody_go_with_their_deliveries(self, store: Store) -> None:
        await add_events(store, PUSH, JOIN)
        async with store.work() as work:
            await work.events.add_deliveries([WAITING, replace(WAITING, id="d2", event=JOIN.key)])
            assert await work.events.forget_actor("platform_user:discord:7") == 1
            assert await work.events.forget([PUSH.key, "event_none"]) == 1
            assert not await work.events.list_deliveries([PUSH.key, JOIN.key])
        assert await find(store) == []

    async def test_of_two_processes_that_deliver_an_event_one_tells_how_it_went(self, store: Store) -> None:
        await add_events(store, PUSH)
        started = replace(WAITING, status=EventDeliveryStatus.STARTED, turn_id=TurnId("t1"))
        failed = replace(WAITING, status=EventDeliveryStatus.FAILED, attempts=1, note="away")
        async with store.work() as work:
            await work.events.add_deliveries([WAITING])
            await work.events.add_deliveries([replace(WAITING, note="not taken over")])
        async with store.work() as work:
            assert await work.events.update(started, attempts=0)
            assert await work.events.find_by_turn(TurnId("t1")) == started
            assert list(await work.events.list_ended(limit=9)) == [started]
            assert await work.events.update(failed, attempts=0)
            assert not await work.events.update(started, attempts=0)
            assert await work.events.find_delivery("d1") == failed
            assert list(await work.events.list_failed(limit=9)) == [failed]

    async def test_started_deliveries_are_listed_once_their_turns_have_ended(self, store: Store) -> None:
        await add_events(store, PUSH)
        _, session = await open_conversation(store)
        turns = [make_turn(session, f"t{number}", hours=number) for number in range(2)]
        rows = [
            replace(WAITING, id=f"d{number}", status=EventDeliveryStatus.STARTED, turn_id=turn.id)
            for number, turn in enumerate(turns)
        ]
        async with store.work() as work:
            await work.events.add_deliveries(rows)
            for turn in turns:
                await work.turns.open(turn)
            assert list(await work.events.list_ended(limit=1)) == []
            await work.turns.close(replace(turns[1], status=TurnStatus.FAILED, closed_at=at(5)))
            assert list(await work.events.list_ended(limit=1)) == [rows[1]]

    async def test_deliveries_wait_for_their_time(self, store: Store) -> None:
        await add_events(store, PUSH)
        later = replace(WAITING, id="d2", listener="listener:b", due_at=at(1))
        async with store.work() as work:
            await work.events.add_deliveries([later, WAITING])
        async with store.work(write=False) as work:
            assert list(await work.events.list_due(now=NOON, limit=9)) == [WAITING]
            assert list(await work.events.list_due(now=at(1), limit=9)) == [WAITING, later]
            assert await work.events.find_upcoming(after=NOON) == at(1)
            assert await work.events.find_upcoming(after=at(1)) is None
