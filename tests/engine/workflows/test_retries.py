"""Nodes that are tried again: with the same key, and without repeating what is done."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from denizen.domain.agent import Agent, ToolAccess
from denizen.domain.errors import NotAllowed
from denizen.domain.ids import AgentName
from denizen.domain.rate_limit import RateLimit
from denizen.domain.tool import ToolCall, ToolResult
from denizen.domain.turn import TurnStatus
from denizen.domain.verdict import Decision
from denizen.domain.workflow_run import NodeStatus
from denizen.engine.configuration.tool_policy import GatePolicy, RateLimits, ToolRule
from denizen.ports.toolset import CallScope
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from tests.engine.engine_fixture import LOOK, WRITE, ToolsetFixture
from tests.engine.platform_fixture import ADA, World, open_platform
from tests.engine.workflows.workflow_fixture import make, node, run

pytestmark = pytest.mark.anyio

BOB = AgentName("bob")
KEYED = replace(WRITE, name="post", idempotent=True)
ACT = {"type": "call_tool", "tool": "post", "args": {"q": "{{item}}"}}


class Flaky:
    """Tools that fail at these arguments so often."""

    def __init__(self, **failures: int) -> None:
        self.failures = Counter(failures)
        self.tools = ToolsetFixture(specs=[LOOK, WRITE, KEYED], run=self.run)

    async def run(self, call: ToolCall, scope: CallScope) -> ToolResult:
        asked = str(call.args["q"])
        if self.failures[asked]:
            self.failures[asked] -= 1
            return ToolResult(f"{asked} is broken.", is_error=True)
        return ToolResult(f"did {asked}")

    @property
    def asked(self) -> list[str]:
        return [str(each.args["q"]) for each in self.tools.calls]

    @property
    def keys(self) -> list[str]:
        return self.tools.keys


async def test_a_loop_that_is_tried_again_goes_on_where_it_failed() -> None:
    loop = {"type": "for_each", "items": ["a", "b", "c"], "each": "act", "retry": 1, "collect": "{{act.text}}"}
    flow = make(
        {
            "start": {"type": "manual", "then": "each"},
            "each": {**loop, "then": "say"},
            "act": {**ACT, "then": "told"},
            "told": {"type": "reply", "text": "{{item}}"},
            "say": {"type": "reply", "text": "{{each.items}}"},
        }
    )
    flaky = Flaky(b=1)
    async with open_platform(tools=flaky.tools, workflows=flow) as server:
        found = await run(server)
    assert found.status is TurnStatus.DONE
    assert flaky.asked == ["a", "b", "b", "c"]
    assert flaky.keys[1] == flaky.keys[2] and len(set(flaky.keys)) == 3
    assert found.reply == 'a\n\nb\n\nc\n\n["did a", "did b", "did c"]'
    assert (node(found, "each[1]/act").status, node(found, "each").status) == (NodeStatus.DONE, NodeStatus.DONE)


async def test_a_workflow_within_that_is_tried_again_goes_on_where_it_failed() -> None:
    outer = make(
        {
            "start": {"type": "manual", "then": "act"},
            "act": {"type": "sub_workflow", "workflow": "inner", "retry": 2, "then": "say"},
            "say": {"type": "reply", "text": "{{act.reply}}"},
        }
    )
    inner = make(
        {
            "start": {"type": "manual", "then": "one"},
            "one": {**ACT, "args": {"q": "a"}, "then": "told"},
            "told": {"type": "reply", "text": "{{one.text}}", "then": "two"},
            "two": {**ACT, "args": {"q": "b"}, "retry": 1, "then": "end"},
            "end": {"type": "stop", "text": "{{two.text}}"},
        },
        "inner",
    )
    flaky = Flaky(b=3)
    async with open_platform(tools=flaky.tools, workflows=outer | inner) as server:
        found = await run(server)
    assert flaky.asked == ["a", "b", "b", "b", "b"]
    assert len(set(flaky.keys)) == 2
    assert found.reply == "did a\n\ndid b"


@pytest.mark.parametrize(("tool", "tries"), [("look", 2), ("post", 2), ("write", 1)])
async def test_only_a_call_that_does_no_harm_twice_is_made_again(tool: str, tries: int) -> None:
    nodes: dict[str, Any] = {
        "start": {"type": "manual", "then": "act"},
        "act": {"type": "call_tool", "tool": tool, "args": {"q": "a"}, "retry": 1},
    }
    flaky = Flaky(a=9)
    async with open_platform(tools=flaky.tools, workflows=make(nodes)) as server:
        found = await run(server)
    assert flaky.asked == ["a"] * tries
    assert len(set(flaky.keys)) == 1
    assert ("may have acted" in node(found, "act").error) == (tries == 1)


@pytest.mark.parametrize("retry", [0, 1])
@pytest.mark.parametrize(("tool", "tries"), [("post", 2), ("write", 1)])
async def test_a_loop_that_is_tried_again_repeats_only_calls_that_do_no_harm_twice(
    tool: str, tries: int, retry: int
) -> None:
    flow = make(
        {
            "start": {"type": "manual", "then": "outer"},
            "outer": {"type": "for_each", "items": ["b"], "each": "each", "retry": 1},
            "each": {"type": "for_each", "items": ["a"], "each": "act"},
            "act": {**ACT, "tool": tool, "retry": retry},
        }
    )
    flaky = Flaky(a=9)
    async with open_platform(tools=flaky.tools, workflows=flow) as server:
        found = await run(server)
    assert flaky.asked == ["a"] * (1 if tries == 1 else tries * (1 + retry))
    assert ("may have acted" in found.failure) == (tries == 1)


async def test_a_loop_that_is_tried_again_does_not_repeat_what_the_gate_denied() -> None:
    flow = make(
        {
            "start": {"type": "manual", "then": "each"},
            "each": {"type": "for_each", "items": ["a", "b"], "each": "act", "retry": 3},
            "act": ACT,
        }
    )
    flaky, world = Flaky(), World()
    began_at = world.clock.now()
    gate = GatePolicy(rules=(ToolRule("post", Decision.DENY, {"q": "b"}),))
    async with open_platform(world, tools=flaky.tools, gate=gate, workflows=flow) as server:
        found = await run(server)
    assert flaky.asked == ["a"] and "Denied" in found.failure
    assert world.clock.now() == began_at, "nothing was waited for"


@pytest.mark.parametrize(("window_s", "status"), [(60.0, TurnStatus.DONE), (7200.0, TurnStatus.FAILED)])
async def test_a_call_that_came_too_often_waits_until_the_limit_allows_it(window_s: float, status: TurnStatus) -> None:
    nodes: dict[str, Any] = {
        "start": {"type": "manual", "then": "one"},
        "one": {"type": "call_tool", "tool": "write", "args": {"q": "a"}, "then": ["two", "three"]},
        "two": {"type": "call_tool", "tool": "write", "args": {"q": "b"}},
        "three": {"type": "call_tool", "tool": "write", "args": {"q": "c"}},
    }
    flaky, world = Flaky(), World()
    gate = GatePolicy(rate_limits=RateLimits(by_tool=(("write", (RateLimit(calls=1, window_s=window_s),)),)))
    async with open_platform(world, tools=flaky.tools, gate=gate, workflows=make(nodes)) as server:
        began_at = world.clock.now()
        found = await run(server)
        waited_s = (world.clock.now() - began_at).total_seconds()
    assert found.status is status
    if status is TurnStatus.DONE:
        assert sorted(flaky.asked) == ["a", "b", "c"] and 119 <= waited_s <= 123
    else:
        assert flaky.asked == ["a"] and "gate.rate_limits.tool" in node(found, "two").error and waited_s == 0


async def test_an_agent_that_failed_is_asked_in_a_further_turn() -> None:
    agents = {ADA: Agent(ADA, tool_access=ToolAccess(delegates_to=(BOB,))), BOB: Agent(BOB)}
    flow = make(
        {
            "start": {"type": "manual", "then": "act"},
            "act": {"type": "ask_agent", "agent": BOB, "task": "Count.", "retry": 1, "then": "say"},
            "say": {"type": "reply", "text": "{{act.text}}"},
        }
    )
    model = ScriptedModel(NotAllowed("The model refuses."), ScriptedReply("Three."))
    async with open_platform(model=model, agents=agents, workflows=flow, connect=False) as server:
        found = await run(server)
    assert (found.status, found.reply) == (TurnStatus.DONE, "Three.")


async def test_a_workflow_within_that_says_it_failed_is_not_tried_again() -> None:
    outer = make(
        {"start": {"type": "manual", "then": "act"}, "act": {"type": "sub_workflow", "workflow": "inner", "retry": 3}}
    )
    inner = make(
        {
            "start": {"type": "manual", "then": "one"},
            "one": {**ACT, "args": {"q": "a"}, "then": "end"},
            "end": {"type": "stop", "result": "failed", "text": "Enough."},
        },
        "inner",
    )
    flaky = Flaky()
    async with open_platform(tools=flaky.tools, workflows=outer | inner) as server:
        found = await run(server)
    assert "Enough." in found.failure
    assert flaky.asked == ["a"]
