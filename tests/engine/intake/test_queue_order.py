"""The order in which questions of one conversation are answered: among people who ask, and across a restart."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import pytest

from denizen.domain.errors import LimitExceeded
from denizen.domain.message import TextPart
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.room import Room
from denizen.domain.turn import Turn
from denizen.engine.intake import resumed_turns
from denizen.engine.intake.turn_queue import TurnQueues
from denizen.ports.channel import IncomingMessage
from denizen.ports.model import ModelRequest
from denizen.testing.memory_durable import MemoryLog
from denizen.testing.scripted_model import ReplyGate, ScriptedModel, ScriptedReply
from denizen.testing.temporary_store import TemporaryStore
from tests.engine.engine_fixture import EngineFixture, message, open_engine
from tests.engine.platform_fixture import ADA, World, open_platform
from tests.memory_channel import MemoryChannel
from tests.timing import HANG_LIMIT_S, controlled_clock

pytestmark = pytest.mark.anyio


def person(name: str) -> Principal:
    return Principal(PrincipalKind.PLATFORM_USER, f"discord:{name}", name)


def find_question(request: ModelRequest) -> str:
    """The newest question that the model reads."""
    texts = [part.text for m in request.messages for part in m.parts if isinstance(part, TextPart)]
    return next(text for text in reversed(texts) if "question" in text).splitlines()[-1].removeprefix("question ")


async def until_ended(engine: EngineFixture, turns: Sequence[Turn]) -> None:
    with anyio.fail_after(HANG_LIMIT_S):
        for turn in turns:
            await engine.durable.wait(turn.id)


@pytest.mark.proves("X-busy")
async def test_people_who_ask_take_turns() -> None:
    gate = ReplyGate()
    model = ScriptedModel(ScriptedReply("first", before=gate), otherwise=ScriptedReply("later"))
    async with open_engine(model) as engine:
        turns: list[Turn] = []
        for name, number in (("ana", 1), ("ana", 2), ("ana", 3), ("bob", 1), ("bob", 2), ("cleo", 1)):
            asked = message(f"question {name} {number}", principal=person(name))
            turns.append(await engine.turns.submit(asked))
            await anyio.wait_all_tasks_blocked()
        await gate.reached.wait()
        gate.open.set()
        await until_ended(engine, turns)
    assert [find_question(request) for request in model.requests] == [
        "ana 1",
        "ana 2",
        "bob 1",
        "cleo 1",
        "ana 3",
        "bob 2",
    ]


@pytest.mark.proves("X-busy")
async def test_nobody_takes_all_the_places_of_a_queue() -> None:
    gate = ReplyGate()
    model = ScriptedModel(ScriptedReply("first", before=gate), otherwise=ScriptedReply("later"))
    taken: dict[str, int] = {}
    async with open_engine(model, queues=TurnQueues(max_waiting=8)) as engine:
        turns = [await engine.turns.submit(message("question", principal=person("zoe")))]
        await gate.reached.wait()
        for name in ("ana", "bob", "cleo", "dan", "eve"):
            for _ in range(20):
                try:
                    turns.append(await engine.turns.submit(message("question", principal=person(name))))
                except LimitExceeded as error:
                    assert error.code == "queue_full"
                    break
                await anyio.wait_all_tasks_blocked()
                taken[name] = taken.get(name, 0) + 1
        gate.open.set()
        await until_ended(engine, turns)
    assert taken == {"ana": 4, "bob": 2, "cleo": 1, "dan": 1}


@pytest.mark.proves("P1")
async def test_turns_of_an_earlier_process_go_before_new_ones_in_the_order_in_which_they_were_asked() -> None:
    store = TemporaryStore()
    async with open_engine(ScriptedModel(ScriptedReply("never", before=ReplyGate())), store=store) as engine:
        earlier = [await engine.turns.submit(message(f"question {number}")) for number in range(3)]
        await engine.durable.crash()
    model = ScriptedModel(otherwise=ScriptedReply("yes"))
    async with open_engine(model, store=store, log=MemoryLog()) as engine:
        await engine.turns.expect_open()
        new = await engine.turns.submit(message("question new"))
        await anyio.wait_all_tasks_blocked()
        # The runs are taken up in no certain order.
        for turn in reversed(earlier):
            await engine.durable.submit("turn", turn.id, {"turn_id": turn.id})
            await anyio.wait_all_tasks_blocked()
        await until_ended(engine, [*earlier, new])
    assert [find_question(request) for request in model.requests] == ["0", "1", "2", "new"]


async def test_a_turn_that_another_process_ends_is_not_waited_for_any_longer() -> None:
    store = TemporaryStore()
    gate = ReplyGate()
    async with (
        open_engine(ScriptedModel(ScriptedReply("one", before=gate)), store=store) as one,
        open_engine(ScriptedModel(ScriptedReply("two")), store=store) as two,
    ):
        first = await one.turns.submit(message("question 1"))
        await gate.reached.wait()
        await two.turns.expect_open()
        second = await two.turns.submit(message("question 2"))
        await anyio.wait_all_tasks_blocked()
        assert two.turns.here.is_queued(second.id)
        gate.open.set()
        await until_ended(one, [first])
        await until_ended(two, [second])


async def test_a_turn_that_nobody_takes_up_is_not_waited_for_without_end() -> None:
    store = TemporaryStore()
    async with open_engine(ScriptedModel(ScriptedReply("never", before=ReplyGate())), store=store) as engine:
        await engine.turns.submit(message("question 1"))
        await engine.durable.crash()
    with controlled_clock() as clock:
        async with open_engine(ScriptedModel(ScriptedReply("two")), store=store, log=MemoryLog()) as engine:
            await engine.turns.expect_open()
            new = await engine.turns.submit(message("question 2"))
            await anyio.wait_all_tasks_blocked()
            assert engine.turns.here.is_queued(new.id)
            clock.advance(resumed_turns.PATIENCE_S)
            await engine.durable.wait(new.id)


async def test_a_turn_that_is_stopped_while_it_waits_leaves_the_queue_to_others() -> None:
    gate = ReplyGate()
    model = ScriptedModel(ScriptedReply("first", before=gate), otherwise=ScriptedReply("later"))
    async with open_engine(model) as engine:
        turns = [
            await engine.turns.submit(message(f"question {number}", principal=person("ana"))) for number in range(4)
        ]
        await gate.reached.wait()
        await anyio.wait_all_tasks_blocked()
        engine.turns.cancel(turns[1].id)
        engine.turns.cancel(turns[2].id)
        await until_ended(engine, turns[1:3])
        gate.open.set()
        await until_ended(engine, turns)
    assert [find_question(request) for request in model.requests] == ["0", "3"]


class SlowReadingChannel(MemoryChannel):
    """An account that reads what it missed only when it may."""

    gate = ReplyGate()

    async def list_arrivals(self, room: Room, *, after: str, limit: int = 100) -> Sequence[IncomingMessage]:
        await self.gate.pass_through()
        return await super().list_arrivals(room, after=after, limit=limit)


@pytest.mark.proves("P1")
async def test_new_messages_are_answered_after_those_that_were_missed_in_the_room() -> None:
    world = World()
    async with open_platform(world):
        world.platform.say(world.general, "bob", "nothing")
    for number in range(2):
        world.platform.write(world.general, "ana", f"@ada question missed {number}")
    slow, model = SlowReadingChannel(world.platform, ADA), ScriptedModel(otherwise=ScriptedReply("yes"))
    async with open_platform(world, model, accounts={ADA: slow}) as fixture:
        await slow.gate.reached.wait()
        world.platform.say(world.general, "bob", "@ada question new")
        await anyio.wait_all_tasks_blocked()
        slow.gate.open.set()
        await fixture.settled()
    assert [find_question(request).rpartition("question ")[2] for request in model.requests] == [
        "missed 0",
        "missed 1",
        "new",
    ]


@pytest.mark.parametrize(
    ("held_s", "said"), [((), "a few minutes"), ((80,), "about 3 minutes"), ((80, 0), "about 2 minutes")]
)
async def test_a_refusal_says_how_long_those_who_wait_will_take(held_s: Sequence[float], said: str) -> None:
    queues = TurnQueues(max_waiting=2)

    async def ask(asker: str) -> None:
        async with queues.turn("room", asker):
            pass

    with controlled_clock() as clock:
        async with anyio.create_task_group() as group, queues.turn("room", "ana") as slot:
            for seconds in held_s:
                clock.advance(seconds)
                slot.leave()
                await slot.take()
            for asker in ("bob", "cleo"):
                group.start_soon(ask, asker)
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(LimitExceeded, match=f"2 messages wait here already. Please ask again in {said}"):
                queues.check_not_full("room", "dan")
