"""Calls that skills make: the same gate, the strictest tier on the way, five deep, each with a key of its own."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest

from denizen.domain.clock import SystemClock
from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName, CallId, SessionId, TurnId
from denizen.domain.json import JsonObject
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.tool import Tier, ToolCall, ToolResult, ToolSpec
from denizen.domain.verdict import Decision
from denizen.engine.configuration.generation import Runtime
from denizen.engine.configuration.tool_policy import GatePolicy, ToolRule
from denizen.engine.gate.executor import BoundTool, CallOutcome, ToolExecutor
from denizen.engine.tools.toolbox import NestedCalls
from denizen.ports.toolset import CallOptions, CallScope
from denizen.testing.scripted_model import ScriptedModel
from tests.engine.engine_fixture import ToolsetFixture, generation

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"], "additionalProperties": False}
SCOPE = CallScope(
    agent=AgentName("ada"),
    principal=Principal(PrincipalKind.LOCAL, "ana", "Ana"),
    place=Place("terminal", "t"),
    session_id=SessionId("s"),
    turn_id=TurnId("t"),
    options=CallOptions(idempotency_key="call_outer"),
)


def spec(name: str, tier: Tier) -> ToolSpec:
    return ToolSpec(name, "", SCHEMA, tier=tier)


@dataclass
class NestedToolset:
    """A toolset whose tools call others as a test says: `(tool, args)` pairs by name."""

    calls: dict[str, list[tuple[str, JsonObject]]] = field(default_factory=dict)
    tools: ToolsetFixture = field(default_factory=ToolsetFixture)
    results: list[ToolResult] = field(default_factory=list)


@asynccontextmanager
async def open_nested(
    policy: GatePolicy | None = None, **calls: list[tuple[str, JsonObject]]
) -> AsyncGenerator[tuple[NestedToolset, ToolExecutor]]:
    toolset, runtime, gate = NestedToolset(calls), Runtime(), ToolExecutor(SystemClock())
    call_tool = NestedCalls(runtime, gate)

    async def run(call: ToolCall, scope: CallScope) -> ToolResult:
        for tool, args in toolset.calls.get(call.tool, []):
            toolset.results.append(await call_tool(scope, tool, args))
        return ToolResult(f"{call.tool} ran")

    toolset.tools.run = run
    toolset.tools.specs = [
        spec("harmless", Tier.HARMLESS),
        spec("limited", Tier.LIMITED),
        spec("sensitive", Tier.SENSITIVE),
        spec("dangerous", Tier.DANGEROUS),
    ]
    await runtime.swap(generation(ScriptedModel(), toolset.tools, policy=policy))
    yield toolset, gate
    await runtime.aclose()


async def start(
    toolset: NestedToolset, gate: ToolExecutor, tool: str, policy: GatePolicy | None = None, scope: CallScope = SCOPE
) -> CallOutcome:
    found = next(each for each in toolset.tools.specs if each.name == tool)
    call = ToolCall(CallId("1"), tool, {"q": "x"})
    return await gate.run(BoundTool(found, toolset.tools), call, scope, policy or GatePolicy())


@pytest.mark.proves("VW1")
async def test_a_harmless_tool_reaches_no_dangerous_one() -> None:
    async with open_nested(harmless=[("dangerous", {"q": "x"}), ("sensitive", {"q": "x"})]) as (toolset, gate):
        assert (await start(toolset, gate, "harmless")).verdict.decision is Decision.APPROVE
    assert [call.tool for call in toolset.tools.calls] == ["harmless"]
    assert all(result.is_error and result.text.startswith("Denied") for result in toolset.results)


@pytest.mark.proves("VW1")
async def test_what_a_sensitive_tool_calls_is_as_sensitive_as_itself() -> None:
    policy = GatePolicy(rules=(ToolRule("sensitive", Decision.APPROVE),))
    async with open_nested(policy, sensitive=[("harmless", {"q": "x"})]) as (toolset, gate):
        assert (await start(toolset, gate, "sensitive", policy)).verdict.decision is Decision.APPROVE
    assert [call.tool for call in toolset.tools.calls] == ["sensitive"]


@pytest.mark.proves("VW1")
async def test_the_configured_tier_of_a_tool_counts_for_what_it_calls() -> None:
    policy = GatePolicy(rules=(ToolRule("harmless", Decision.APPROVE),), tiers=(("harmless", Tier.SENSITIVE),))
    async with open_nested(policy, harmless=[("limited", {"q": "x"})]) as (toolset, gate):
        assert (await start(toolset, gate, "harmless", policy)).verdict.decision is Decision.APPROVE
    assert [call.tool for call in toolset.tools.calls] == ["harmless"]


@pytest.mark.proves("VW1")
@pytest.mark.parametrize("chain", [("sensitive", "harmless"), ("harmless", "sensitive"), ("gone",), ("harmless",)])
async def test_the_strictest_of_all_on_the_way_counts_wherever_it_stands(chain: tuple[str, ...]) -> None:
    async with open_nested(harmless=[("limited", {"q": "x"})]) as (toolset, gate):
        await start(toolset, gate, "harmless", scope=replace(SCOPE, chain=chain))
    assert [result.is_error for result in toolset.results] == [chain != ("harmless",)]


@pytest.mark.proves("V23")
async def test_a_tool_that_calls_itself_is_stopped() -> None:
    async with open_nested(harmless=[("harmless", {"q": "x"})]) as (toolset, gate):
        await start(toolset, gate, "harmless")
    assert len(toolset.tools.calls) == 6
    deepest, *others = toolset.results
    assert deepest.is_error and "5 deep" in deepest.text
    assert not any(result.is_error for result in others)


async def test_a_tool_of_the_chain_that_has_vanished_counts_as_dangerous() -> None:
    async with open_nested(harmless=[("limited", {"q": "x"})]) as (toolset, gate):
        await start(toolset, gate, "harmless", scope=replace(SCOPE, chain=("gone",)))
    assert [call.tool for call in toolset.tools.calls] == ["harmless"]


async def test_wrong_arguments_and_unknown_tools_come_back_as_words() -> None:
    async with open_nested(harmless=[("limited", {}), ("limited", {"q": 5}), ("fly", {"q": "x"})]) as (toolset, gate):
        await start(toolset, gate, "harmless")
    assert [result.is_error for result in toolset.results] == [True, True, True]
    assert [call.tool for call in toolset.tools.calls] == ["harmless"]


async def test_two_things_that_one_call_does_have_two_keys_which_a_repetition_has_again() -> None:
    """A tool does its work once for each key: with the outer one, the second note would count as written already."""
    keys: list[list[str]] = []
    for _ in range(2):
        async with open_nested(harmless=[("limited", {"q": "one"}), ("limited", {"q": "two"})]) as (toolset, gate):
            await start(toolset, gate, "harmless")
        keys.append(toolset.tools.keys)
    assert len(set(keys[0])) == 3
    assert keys[0] == keys[1]
    async with open_nested(harmless=[("limited", {"q": "one"})]) as (toolset, gate):
        await start(toolset, gate, "harmless", scope=replace(SCOPE, options=CallOptions()))
    assert toolset.tools.keys == ["", ""]
