"""Turns through the real engine, with a model that follows a script, tools of a small world, and people to ask.

Nothing of the gate is replaced: calls go from `Steps` through the door, verdicts and approvals are recorded in the
store (the one in memory). Only the observer's model is a script too. Called by `dojo_bench` and `corpus`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count

from denizen.domain.agent import Agent, Limits
from denizen.domain.approval import Approval, ApprovalRule, Choice, Deciders, Reach
from denizen.domain.clock import SystemClock
from denizen.domain.conversation import Place
from denizen.domain.errors import NotAllowed
from denizen.domain.events import ApprovalRequested, TurnFinished
from denizen.domain.ids import AgentName
from denizen.domain.message import Author, Part, TextPart
from denizen.domain.principal import Principal, PrincipalKind, RoleName
from denizen.domain.turn import CallRecord, Inbound
from denizen.engine.consult import Consult
from denizen.engine.gate.decide import Judge
from denizen.engine.gate.door import Gate
from denizen.engine.gate.observer import Observer
from denizen.engine.gate.policy import GatePolicy, ObserverPolicy
from denizen.engine.live import Live
from denizen.engine.runtime import Generation, Runtime
from denizen.engine.services import Services
from denizen.engine.turn import Turns
from denizen.ports.toolset import Toolset
from denizen.testing.memory_durable import MemoryDurable, MemoryLog
from denizen.testing.scripted_model import ScriptedModel, ScriptedModels, ScriptedReply
from denizen.testing.temporary_store import TemporaryStore

AGENT = AgentName("ada")
HERE = Place("terminal", "home")
OWNER = Principal(PrincipalKind.WEB_USER, "olga", "Olga", frozenset({RoleName.OWNER}))
OBSERVER = "observer"
FOOLED = '{"decision": "approve", "reason": "it looks right"}'
"""What an observer says that falls for everything."""
STERN = '{"decision": "deny", "reason": "nobody asked for this"}'
NO_TIME_S = 0.001
"""How long people are waited for where there is nobody who could answer: the approval expires by itself."""

AskPeople = Callable[[Approval], Sequence[tuple[Principal, Choice]]]
"""Who says what to a call that waits, one after another. Whoever may not decide it is turned away."""

_LIMITS = Limits(max_steps=200, max_tools=200)


@dataclass(frozen=True, slots=True)
class Oversight:
    """Who looks at calls besides the rules. `observer` is what its model answers, one case after another and then
    always the last; empty where there is none. `word` None means that nobody is there.
    """

    observer: tuple[str, ...] = ()
    word: AskPeople | None = None

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
class BenchMessage:
    """A message."""

    text: str
    asker: Principal = OWNER
    place: Place = HERE
    parts: tuple[Part, ...] = ()
    new_session: bool = False
    shared: bool = False


@dataclass(frozen=True, slots=True)
class BenchTurn:
    """One turn: its calls with their verdicts, and what people were asked."""

    calls: Sequence[CallRecord]
    asked: Sequence[Approval]
    end: TurnFinished


@dataclass(slots=True)
class BenchEngine:
    """What is open."""

    turns: Turns
    store: TemporaryStore
    guard: Oversight
    runtime: Runtime
    gate: Gate
    _numbers: count[int] = field(default_factory=lambda: count(1))

    async def say(self, said: BenchMessage) -> BenchTurn:
        """One message and its turn, to the end."""
        reach = Reach.NOBODY if self.guard.word is None else Reach.WATCHER
        asker = said.asker
        inbound = Inbound(
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
        return BenchTurn(calls, asked, end)

    async def _decide(self, approval: Approval) -> None:
        for voter, choice in self.guard.word(approval) if self.guard.word else ():
            with suppress(NotAllowed):
                await self.turns.approvals.decide(approval.id, voter, choice)


@asynccontextmanager
async def open_bench_engine(
    model: ScriptedModel,
    toolsets: Sequence[Toolset],
    guard: Oversight,
    policy: GatePolicy | None = None,
    *,
    tools: tuple[str, ...] = ("*",),
) -> AsyncGenerator[BenchEngine]:
    """An engine of its own in memory. `tools` are those of its one agent."""
    clock, runtime, store, durable = SystemClock(), Runtime(), TemporaryStore(), MemoryDurable(MemoryLog())
    opinions = [ScriptedReply(text) for text in guard.observer]
    watcher = ScriptedModel(*opinions, name="bench/observer", otherwise=opinions[-1] if opinions else None)
    observer = Observer(store, clock, Consult(runtime, store, clock))
    gate = Gate(clock, Judge(clock, observer))
    services = Services(store, durable, Live(), gate, clock, observer=observer)
    turns = Turns(runtime, services)
    models = ScriptedModels({"balanced": model, OBSERVER: watcher})
    agents = {AGENT: Agent(AGENT, tools=tools, limits=_LIMITS)}
    await runtime.swap(Generation(1, agents, AGENT, models, tuple(toolsets), guard.policy(policy)))
    await durable.start()
    try:
        yield BenchEngine(turns, store, guard, runtime, gate)
    finally:
        await durable.aclose()
