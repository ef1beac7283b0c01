"""Results that answer the same call again: which, for whom, how long, and never around the gate."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName, CallId, SessionId, TurnId
from denizen.domain.json import JsonObject
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.tool import CacheScope, Taint, Tier, ToolCall, ToolResult, ToolSpec
from denizen.domain.verdict import Decision
from denizen.engine.configuration.tool_policy import GatePolicy, ResultPolicy, ToolRule
from denizen.engine.gate.executor import BoundTool, ToolExecutor
from denizen.ports.toolset import CallScope
from denizen.skill import Skill, SkillToolset, ToolContext
from tests.clock import ManualClock
from tests.skill_fixture import ServicesFixture

pytestmark = pytest.mark.anyio

ANA, BO = (Principal(PrincipalKind.LOCAL, name, name) for name in ("ana", "bo"))
SCOPE = CallScope(
    agent=AgentName("a"), principal=ANA, place=Place("terminal", "t"), session_id=SessionId("s"), turn_id=TurnId("t")
)
LOOK = ToolSpec(
    "look", "", {"type": "object"}, tier=Tier.HARMLESS, read_only=True, idempotent=True, cache=CacheScope.ASKER
)
WRITE = replace(LOOK, name="write", read_only=False, cache=CacheScope.NONE)


@dataclass
class CountingToolset:
    """A toolset whose every answer is another one."""

    is_failing: bool = False
    reads: Taint | None = None
    calls: list[str] = field(default_factory=list)
    name: str = "counter"

    async def list_tools(self) -> Sequence[ToolSpec]:
        return [LOOK, WRITE]

    async def call(self, call: ToolCall, scope: CallScope) -> ToolResult:
        self.calls.append(call.tool)
        if self.reads:
            scope.trail.taint |= {self.reads}
        return ToolResult(f"answer {len(self.calls)}", is_error=self.is_failing)

    async def aclose(self) -> None: ...


@dataclass
class GateWithToolset:
    """The gate with one toolset behind it."""

    tools: CountingToolset = field(default_factory=CountingToolset)
    clock: ManualClock = field(default_factory=ManualClock)
    policy: GatePolicy = field(default_factory=GatePolicy)

    def __post_init__(self) -> None:
        self.gate = ToolExecutor(self.clock)

    async def ask(self, spec: ToolSpec = LOOK, scope: CallScope = SCOPE, **args: str) -> str:
        values: JsonObject = {**args}
        call = ToolCall(CallId("c"), spec.name, values)
        return (await self.gate.run(BoundTool(spec, self.tools), call, scope, self.policy)).result.text


@pytest.mark.proves("L-result-cache", "LW2", "L-config-cache-ttl")
async def test_the_same_call_is_answered_from_what_is_kept_until_its_time_is_over():
    fixture = GateWithToolset()
    assert [await fixture.ask(q=each) for each in ("x", "y", "x")] == ["answer 1", "answer 2", "answer 1"]
    assert await fixture.ask(replace(LOOK, name="find"), q="x") == "answer 3", "another tool"
    fixture.clock.advance(30 * 60 - 1)
    assert await fixture.ask(q="x") == "answer 1"
    fixture.clock.advance(1)
    assert await fixture.ask(q="x") == "answer 4"


@pytest.mark.proves("L-config-cache-ttl")
async def test_the_time_is_a_setting_and_none_keeps_nothing():
    fixture = GateWithToolset(policy=GatePolicy(results=ResultPolicy(keep_s=7200)))
    await fixture.ask()
    fixture.clock.advance(7199)
    assert await fixture.ask() == "answer 1"
    fixture.clock.advance(1)
    assert await fixture.ask() == "answer 2"
    fixture.policy = GatePolicy(results=ResultPolicy(keep_s=0))
    assert [await fixture.ask(), await fixture.ask()] == ["answer 3", "answer 4"]


@pytest.mark.proves("L-result-cache")
async def test_what_is_too_old_is_swept_every_five_minutes_whatever_is_called():
    fixture = GateWithToolset(policy=GatePolicy(results=ResultPolicy(keep_s=100)))
    await fixture.ask(q="x")
    await fixture.ask(q="y")
    fixture.clock.advance(5 * 60 - 1)
    await fixture.ask(replace(LOOK, cache=CacheScope.NONE))
    assert len(fixture.gate._kept) == 2
    fixture.clock.advance(1)
    await fixture.ask(replace(LOOK, cache=CacheScope.NONE))
    assert len(fixture.gate._kept) == 0


async def test_tools_that_are_not_declared_for_it_answer_anew():
    fixture = GateWithToolset()
    spec = replace(LOOK, cache=CacheScope.NONE)
    assert [await fixture.ask(spec), await fixture.ask(spec)] == ["answer 1", "answer 2"]


@pytest.mark.proves("VW4", "L-result-cache")
async def test_a_tool_acts_again_unless_it_only_reads_and_a_repeat_is_said_to_do_no_harm(tmp_path: Path):
    done: list[str] = []
    skill = Skill("notices", description="Pins notices, and reads them.")

    @skill.tool(tier=Tier.HARMLESS, idempotent=True)
    async def pin(context: ToolContext) -> str:
        """Pins it."""
        done.append("pin")
        return f"pinned {len(done)}"

    @skill.tool(tier=Tier.HARMLESS, idempotent=True, read_only=True)
    async def read(context: ToolContext) -> str:
        """Reads it."""
        done.append("read")
        return f"read {len(done)}"

    @skill.tool(tier=Tier.HARMLESS, read_only=True)
    async def count(context: ToolContext) -> str:
        """Counts what was done, which is another number each time."""
        done.append("count")
        return f"counted {len(done)}"

    toolset = SkillToolset(skill, ServicesFixture(tmp_path).services())
    gate = ToolExecutor(ManualClock())
    told: list[str] = []
    for name in ("pin", "pin", "read", "read", "count", "count"):
        [spec] = [each for each in await toolset.list_tools() if each.name == name]
        asked = ToolCall(CallId("c"), name, {})
        told.append((await gate.run(BoundTool(spec, toolset), asked, SCOPE, GatePolicy())).result.text)
    assert told == ["pinned 1", "pinned 2", "read 3", "read 3", "counted 4", "counted 5"]
    assert done == ["pin", "pin", "read", "count", "count"]


async def test_errors_are_not_kept():
    fixture = GateWithToolset(CountingToolset(is_failing=True))
    assert [await fixture.ask(), await fixture.ask()] == ["answer 1", "answer 2"]


async def test_another_person_room_or_agent_gets_an_answer_of_its_own():
    fixture = GateWithToolset()
    others = [
        replace(SCOPE, principal=BO),
        replace(SCOPE, place=Place("terminal", "elsewhere")),
        replace(SCOPE, agent=AgentName("b")),
    ]
    assert [await fixture.ask(scope=scope) for scope in (SCOPE, *others, SCOPE)] == [
        "answer 1",
        "answer 2",
        "answer 3",
        "answer 4",
        "answer 1",
    ]


async def test_a_tool_that_says_that_all_get_the_same_answers_others_too_but_only_whom_the_gate_lets():
    fixture = GateWithToolset()
    shared = replace(LOOK, cache=CacheScope.EVERYONE)
    bo = replace(SCOPE, principal=BO)
    assert [await fixture.ask(shared), await fixture.ask(shared, bo)] == ["answer 1", "answer 1"]
    fixture.policy = GatePolicy(
        rules=(ToolRule("look", Decision.DENY, principals=frozenset({BO.key}), reason="not for Bo"),)
    )
    assert [await fixture.ask(shared), await fixture.ask(shared, bo)] == ["answer 1", "Denied: not for Bo."]


@pytest.mark.proves("V10", "L-result-cache")
async def test_after_something_was_done_through_a_toolset_or_in_the_conversation_it_is_asked_anew():
    fixture, other = GateWithToolset(), CountingToolset()
    shared, elsewhere = replace(LOOK, cache=CacheScope.EVERYONE), replace(SCOPE, place=Place("terminal", "elsewhere"))
    kept = [await fixture.ask(shared)]
    await fixture.ask(WRITE)
    kept.append(await fixture.ask(shared))
    fixture.tools, mine = other, fixture.tools
    await fixture.ask(WRITE)
    await fixture.ask(WRITE, elsewhere)
    fixture.tools = mine
    kept += [await fixture.ask(shared), await fixture.ask(shared, elsewhere)]
    fixture.tools = other
    await fixture.ask(WRITE, elsewhere)
    fixture.tools = mine
    kept.append(await fixture.ask(shared))
    assert kept == ["answer 1", "answer 3", "answer 4", "answer 4", "answer 5"]


async def test_a_toolset_that_was_made_anew_answers_itself():
    fixture = GateWithToolset()
    await fixture.ask()
    fixture.tools = CountingToolset()
    assert await fixture.ask() == "answer 1"
    assert fixture.tools.calls == ["look"]


async def test_an_answer_that_brought_foreign_text_along_is_not_kept():
    fixture = GateWithToolset(CountingToolset(reads=Taint.WEB))
    fresh = [replace(SCOPE, trail=type(SCOPE.trail)()) for _ in range(2)]
    assert [await fixture.ask(scope=scope) for scope in fresh] == ["answer 1", "answer 2"]
