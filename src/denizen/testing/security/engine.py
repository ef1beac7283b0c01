"""The engine of the security bench: real turns, with a scripted model, the tools of a case, and people to ask.

Nothing of the gate is replaced: each call passes it, and verdicts and approvals are recorded in a store. The observer
is real too; only its model is a script. Used by `agentdojo_bench` and `corpus`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count

from denizen.domain.agent import Agent, ToolAccess, TurnLimits
from denizen.domain.approval import Approval, ApprovalChoice, ApprovalRule, AskerReach, Deciders
from denizen.domain.clock import SystemClock
from denizen.domain.conversation import Place
from denizen.domain.errors import NotAllowed
from denizen.domain.events import ApprovalRequested, TurnFinished
from denizen.domain.ids import AgentName
from denizen.domain.message import Author, Part, TextPart
from denizen.domain.principal import Principal, PrincipalKind, RoleName
from denizen.domain.turn import CallRecord, Sender, SessionChoice, TurnRequest
from denizen.engine.budget.side_completion import BilledCompletion
from denizen.engine.configuration.generation import Generation, Runtime
from denizen.engine.configuration.tool_policy import GatePolicy, ObserverPolicy
from denizen.engine.gate.executor import ToolExecutor
from denizen.engine.gate.observer import Observer
from denizen.engine.loop.services import build_services
from denizen.engine.turn import TurnRunner
from denizen.ports.toolset import Toolset
from denizen.testing.memory_durable import MemoryDurable, MemoryLog
from denizen.testing.scripted_model import ScriptedModel, ScriptedModels, ScriptedReply
from denizen.testing.temporary_store import TemporaryStore

AGENT = AgentName("ada")
HERE = Place("terminal", "home")
OWNER = Principal(PrincipalKind.WEB_USER, "olga", "Olga", frozenset({RoleName.OWNER}))
OBSERVER = "observer"
FOOLED = '{"decision": "approve", "reason": "it looks right"}'
"""The verdict of an observer that approves everything."""
STERN = '{"decision": "deny", "reason": "nobody asked for this"}'
NO_TIME_S = 0.001
"""The timeout of approvals where nobody is there to answer. Short, since thousands of them expire in one bench."""

AskPeople = Callable[[Approval], Sequence[tuple[Principal, ApprovalChoice]]]
"""Returns the votes on a call that waits, in order. A vote of somebody who may not decide is refused and ignored."""

_LIMITS = TurnLimits(max_steps=200, max_tools=200)


@dataclass(frozen=True, slots=True)
class Oversight:
    """The observer and the people who look at calls besides the rules.

    `observer` has the replies of the observer's model in order; the last is repeated, and an empty tuple means that
    there is no observer. `word` gives the votes of people; None means that nobody is there.
    """

    observer: tuple[str, ...] = ()
    word: AskPeople | None = None

    def policy(self, base: GatePolicy | None = None) -> GatePolicy:
        """Returns the given policy, or the default one, with this observer and these people."""
        base = base or GatePolicy()
        observer = ObserverPolicy(OBSERVER) if self.observer else ObserverPolicy()
        if self.word is not None:
            return replace(base, observer=observer)
        approval = replace(base.approval, timeout_s=NO_TIME_S)
        owners = ApprovalRule(Deciders.ROLE, RoleName.OWNER, timeout_s=NO_TIME_S)
        return replace(base, observer=observer, approval=approval, owners=owners)


@dataclass(frozen=True, slots=True)
class BenchMessage:
    """A message of a user to the agent."""

    text: str
    asker: Principal = OWNER
    place: Place = HERE
    parts: tuple[Part, ...] = ()
    new_session: bool = False
    shared: bool = False


@dataclass(frozen=True, slots=True)
class BenchTurn:
    """A finished turn: its calls with their verdicts, and the approvals that people were asked for."""

    calls: Sequence[CallRecord]
    asked: Sequence[Approval]
    end: TurnFinished


@dataclass(slots=True)
class BenchEngine:
    """A running engine with one agent."""

    turns: TurnRunner
    store: TemporaryStore
    guard: Oversight
    runtime: Runtime
    gate: ToolExecutor
    _numbers: count[int] = field(default_factory=lambda: count(1))

    async def say(self, said: BenchMessage) -> BenchTurn:
        """Sends one message and waits until its turn has ended."""
        reach = AskerReach.NOBODY if self.guard.word is None else AskerReach.WATCHER
        asker = said.asker
        request = TurnRequest(
            agent=AGENT,
            place=said.place,
            sender=Sender(Author(asker.id, asker.name), asker, reach),
            parts=(TextPart(said.text), *said.parts),
            platform_id=f"m{next(self._numbers)}",
            shared=said.shared,
            session=SessionChoice(is_new=said.new_session),
        )
        asked: list[Approval] = []
        end: TurnFinished | None = None
        async with aclosing(self.turns.stream(request)) as events:
            async for event in events:
                if isinstance(event, ApprovalRequested):
                    asked.append(event.approval)
                    for voter, choice in self.guard.word(event.approval) if self.guard.word else ():
                        with suppress(NotAllowed):
                            await self.turns.approvals.decide(event.approval.id, voter, choice)
                elif isinstance(event, TurnFinished):
                    end = event
        if end is None:
            raise AssertionError("a stream of events ends with TurnFinished")
        async with self.store.work(write=False) as work:
            calls = await work.turns.list_calls(end.turn_id)
        return BenchTurn(calls, asked, end)


@asynccontextmanager
async def open_bench_engine(
    model: ScriptedModel,
    toolsets: Sequence[Toolset],
    guard: Oversight,
    policy: GatePolicy | None = None,
    *,
    tools: tuple[str, ...] = ("*",),
) -> AsyncGenerator[BenchEngine]:
    """Opens an engine with a store and a durable log of its own. `tools` are the patterns of its agent's tools."""
    clock, runtime, store, durable = SystemClock(), Runtime(), TemporaryStore(), MemoryDurable(MemoryLog())
    opinions = [ScriptedReply(text) for text in guard.observer]
    watcher = ScriptedModel(*opinions, name="bench/observer", otherwise=opinions[-1] if opinions else None)
    observer = Observer(store, clock, BilledCompletion(runtime, store, clock))
    services = build_services(runtime, store, durable, clock, observer=observer)
    turns = TurnRunner(runtime, services)
    models = ScriptedModels({"balanced": model, OBSERVER: watcher})
    agents = {AGENT: Agent(AGENT, tool_access=ToolAccess(tools=tools), limits=_LIMITS)}
    await runtime.swap(
        Generation(
            number=1,
            agents=agents,
            default_agent=AGENT,
            models=models,
            toolsets=tuple(toolsets),
            policy=guard.policy(policy),
        )
    )
    await durable.start()
    try:
        yield BenchEngine(turns, store, guard, runtime, services.gate)
    finally:
        await durable.aclose()
        await store.aclose()  # a bench opens thousands of stores
