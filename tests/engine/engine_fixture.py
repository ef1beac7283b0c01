"""A whole engine on in-memory adapters and a scripted model, for tests of turns."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any

from denizen.domain.agent import Agent
from denizen.domain.approval import Approval, ApprovalStatus
from denizen.domain.clock import Clock, SystemClock
from denizen.domain.conversation import Place
from denizen.domain.events import TurnEvent, TurnFinished
from denizen.domain.ids import AgentName
from denizen.domain.message import Author, Message, TextPart
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.tool import Tier, ToolCall, ToolResult, ToolSpec
from denizen.domain.turn import RequestOptions, Sender, TurnFailure, TurnRequest, TurnStatus
from denizen.engine.budget.side_completion import BilledCompletion
from denizen.engine.configuration.agent_settings import AgentSettingsOverlay
from denizen.engine.configuration.generation import Generation, Runtime
from denizen.engine.configuration.tool_policy import GatePolicy
from denizen.engine.gate.observer import Observer
from denizen.engine.inspection.queries import Queries
from denizen.engine.intake.turn_queue import TurnQueues
from denizen.engine.loop.services import EngineServices, build_services
from denizen.engine.schedules.delivery import RunDeliveries
from denizen.engine.turn import TurnRunner
from denizen.ports.fleet import TurnRelay
from denizen.ports.store import Store
from denizen.ports.toolset import CallScope
from denizen.testing.memory_durable import MemoryDurable, MemoryLog
from denizen.testing.scripted_model import ScriptedModel, ScriptedModels
from denizen.testing.temporary_store import TemporaryStore
from tests.timing import poll

NAME = AgentName("ada")
PLACE = Place("terminal", "test")
ANA = Principal(PrincipalKind.LOCAL, "ana", "Ana")
LOOK = ToolSpec(
    "look",
    "Looks something up.",
    {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"], "additionalProperties": False},
    tier=Tier.HARMLESS,
    read_only=True,
)
WRITE = replace(LOOK, name="write", description="Writes something down.", read_only=False)

Run = Callable[[ToolCall, CallScope], Awaitable[ToolResult]]


async def answer(call: ToolCall, scope: CallScope) -> ToolResult:
    return ToolResult(f"found {call.args['q']}")


@dataclass
class ToolsetFixture:
    """A toolset whose tools a test can change while a turn runs."""

    specs: list[ToolSpec] = field(default_factory=lambda: [LOOK, WRITE])
    run: Run = answer
    calls: list[ToolCall] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    refusal: str | Exception = ""
    closed: bool = False
    name: str = "tools"

    async def list_tools(self) -> Sequence[ToolSpec]:
        return list(self.specs)

    async def call(self, call: ToolCall, scope: CallScope) -> ToolResult:
        self.calls.append(call)
        self.keys.append(scope.options.idempotency_key)
        return await self.run(call, scope)

    async def find_refusal(self, call: ToolCall, scope: CallScope) -> str:
        if isinstance(self.refusal, Exception):
            raise self.refusal
        return self.refusal

    async def aclose(self) -> None:
        self.closed = True


@dataclass
class EngineFixture:
    """What a test sees of the engine."""

    turns: TurnRunner
    runtime: Runtime
    services: EngineServices
    store: TemporaryStore
    durable: MemoryDurable
    model: ScriptedModel
    tools: ToolsetFixture
    deliveries: RunDeliveries

    async def say(self, text: str, **more: object) -> TurnFinished:
        return await self.turns.ask(message(text, **more))

    async def fail(self, text: str, **more: object) -> TurnFailure:
        """Says something to which there is no answer, and returns why."""
        done = await self.say(text, **more)
        assert done.status is TurnStatus.FAILED and done.failure and not done.reply
        return done.failure

    async def watch(self, text: str, **more: object) -> list[TurnEvent]:
        return [event async for event in self.turns.stream(message(text, **more))]

    async def session(self, place: Place = PLACE) -> Sequence[Message]:
        return await Queries(self.runtime, self.services).list_messages(place, NAME, limit=1000)


async def wait_for_approvals(store: Store, *, count: int = 1) -> list[Approval]:
    """Returns the pending approvals, once there are so many."""

    async def look() -> list[Approval]:
        async with store.work(write=False) as work:
            found = list(await work.approvals.list_approvals(status=ApprovalStatus.PENDING))
        return found if len(found) >= count else []

    return await poll(look)


SENDER = [each.name for each in fields(Sender)]
OPTIONS = [each.name for each in fields(RequestOptions)]

_count = iter(range(1, 1_000_000))


def message(text: str, **more: object) -> TurnRequest:
    """A message of Ana's; its platform id is new unless it is given. `more` are fields of it, of its sender and of its
    options.
    """
    given: dict[str, Any] = dict(more)
    sender = {name: given.pop(name) for name in SENDER if name in given}
    options = {name: given.pop(name) for name in OPTIONS if name in given}
    base = TurnRequest(
        agent=NAME,
        place=PLACE,
        sender=replace(Sender(Author("ana", "Ana"), ANA), **sender),
        parts=(TextPart(text),) if text else (),
        platform_id=f"m{next(_count)}",
        options=RequestOptions(**options),
    )
    return replace(base, **given)


def strip_date(text: str) -> str:
    """What the model reads, without the line that tells the date."""
    return re.sub(r"^\[Today is [^]]*\]\n", "", text)


def generation(
    model: ScriptedModel | Mapping[str, ScriptedModel],
    tools: ToolsetFixture,
    *,
    agent: Agent | None = None,
    number: int = 1,
    policy: GatePolicy | None = None,
) -> Generation:
    agent = agent or Agent(NAME)
    return Generation(
        number=number,
        agents={agent.name: agent},
        default_agent=agent.name,
        models=ScriptedModels(model),
        toolsets=(tools,),
        policy=policy or GatePolicy(),
    )


@asynccontextmanager
async def open_engine(
    model: ScriptedModel,
    tools: ToolsetFixture | None = None,
    *,
    agent: Agent | None = None,
    store: TemporaryStore | None = None,
    log: MemoryLog | None = None,
    queues: TurnQueues | None = None,
    policy: GatePolicy | None = None,
    watcher: ScriptedModel | None = None,
    clock: Clock | None = None,
    relay: TurnRelay | None = None,
) -> AsyncGenerator[EngineFixture]:
    """Give the store and log of an earlier engine to see a restart. `watcher` is a model of the name `watcher`. With a
    `relay` it is one process of a fleet.
    """
    tools = tools or ToolsetFixture()
    clock, runtime = clock or SystemClock(), Runtime()
    durable = MemoryDurable(log or MemoryLog(), execute=relay is None or relay.runs_turns)
    store = store or TemporaryStore()
    observer = Observer(store, clock, BilledCompletion(runtime, store, clock))
    services = build_services(runtime, store, durable, clock, observer=observer)
    services = replace(services, assistant=AgentSettingsOverlay(store, clock), relay=relay)
    turns = TurnRunner(runtime, services, queues)
    deliveries = RunDeliveries(runtime, store, durable, clock, pauses_s=(0, 0, 0), store_pause_s=0)
    models = {"balanced": model, "watcher": watcher} if watcher else model
    await runtime.swap(generation(models, tools, agent=agent, policy=policy))
    await durable.start()
    try:
        yield EngineFixture(turns, runtime, services, services.store, durable, model, tools, deliveries)  # pyright: ignore[reportArgumentType]
    finally:
        await durable.aclose()
