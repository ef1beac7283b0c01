"""The contract of tasks that turns handed on: those of a turn, and the background tasks of somebody."""

from __future__ import annotations

from dataclasses import replace

import pytest

from denizen.domain.delegation import Delegation
from denizen.domain.ids import TurnId
from denizen.domain.turn import TurnStatus
from denizen.ports.store import Store
from tests.contracts.store.records import ANA, NOON, at, make_turn, open_conversation


@pytest.mark.anyio
class DelegationContract:
    async def test_tasks_are_listed_by_turn_and_in_the_background_while_they_run_or_ended_lately(
        self, store: Store
    ) -> None:
        _, session = await open_conversation(store)
        turns = [make_turn(session, f"t{number}", hours=number) for number in range(4)]
        rows = [
            Delegation(
                turn_id=turn.id,
                task_id=f"task_{number}",
                parent_id=TurnId("parent"),
                asker=ANA.key if number != 1 else "local:eve",
                is_background=number > 0,
                created_at=at(number),
            )
            for number, turn in enumerate(turns)
        ]
        async with store.work() as work:
            for turn, row in zip(turns, rows, strict=True):
                await work.turns.open(turn)
                await work.delegations.add(row)
                await work.delegations.add(replace(row, task_id="another"))
            await work.turns.close(replace(turns[2], status=TurnStatus.FAILED, closed_at=at(5)))
        async with store.work(write=False) as work:
            listed = work.delegations
            assert await listed.list_delegated(TurnId("parent")) == rows
            assert await listed.list_delegated(TurnId("other")) == []
            assert await listed.list_in_conversation(session.conversation_id) == []
            assert await listed.list_background(ended_after=NOON, limit=10) == rows[:0:-1]
            assert await listed.list_background(ended_after=at(5), limit=10) == [rows[3], rows[1]]
            assert await listed.list_background(asker=ANA.key, ended_after=NOON, limit=10) == [rows[3], rows[2]]
            assert await listed.list_background(asker=ANA.key, ended_after=NOON, limit=1) == [rows[3]]
            assert await listed.list_background(asker="local:nobody", ended_after=NOON, limit=10) == []
