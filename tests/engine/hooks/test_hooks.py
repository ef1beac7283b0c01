"""Hooks around turns: what runs, with what, in whose name, and what a turn makes of it."""

from collections.abc import Sequence

import pytest

from denizen.domain.agent import Agent, ToolAccess
from denizen.domain.hook import Hook, Hooks
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.turn import CallRecord, TurnStatus
from denizen.engine.hooks.runner import hook_run_id
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from tests.engine.engine_fixture import NAME, EngineFixture, ToolsetFixture, open_engine

pytestmark = pytest.mark.anyio

DIGEST = Principal(PrincipalKind.SCHEDULE, "digest", "digest")


def hook(text: str, skip_if: str = "", *, tool: str = "look") -> Hook:
    return Hook(tool, {"q": text}, skip_if)


def hooked(*before: Hook, after: Sequence[Hook] = ()) -> Agent:
    """An agent with hooks, and with no tools of its own."""
    return Agent(NAME, hooks=Hooks(before, tuple(after)), tool_access=ToolAccess(tools=()))


async def finish(engine: EngineFixture, turn_id: str) -> None:
    """Waits for the hooks after a turn."""
    await engine.durable.wait(hook_run_id(turn_id))


async def calls_of(engine: EngineFixture, turn_id: str) -> Sequence[CallRecord]:
    async with engine.store.work(write=False) as work:
        return await work.turns.list_calls(turn_id)


def asked(tools: ToolsetFixture) -> list[object]:
    return [each.args["q"] for each in tools.calls]


@pytest.mark.proves("T20", "T21")
async def test_hooks_run_in_order_around_a_turn_with_tools_that_the_agent_has_not() -> None:
    model, tools = ScriptedModel(ScriptedReply("yes")), ToolsetFixture()
    agent = hooked(hook("one"), hook("two"), after=[hook("three"), hook("four", tool="write")])
    async with open_engine(model, tools, agent=agent) as engine:
        done = await engine.say("hello")
        await finish(engine, done.turn_id)

    assert (done.status, done.reply) == (TurnStatus.DONE, "yes")
    assert asked(tools) == ["one", "two", "three", "four"]
    assert model.requests[0].tools == ()
