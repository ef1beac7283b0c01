"""A whole engine in memory whose model is a provider's real adapter at a local server: what goes over the wire."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from denizen.domain.agent import Agent, ContextStrategy
from denizen.domain.conversation import Place
from denizen.domain.events import TurnFinished
from denizen.domain.ids import SessionId, TurnId
from denizen.domain.message import Author
from denizen.domain.room import Post
from denizen.domain.turn import Owed
from denizen.engine.channels import Channels
from denizen.engine.gate.door import Gate
from denizen.engine.gate.policy import GatePolicy
from denizen.engine.live import Live
from denizen.engine.memory import MemoryKeeper
from denizen.engine.runtime import Generation, Runtime
from denizen.engine.services import Services
from denizen.engine.turn import Turns
from denizen.ports.toolset import CallScope
from denizen.testing.memory_durable import MemoryDurable, MemoryLog
from denizen.testing.memory_store import MemoryStore
from denizen.testing.model_server import ModelServer
from tests.adapters.models.wires import Wire, catalog
from tests.engine.house import ANA, NAME, PLACE, Tools, message
from tests.engine.platform_fixture import TownClock

ROOM = Place("discord", "100")


@dataclass
class Past:
    """What outlives a process."""

    store: MemoryStore = field(default_factory=MemoryStore)
    log: MemoryLog = field(default_factory=MemoryLog)
    clock: TownClock = field(default_factory=TownClock)
    posts: int = 1000


@dataclass
class Wired:
    """One process."""

    past: Past
    agent: Agent
    runtime: Runtime
    turns: Turns
    server: ModelServer
    wire: Wire
    keeper: MemoryKeeper
    generations: int = 0

    async def reload(self) -> None:
        """Another generation of the same configuration."""
        self.generations += 1
        models = catalog(self.server, self.wire)
        tools = (Tools(),) if self.agent.tools else ()
        await self.runtime.swap(
            Generation(self.generations, {NAME: self.agent}, NAME, models, tools, GatePolicy())
        )  # fmt: skip

    async def ask(self, text: str) -> TurnFinished:
        """In a session, or, of a participant, in a channel that is archived."""
        if self.agent.context is ContextStrategy.SESSION:
            return await self._done(await self.turns.ask(message(text, agent=NAME, model=self.wire.name)))
        post = await self.post("Ana", text)
        inbound = message(text, agent=NAME, model=self.wire.name, place=ROOM, shared=True, owed=Owed(NAME, post))
        end = await self._done(await self.turns.ask(replace(inbound, platform_id=post)))
        await self.post(NAME, end.reply, answers=post)
        return end

    async def remember(self, text: str) -> None:
        """It may come up in every turn from now on."""
        place = PLACE if self.agent.context is ContextStrategy.SESSION else ROOM
        scope = CallScope(NAME, ANA, place, place.conversation_id, SessionId("s"), TurnId("t"), account=NAME)
        await self.keeper.open(scope).remember(text)

    async def _done(self, end: TurnFinished) -> TurnFinished:
        assert not end.failure, end.failure
        return end

    async def post(self, name: str, text: str, *, answers: str = "") -> str:
        self.past.posts += 1
        author = Author(name, name, is_bot=bool(answers))
        post = Post(
            "discord", str(self.past.posts), ROOM.channel, author, text, self.past.clock.at, guild="1",
            reply_to=answers,
        )  # fmt: skip
        async with self.past.store.work() as work:
            await work.archive.put([post])
        return post.id


@asynccontextmanager
async def open_wired(server: ModelServer, wire: Wire, agent: Agent, past: Past | None = None) -> AsyncGenerator[Wired]:
    """Give the past of an earlier one to see a restart."""
    past = past or Past()
    durable, runtime = MemoryDurable(past.log), Runtime()
    keeper = MemoryKeeper(past.store, Channels(), past.clock)
    services = Services(past.store, durable, Live(), Gate(past.clock), past.clock, memories=keeper)
    wired = Wired(past, agent, runtime, Turns(runtime, services), server, wire, keeper)
    await wired.reload()
    await durable.start()
    try:
        yield wired
    finally:
        await durable.aclose()
        await runtime.aclose()
