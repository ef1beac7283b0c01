"""Measures the cost of a unit of work in processor time (the machine may be shared; wall time is shown beside it).

python -m benchmarks store                      SQLite in a temporary folder
python -m benchmarks store postgresql://...     an empty database
"""

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

from denizen.adapters.store import open_store
from denizen.domain.clock import SystemClock
from denizen.domain.conversation import Session
from denizen.domain.ids import fresh
from denizen.domain.message import Role
from denizen.domain.turn import TurnStatus
from denizen.ports.store import Store
from tests.contracts.store.records import (
    AGENT,
    NOON,
    PLACE,
    at,
    make_call,
    make_message,
    make_step,
    make_turn,
    open_conversation,
)

ROUNDS = 300
TEXT = "The gateway fell over again at noon, and nobody has looked at the logs of the worker yet. " * 3


async def measure(name: str, unit: Callable[[], Awaitable[object]]) -> None:
    for _ in range(ROUNDS // 10):
        await unit()
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(ROUNDS):
        await unit()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    print(f"{name:52} {cpu / ROUNDS * 1e6:7.0f} us cpu {wall / ROUNDS * 1e6:7.0f} us wall")


class Units:
    def __init__(self, store: Store, session: Session) -> None:
        self.store = store
        self.session = session

    async def empty(self) -> None:
        async with self.store.work():
            pass

    async def add_message(self) -> None:
        async with self.store.work() as work:
            await work.messages.add(make_message(self.session, fresh("msg"), TEXT))

    async def open_turn(self) -> str:
        """Does the work of the engine when a message arrives."""
        key = fresh("turn")
        async with self.store.work() as work:
            conversation = await work.conversations.put(PLACE, now=NOON)
            await work.turns.find(make_turn(self.session, key).id)
            session = await work.sessions.current(conversation.id, AGENT, now=NOON)
            turn, _ = await work.turns.open(make_turn(session, key))
            await work.messages.add(make_message(session, f"msg-{key}", TEXT))
        return turn.id

    async def close_turn(self) -> None:
        """Does the work of the engine at the end of a turn of two steps with one call."""
        turn = make_turn(self.session, await self.open_turn())
        async with self.store.work() as work:
            await work.turns.add_step(make_step(turn, 1))
            await work.turns.add_step(make_step(turn, 2))
            await work.turns.add_call(make_call(turn, 1, 0))
            for number in range(3):
                await work.messages.add(make_message(self.session, f"{turn.id}-{number}", TEXT, role=Role.ASSISTANT))
            await work.turns.close(replace(turn, status=TurnStatus.DONE, closed_at=at(1), reply=TEXT))

    async def list_tail(self) -> None:
        async with self.store.work(write=False) as work:
            await work.messages.list_tail(self.session.id, limit=50)

    async def get_turn(self) -> None:
        async with self.store.work(write=False) as work:
            await work.turns.find(make_turn(self.session, "none").id)

    async def search(self) -> None:
        async with self.store.work(write=False) as work:
            await work.messages.search("gateway logs", conversation_ids=[self.session.conversation_id])


async def measure_all(url: str) -> None:
    store = await open_store(url, clock=SystemClock())
    _, session = await open_conversation(store)
    units = Units(store, session)
    await measure("empty", units.empty)
    await measure("read: find a turn", units.get_turn)
    await measure("write: add a message", units.add_message)
    await measure("write: open a turn (5 calls)", units.open_turn)
    await measure("write: open and close a turn (5 + 7 calls)", units.close_turn)
    await measure("read: the last 50 messages", units.list_tail)
    await measure("read: search, 10 of 2000 hits", units.search)
    await store.aclose()


def main(url: str = "") -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure_all(url or f"sqlite:///{folder}/store.db"))
