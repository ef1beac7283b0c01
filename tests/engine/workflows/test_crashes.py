"""A process that dies at any moment of a run: the next one goes on, and does nothing twice."""

from __future__ import annotations

import anyio
import pytest

from denizen.domain.tool import ToolCall, ToolResult
from denizen.domain.turn import TurnStatus
from denizen.engine.workflows.catalog import RunOrder
from denizen.ports.toolset import CallScope
from denizen.testing.scripted_model import ScriptedReply
from tests.engine.crash_injector import CrashingModel, CrashingStore, CrashInjector
from tests.engine.engine_fixture import ToolsetFixture
from tests.engine.platform_fixture import World, open_platform
from tests.engine.workflows.workflow_fixture import OPERATOR, find_newest, make, open_workflows, outputs, paths
from tests.timing import poll

pytestmark = pytest.mark.anyio

FLOW = make(
    {
        "start": {"type": "manual", "then": "each"},
        "each": {"type": "for_each", "items": ["a", "b"], "each": "act", "collect": "{{act.text}}", "then": "pause"},
        "act": {"type": "call_tool", "tool": "write", "args": {"q": "{{item}}"}},
        "pause": {"type": "wait", "seconds": 60, "then": "ask"},
        "ask": {"type": "ask_model", "prompt": "Sum up {{each.items}}.", "then": ["say", "more"]},
        "more": {"type": "call_tool", "tool": "write", "args": {"q": "{{ask.text}}"}, "then": "say"},
        "say": {"type": "reply", "text": "{{ask.text}}, {{more.text}}"},
    }
)
NODES = ["start", "each[0]/act", "each[1]/act", "each", "pause", "ask", "more", "say"]


async def test_killed_at_any_node_a_run_goes_on_and_repeats_no_call_that_had_ended() -> None:
    at, is_through = 0, False
    while not is_through:
        at += 1
        is_through = await crash_at(at)
    assert at > 2 * len(NODES)


async def crash_at(number: int) -> bool:
    """Crashes at that operation and lets another process go on. True when the run ended without coming so far."""
    store = CrashingStore()
    store.injector = injector = CrashInjector(number)
    world, ended = World(store=store), list[str]()

    async def note(call: ToolCall, scope: CallScope) -> ToolResult:
        await injector.tick()
        ended.append(scope.options.idempotency_key)
        return ToolResult(f"wrote {call.args['q']}")

    def make_model() -> CrashingModel:
        model = CrashingModel(otherwise=ScriptedReply("all"))
        model.injector = injector
        return model

    tools, order = ToolsetFixture(run=note), RunOrder(key="once", by=OPERATOR)

    async def look() -> bool:
        return injector.crashed.is_set() or await _is_over(store)

    async with (
        open_platform(world, make_model(), tools=tools, workflows=FLOW, connect=False) as server,
        anyio.create_task_group() as group,
    ):
        group.start_soon(open_workflows(server).start, "flow", {}, order)
        await poll(look)
        group.cancel_scope.cancel()
    is_through = not injector.crashed.is_set()
    injector.at, injector.count = 0, 0
    async with open_platform(world, make_model(), tools=tools, workflows=FLOW, connect=False) as server:
        await server.turns.resume()
        turn = await open_workflows(server).start("flow", {}, order)
        found = await find_newest(server) if turn.status.is_final else None
        if found is None:
            async for _ in server.turns.watch(turn.id):
                pass
            found = await find_newest(server)
        assert found.status is TurnStatus.DONE, number
        assert paths(found) == NODES, number
        assert found.reply == "all, wrote all"
        assert outputs(found)["each"]["items"] == ["wrote a", "wrote b"]
    # A call may run again when its process died before its end was known; then its key is the same.
    assert len(set(ended)) == 3, number
    assert len(ended) <= 4, number
    return is_through


async def _is_over(store: CrashingStore) -> bool:
    async with store.work(write=False) as work:
        turns = await work.turns.list_turns()
    return bool(turns) and all(each.status.is_final for each in turns)
