"""Dry runs: what a run would do is told, and nothing is done."""

from __future__ import annotations

from dataclasses import replace

import pytest

from denizen.domain.tool import Tier
from denizen.ports.workflows import RunSearch
from tests.engine.engine_fixture import LOOK, WRITE, ToolsetFixture
from tests.engine.platform_fixture import World, open_platform
from tests.engine.workflows.workflow_fixture import OPERATOR, make, open_workflows

pytestmark = pytest.mark.anyio


async def test_a_dry_run_tells_the_effects_and_the_gate_and_does_nothing() -> None:
    world = World()
    flow = make(
        {
            "on": {"type": "on_event", "on": "site.*", "then": ["each", "read"]},
            "each": {"type": "for_each", "items": "{{event.names}}", "each": "check", "then": "post"},
            "check": {"type": "if", "test": {"value": "{{item}}", "equals": "b"}, "then": "act"},
            "act": {"type": "call_tool", "tool": "write", "args": {"q": "{{item}}"}},
            "post": {"type": "send_message", "channel": world.general.id, "text": "{{each.count}} done"},
            "read": {"type": "call_tool", "tool": "look", "args": {"q": "x"}, "then": "decide"},
            "decide": {"type": "if", "test": {"value": "{{read.text}}", "contains": "y"}, "then": "yes", "else": "no"},
            "yes": {"type": "reply", "text": "yes"},
            "no": {"type": "wait", "seconds": 60},
        }
    )
    tools = ToolsetFixture(specs=[LOOK, replace(WRITE, tier=Tier.SENSITIVE)])
    async with open_platform(world, tools=tools, workflows=flow) as server:
        planned = await open_workflows(server).plan("flow", {"names": ["a", "b"]}, OPERATOR)
        found = {each.path: each for each in planned}
        assert "each[0]/act" not in found
        act = found["each[1]/act"]
        assert act.effect == 'calls write with {"q": "b"}' and act.gate.startswith("people")
        assert "2 done" in found["post"].effect and found["post"].is_sure
        assert not found["decide"].is_sure
        assert (found["yes"].effect, found["no"].effect) == ("reply: yes", "waits 60.0 s")
        assert found["yes"].outputs == {"text": "yes"}
        assert server.tools.calls == [] and server.ada.sent == [] and world.clock.sleeps == []
        assert await open_workflows(server).list_runs(RunSearch()) == []
