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
from denizen.domain.turn import ReplyTarget
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.configuration.generation import Generation, Runtime
from denizen.engine.loop.services import build_services
from denizen.engine.memory.keeper import MemoryKeeper
from denizen.engine.turn import TurnRunner
from denizen.ports.toolset import CallScope
from denizen.testing.memory_durable import MemoryDurable, MemoryLog
from denizen.testing.model_server import ModelServer
from denizen.testing.temporary_store import TemporaryStore
from tests.adapters.models.wire_fixture import Wire, catalog
from tests.clock import ManualClock
from tests.engine.engine_fixture import ANA, NAME, PLACE, ToolsetFixture, message
from tests.memory_platform import START

ROOM = Place("discord", "100")


@dataclass
class PersistentState:
    """What outlives a process."""

    store: TemporaryStore = field(default_factory=TemporaryStore)
    log: MemoryLog = field(default_factory=MemoryLog)
    clock: ManualClock = field(default_factory=lambda: ManualClock(START))
    posts: int = 1000


@dataclass
class ProviderFixture:
    """One process."""

    state: PersistentState
    agent: Agent
    runtime: Runtime
    turns: TurnRunner
    server: ModelServer
    wire: Wire
    keeper: MemoryKeeper
    generations: int = 0

    async def reload(self) -> None:
        """Another generation of the same configuration."""
        self.generations += 1
        models = catalog(self.server, self.wire)
        tools = (ToolsetFixture(),) if self.agent.tool_access.tools else ()
        await self.runtime.swap(
            Generation(
                number=self.generations, agents={NAME: self.agent}, default_agent=NAME, models=models, toolsets=tools
            )
        )

    async def ask(self, text: str) -> TurnFinished:
        """In a session, or, of a participant, in a channel that is archived."""
        if self.agent.history.context is ContextStrategy.SESSION:
            return await self._done(await self.turns.ask(message(text, agent=NAME, model=self.wire.name)))
        post = await self.post("Ana", text)
        end = await self.answer(post, text)
        await self.post(NAME, end.reply, answers=post)
        return end

    async def answer(self, post: str, text: str) -> TurnFinished:
        """What is answered to a post in the channel."""
        owed = ReplyTarget(NAME, post, answers=(post,), guild="1")
        request = message(text, agent=NAME, model=self.wire.name, place=ROOM, shared=True, owed=owed)
        return await self._done(await self.turns.ask(replace(request, platform_id=post)))

    async def remember(self, text: str) -> None:
        """It may come up in every turn from now on."""
        place = PLACE if self.agent.history.context is ContextStrategy.SESSION else ROOM
        scope = CallScope(
            agent=NAME, principal=ANA, place=place, session_id=SessionId("s"), turn_id=TurnId("t"), account=NAME
        )
        await self.keeper.open(scope).remember(text)

    async def _done(self, end: TurnFinished) -> TurnFinished:
        assert not end.failure, end.failure
        return end

    async def post(self, name: str, text: str, *, answers: str = "") -> str:
        self.state.posts += 1
        author, now = Author(name, name, is_bot=bool(answers)), self.state.clock.now()
        post = Post("discord", str(self.state.posts), ROOM.channel, author, text, now, guild="1", reply_to=answers)
        async with self.state.store.work() as work:
            await work.archive.put([post])
        return post.id


@asynccontextmanager
async def open_provider_engine(
    server: ModelServer, wire: Wire, agent: Agent, state: PersistentState | None = None
) -> AsyncGenerator[ProviderFixture]:
    """Give the past of an earlier one to see a restart."""
    state = state or PersistentState()
    durable, runtime = MemoryDurable(state.log), Runtime()
    keeper = MemoryKeeper(state.store, ConnectedAccounts(), state.clock)
    services = replace(build_services(runtime, state.store, durable, state.clock), memories=keeper)
    fixture = ProviderFixture(state, agent, runtime, TurnRunner(runtime, services), server, wire, keeper)
    await fixture.reload()
    await durable.start()
    try:
        yield fixture
    finally:
        await durable.aclose()
        await runtime.aclose()
