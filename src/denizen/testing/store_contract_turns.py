"""The store's promises about turns, their steps and calls, and the sums of what they used."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta, timezone
from decimal import Decimal

import anyio
import pytest

from denizen.domain.conversation import Place
from denizen.domain.errors import InvalidInput, NotFound
from denizen.domain.ids import MessageId, TurnId
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.routing import Complexity, Route
from denizen.domain.turn import TurnStatus
from denizen.domain.usage import Usage
from denizen.ports.store import Store, UsageRow
from denizen.testing.store_records import AGENT, USAGE, at, make_call, make_step, make_turn, open_conversation

BOB = Principal(PrincipalKind.API_KEY, "1", "Bob")


@pytest.mark.anyio
class TurnContract:
    async def test_a_turn_comes_back_as_it_was_opened(self, store: Store) -> None:
        _, session = await open_conversation(store)
        turn = make_turn(session, "t1")
        async with store.work() as work:
            assert await work.turns.find(turn.id) is None
            assert await work.turns.open(turn) == (turn, True)
        async with store.work(write=False) as work:
            assert await work.turns.get(turn.id) == await work.turns.find(turn.id) == turn
            with pytest.raises(NotFound):
                await work.turns.get(TurnId("none"))

    async def test_a_turn_opened_again_is_the_stored_one(self, store: Store) -> None:
        _, session = await open_conversation(store)
        turn = make_turn(session, "t1")
        async with store.work() as work:
            await work.turns.open(turn)
            assert await work.turns.open(replace(turn, trigger_id=MessageId("other"))) == (turn, False)
        done = replace(turn, status=TurnStatus.DONE, closed_at=at(1), reply="Hello.")
        async with store.work() as work:
            await work.turns.close(done)
        async with store.work() as work:
            assert await work.turns.open(turn) == (done, False)

    async def test_of_many_who_open_the_same_turn_at_once_one_is_told_that_it_is_new(self, store: Store) -> None:
        _, session = await open_conversation(store)
        told: list[bool] = []

        async def ask() -> None:
            async with store.work() as work:
                told.append((await work.turns.open(make_turn(session, "t1")))[1])

        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(ask)
        assert sorted(told) == [False] * 9 + [True]

    async def test_a_turn_keeps_its_first_final_state(self, store: Store) -> None:
        _, session = await open_conversation(store)
        turn = make_turn(session, "t1")
        failed = replace(
            turn,
            status=TurnStatus.FAILED,
            closed_at=at(0.5),
            model="m1",
            reply="part\x00",
            failure="It broke.",
            failure_code="bug",
            failure_family="Unavailable",
            failure_fix="Try again.",
            usage=USAGE,
            options={"said": [1]},
            route=Route.of(Complexity.COMPLEX, "a long piece of work"),
        )
        async with store.work() as work:
            await work.turns.open(turn)
            await work.turns.close(failed)
        async with store.work() as work:
            await work.turns.close(replace(failed, status=TurnStatus.DONE, reply="late", closed_at=at(2)))
        async with store.work() as work:
            assert await work.turns.get(turn.id) == failed
            with pytest.raises(NotFound):
                await work.turns.close(replace(failed, id=TurnId("none")))
            with pytest.raises(InvalidInput):
                await work.turns.close(turn)

    async def test_turns_are_listed_newest_first_and_open_ones_oldest_first(self, store: Store) -> None:
        here, session = await open_conversation(store)
        there, elsewhere = await open_conversation(store, Place("web", "1"))
        order = [("t1", session, 0), ("t2", session, 2), ("t3", elsewhere, 1), ("t4", session, 2), ("t5", session, 3)]
        async with store.work() as work:
            for key, where, hours in order:
                await work.turns.open(make_turn(where, key, hours=hours))
            await work.turns.close(replace(make_turn(session, "t5"), status=TurnStatus.DONE, closed_at=at(4)))
        async with store.work(write=False) as work:
            assert [turn.id for turn in await work.turns.list_turns()] == ["t5", "t4", "t2", "t3", "t1"]
            still_open = await work.turns.list_turns(status=TurnStatus.OPEN)
            assert [turn.id for turn in still_open] == ["t1", "t3", "t2", "t4"]
            first = await work.turns.list_turns(status=TurnStatus.OPEN, conversation_id=here.id, limit=2)
            assert [turn.id for turn in first] == ["t1", "t2"]
            assert [turn.id for turn in await work.turns.list_turns(status=TurnStatus.DONE)] == ["t5"]
            assert [turn.id for turn in await work.turns.list_turns(conversation_id=there.id)] == ["t3"]
            assert [turn.id for turn in await work.turns.list_turns(limit=2)] == ["t5", "t4"]
            assert await work.turns.list_turns(limit=0) == []

    async def test_steps_and_calls_come_back_in_order_and_repeating_them_changes_nothing(self, store: Store) -> None:
        _, session = await open_conversation(store)
        turn = make_turn(session, "t1")
        steps = [make_step(turn, number, hours=-number) for number in (1, 2, 10)]
        calls = [make_call(turn, *key) for key in ((1, 0), (1, 1), (2, 0), (2, 10))]
        async with store.work() as work:
            await work.turns.open(turn)
            for step in reversed(steps):
                await work.turns.add_step(step)
            for call in reversed(calls):
                assert await work.turns.add_call(call)
        async with store.work() as work:
            await work.turns.add_step(replace(steps[0], model="other"))
            assert not await work.turns.add_call(replace(calls[0], result="other"))
        async with store.work(write=False) as work:
            assert await work.turns.list_steps(turn.id) == steps
            assert await work.turns.list_calls(turn.id) == calls
            assert await work.turns.list_steps(TurnId("none")) == []
            assert await work.turns.list_calls(TurnId("none")) == []

    async def test_a_turn_step_or_call_of_something_unknown_is_refused(self, store: Store) -> None:
        _, session = await open_conversation(store)
        turn = make_turn(session, "t1")
        with pytest.raises(NotFound):
            async with store.work() as work:
                await work.turns.open(make_turn(replace(session, id=type(session.id)("none")), "t2"))
        with pytest.raises(NotFound):
            async with store.work() as work:
                await work.turns.add_step(make_step(turn, 1))
        with pytest.raises(NotFound):
            async with store.work() as work:
                await work.turns.add_call(make_call(turn, 1, 0))

    async def test_times_come_back_in_utc_to_the_microsecond(self, store: Store) -> None:
        _, session = await open_conversation(store)
        odd = at(0.1).replace(microsecond=7).astimezone(timezone(timedelta(hours=5, minutes=45)))
        turn = replace(make_turn(session, "t1"), opened_at=odd)
        async with store.work() as work:
            await work.turns.open(turn)
        async with store.work(write=False) as work:
            stored = (await work.turns.get(turn.id)).opened_at
        assert stored == odd
        assert stored.utcoffset() == timedelta(0)

    async def test_usage_is_summed_by_day_agent_and_model_from_the_given_time_on(self, store: Store) -> None:
        _, session = await open_conversation(store)
        async with store.work() as work:
            other = await work.sessions.current(session.conversation_id, type(AGENT)("scribe"), now=at(0))
            turns = [make_turn(session, "t1"), make_turn(session, "t2", principal=BOB), make_turn(other, "t3")]
            for turn in turns:
                await work.turns.open(turn)
            mine, bobs, scribes = turns
            for step in (
                make_step(mine, 1),
                make_step(mine, 2, hours=1),
                make_step(mine, 3, hours=-1),
                make_step(mine, 4, model="m2", usage=Usage(5, requests=1)),
                make_step(bobs, 1, hours=12),
                make_step(scribes, 1, usage=Usage(1, 2, 3, 4, Decimal("0.000000000001"), 1)),
            ):
                await work.turns.add_step(step)
        twice = Usage(2000, 100, 1800, 200, Decimal("0.00246912"), 2)
        scribed = UsageRow("2026-11-21", "scribe", "m1", Usage(1, 2, 3, 4, Decimal("0.000000000001"), 1))
        own = [
            UsageRow("2026-11-21", "denizen", "m1", twice),
            UsageRow("2026-11-21", "denizen", "m2", Usage(5, requests=1)),
        ]
        asked = UsageRow("2026-11-22", "denizen", "m1", USAGE)
        async with store.work(write=False) as work:
            assert await work.ledger.list_usage(since=at(0)) == [asked, *own, scribed]
            assert await work.ledger.list_usage(since=at(0), agent="denizen") == [asked, *own]
            assert await work.ledger.list_usage(since=at(0), principal="api_key:1") == [asked]
            mine_only = await work.ledger.list_usage(since=at(0), agent="denizen", principal="platform_user:1")
            assert mine_only == own
            assert await work.ledger.list_usage(since=at(13)) == []

    async def test_money_is_added_exactly(self, store: Store) -> None:
        _, session = await open_conversation(store)
        turn = make_turn(session, "t1")
        async with store.work() as work:
            await work.turns.open(turn)
            for number in range(1, 11):
                await work.turns.add_step(make_step(turn, number, usage=Usage(cost_usd=Decimal("0.1"))))
            await work.turns.add_step(make_step(turn, 11, usage=Usage(cost_usd=Decimal("1234.000000000001"))))
        async with store.work(write=False) as work:
            (row,) = await work.ledger.list_usage(since=at(0))
        assert row.usage.cost_usd == Decimal("1235.000000000001")
