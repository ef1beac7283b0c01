"""Turns of a fleet: they are handed in by one process and run by another."""

from __future__ import annotations

from dataclasses import dataclass, field

import anyio
import pytest

from denizen.domain.errors import DenizenError
from denizen.domain.events import TurnEvent
from denizen.domain.ids import AgentName, TurnId
from denizen.domain.turn import TurnStatus
from denizen.testing.memory_durable import MemoryLog
from denizen.testing.scripted_model import ReplyGate, ScriptedModel, ScriptedReply
from denizen.testing.temporary_store import TemporaryStore
from tests.engine.engine_fixture import message, open_engine
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio


@dataclass
class DeafRelay:
    """A relay whose words nobody hears."""

    runs_turns: bool
    cancelled: list[TurnId] = field(default_factory=list[TurnId])

    def watch(self, turn_id: TurnId, *, on: bool) -> None: ...

    def is_watched(self, turn_id: TurnId) -> bool:
        return False

    def publish(self, turn_id: TurnId, sign: TurnEvent | DenizenError) -> None: ...

    def cancel(self, turn_id: TurnId) -> None:
        self.cancelled.append(turn_id)

    def wake_outbox(self, platform: str, account: AgentName) -> None: ...


async def test_a_stop_reaches_a_turn_of_another_process_whose_word_was_missed() -> None:
    gate, store, log, told = ReplyGate(), TemporaryStore(), MemoryLog(), DeafRelay(runs_turns=False)
    model = ScriptedModel(ScriptedReply("never", before=gate))
    async with (
        open_engine(ScriptedModel(), store=store, log=log, relay=told) as web,
        open_engine(model, store=store, log=log, relay=DeafRelay(runs_turns=True)) as worker,
    ):
        turn = await web.turns.submit(message("1"))
        with anyio.fail_after(HANG_LIMIT_S):
            await gate.reached.wait()
            assert web.turns.cancel(turn.id)
            assert told.cancelled == [turn.id]
            await web.turns.stops.settle()
            await worker.turns.stops.settle()
            await worker.durable.wait(turn.id)
        assert (await web.turns.get(turn.id)).status is TurnStatus.CANCELLED


async def test_a_turn_that_was_stopped_before_a_worker_took_it_never_runs() -> None:
    store, log, model = TemporaryStore(), MemoryLog(), ScriptedModel(ScriptedReply("never"))
    async with open_engine(ScriptedModel(), store=store, log=log, relay=DeafRelay(runs_turns=False)) as web:
        turn = await web.turns.submit(message("1"))
        assert web.turns.cancel(turn.id)
        await web.turns.stops.settle()
        async with open_engine(model, store=store, log=log, relay=DeafRelay(runs_turns=True)) as worker:
            with anyio.fail_after(HANG_LIMIT_S):
                await worker.durable.wait(turn.id)
        assert (await web.turns.get(turn.id)).status is TurnStatus.CANCELLED
    assert not model.requests
