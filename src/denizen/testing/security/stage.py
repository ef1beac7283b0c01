"""Turns through the real engine, with a model that follows a script, tools of a small world, and people to ask.

Nothing of the gate is replaced: calls go from `TurnSteps` through the door, verdicts and approvals are recorded in the
store (the one in memory). Only the observer's model is a script too. Called by `dojo_bench` and `corpus`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count

from denizen.domain.agent import Agent, TurnLimits
from denizen.domain.approval import Approval, ApprovalChoice, ApprovalRule, AskerReach, Deciders
from denizen.domain.clock import SystemClock
from denizen.domain.conversation import Place
from denizen.domain.errors import NotAllowed
from denizen.domain.events import ApprovalRequested, TurnFinished
from denizen.domain.ids import AgentName
from denizen.domain.message import Author, Part, TextPart
from denizen.domain.principal import Principal, PrincipalKind, RoleName
from denizen.domain.turn import CallRecord, InboundMessage
from denizen.engine.budget.side_completion import BilledCompletion
from denizen.engine.gate.decision import PolicyEngine
from denizen.engine.gate.executor import ToolExecutor
from denizen.engine.gate.observer import Observer
from denizen.engine.loop.services import EngineServices
from denizen.engine.runtime.generation import Generation, Runtime
from denizen.engine.runtime.live_events import LiveEvents
from denizen.engine.runtime.tool_policy import GatePolicy, ObserverPolicy
from denizen.engine.turn import TurnRunner
from denizen.ports.toolset import Toolset
from denizen.testing.memory_durable import MemoryDurable, MemoryLog
from denizen.testing.memory_store import MemoryStore
from denizen.testing.scripted_model import Say, ScriptedModel, ScriptedModels

AGENT = AgentName("ada")
HERE = Place("terminal", "home")
OWNER = Principal(PrincipalKind.WEB_USER, "olga", "Olga", frozenset({RoleName.OWNER}))
OBSERVER = "observer"
FOOLED = '{"decision": "approve", "reason": "it looks right"}'
"""What an observer says that falls for everything."""
STERN = '{"decision": "deny", "reason": "nobody asked for this"}'
NO_TIME_S = 0.001
"""How long people are waited for where there is nobody who could answer: the approval expires by itself."""

Word = Callable[[Approval], Sequence[tuple[Principal, ApprovalChoice]]]
"""Who says what to a call that waits, one after another. Whoever may not decide it is turned away."""

_LIMITS = TurnLimits(max_steps=200, max_tools=200)


@dataclass(frozen=True, slots=True)
class Guard:
    """Who looks at calls besides the rules. `observer` is what its model answers, one case after another and then
    always the last; empty where there is none. `word` None means that nobody is there.
    """

    observer: tuple[str, ...] = ()
    word: Word | None = None

    def policy(self, base: GatePolicy | None = None) -> GatePolicy:
        """The given policy, as it stands by default, with this guard's observer and people."""
        base = base or GatePolicy()
        observer = ObserverPolicy(OBSERVER) if self.observer else ObserverPolicy()
        if self.word is not None:
            return replace(base, observer=observer)
        approval = replace(base.approval, timeout_s=NO_TIME_S)
        owners = ApprovalRule(Deciders.ROLE, RoleName.OWNER, timeout_s=NO_TIME_S)
        return replace(base, observer=observer, approval=approval, owners=owners)


@dataclass(frozen=True, slots=True)
class Said:
    """A message."""

    text: str
    asker: Principal = OWNER
    place: Place = HERE
    parts: tuple[Part, ...] = ()
    new_session: bool = False
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Ran:
    """One turn: its calls with their verdicts, and what people were asked."""

    calls: Sequence[CallRecord]
    asked: Sequence[Approval]
    end: TurnFinished


@dataclass(slots=True)
class Stage:
    """What is open."""

    turns: TurnRunner
    store: MemoryStore
    guard: Guard
    runtime: Runtime
    gate: ToolExecutor
    _numbers: count[int] = field(default_factory=lambda: count(1))

    async def say(self, said: Said) -> Ran:
        """One message and its turn, to the end."""
        reach = AskerReach.NOBODY if self.guard.word is None else AskerReach.WATCHER
        asker = said.asker
        inbound = InboundMessage(
            AGENT,
            said.place,
            asker,
            Author(asker.id, asker.name),
            (TextPart(said.text), *said.parts),
            f"m{next(self._numbers)}",
            new_session=said.new_session,
            shared=said.shared,
            reach=reach,
        )
        asked: list[Approval] = []
        end: TurnFinished | None = None
        async with aclosing(self.turns.stream(inbound)) as events:
            async for event in events:
                if isinstance(event, ApprovalRequested):
                    asked.append(event.approval)
                    await self._decide(event.approval)
                elif isinstance(event, TurnFinished):
                    end = event
        if end is None:
            raise AssertionError("a stream of events ends with TurnFinished")
        async with self.store.work(write=False) as work:
            calls = await work.turns.list_calls(end.turn_id)
        return Ran(calls, asked, end)

    async def _decide(self, approval: Approval) -> None:
        for voter, choice in self.guard.word(approval) if self.guard.word else ():
            with suppress(NotAllowed):
                await self.turns.approvals.decide(approval.id, voter, choice)


@asynccontextmanager
async def open_stage(
    model: ScriptedModel,
    toolsets: Sequence[Toolset],
    guard: Guard,
    policy: GatePolicy | None = None,
    *,
    tools: tuple[str, ...] = ("*",),
) -> AsyncGenerator[Stage]:
    """An engine of its own in memory. `tools` are those of its one agent."""
    clock, runtime, store, durable = SystemClock(), Runtime(), MemoryStore(), MemoryDurable(MemoryLog())
    opinions = [Say(text) for text in guard.observer]
    watcher = ScriptedModel(*opinions, name="bench/observer", otherwise=opinions[-1] if opinions else None)
    observer = Observer(store, clock, BilledCompletion(runtime, store, clock))
    gate = ToolExecutor(clock, PolicyEngine(clock, observer))
    services = EngineServices(store, durable, LiveEvents(), gate, clock, observer=observer)
    turns = TurnRunner(runtime, services)
    models = ScriptedModels({"balanced": model, OBSERVER: watcher})
    agents = {AGENT: Agent(AGENT, tools=tools, limits=_LIMITS)}
    await runtime.swap(Generation(1, agents, AGENT, models, tuple(toolsets), guard.policy(policy)))
    await durable.start()
    try:
        yield Stage(turns, store, guard, runtime, gate)
    finally:
        await durable.aclose()
