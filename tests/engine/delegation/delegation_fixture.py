"""An engine with three agents: ada, who may give tasks to bob, and cleo, who may not be given any."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from denizen.domain.agent import Agent, ToolAccess
from denizen.domain.clock import Clock, SystemClock
from denizen.domain.delegation import DELEGATE, TASK_STATUS
from denizen.domain.ids import AgentName, CallId
from denizen.domain.json import Json
from denizen.domain.message import Role, ToolCallPart, ToolResultPart
from denizen.domain.prompt import PromptMessage
from denizen.domain.turn import Turn
from denizen.engine.configuration.generation import Generation, Runtime
from denizen.engine.configuration.tool_policy import GatePolicy
from denizen.engine.delegation.delegations import Delegations
from denizen.engine.delegation.tools import DelegationTools
from denizen.engine.loop.services import build_services
from denizen.engine.schedules.delivery import RunDeliveries
from denizen.engine.turn import TurnRunner
from denizen.testing.memory_durable import MemoryDurable, MemoryLog
from denizen.testing.scripted_model import ScriptedModel, ScriptedModels, ScriptedReply, call
from denizen.testing.temporary_store import TemporaryStore
from tests.engine.engine_fixture import NAME, EngineFixture, ToolsetFixture

BOB, CLEO = AgentName("bob"), AgentName("cleo")
ADA = Agent(NAME, model="ada", tool_access=ToolAccess(delegates_to=(BOB,)))
AGENTS = (ADA, Agent(BOB, "Looks things up.", model="bob"), Agent(CLEO, model="bob"))


@dataclass
class DelegationFixture(EngineFixture):
    """`model` is ada's; `other` is that of bob and cleo."""

    other: ScriptedModel
    delegations: Delegations

    async def list_turns(self, agent: AgentName) -> list[Turn]:
        async with self.store.work(write=False) as work:
            return [turn for turn in await work.turns.list_turns() if turn.agent == agent]


@asynccontextmanager
async def open_agents(
    model: ScriptedModel,
    other: ScriptedModel,
    tools: ToolsetFixture | None = None,
    *,
    agents: tuple[Agent, ...] = AGENTS,
    store: TemporaryStore | None = None,
    log: MemoryLog | None = None,
    policy: GatePolicy | None = None,
    clock: Clock | None = None,
) -> AsyncGenerator[DelegationFixture]:
    """Give the store and log of an earlier engine to see a restart."""
    tools, store, runtime = tools or ToolsetFixture(), store or TemporaryStore(), Runtime()
    durable = MemoryDurable(log or MemoryLog())
    clock = clock or SystemClock()
    services = build_services(runtime, store, durable, clock)
    turns = TurnRunner(runtime, services)
    delegations = Delegations(runtime, services, turns)
    deliveries = RunDeliveries(runtime, store, durable, clock)
    by_name = {agent.name: agent for agent in agents}
    await runtime.swap(
        Generation(
            number=1,
            agents=by_name,
            default_agent=NAME,
            models=ScriptedModels({"ada": model, "bob": other}),
            toolsets=(tools, DelegationTools(delegations, by_name)),
            policy=policy or GatePolicy(),
        )
    )
    await durable.start()
    try:
        yield DelegationFixture(turns, runtime, services, store, durable, model, tools, deliveries, other, delegations)
    finally:
        await durable.aclose()


def hand_on(task: str, agent: str = BOB, *, is_async: bool = False) -> ScriptedReply:
    """ada gives a task away."""
    more: dict[str, Json] = {"async": True} if is_async else {}
    return ScriptedReply(calls=[ToolCallPart(CallId(""), DELEGATE, {"agent": agent, "task": task, **more})])


def ask_status(task_id: str = "") -> ScriptedReply:
    """ada lists the tasks, or looks at one."""
    if not task_id:
        return ScriptedReply(calls=[call(TASK_STATUS, action="list")])
    return ScriptedReply(calls=[call(TASK_STATUS, action="status", task_id=task_id)])


def last_result(model: ScriptedModel) -> ToolResultPart:
    """What the model was last told by a tool."""
    return find_results(model)[-1]


def find_results(model: ScriptedModel) -> list[ToolResultPart]:
    messages: tuple[PromptMessage, ...] = tuple(model.requests[-1].messages)
    return [
        part for each in messages if each.role is Role.TOOL for part in each.parts if isinstance(part, ToolResultPart)
    ]


def without_times(part: ToolResultPart) -> str:
    """The result without the line that tells how long the call took."""
    return part.text.partition("\n[")[0]
