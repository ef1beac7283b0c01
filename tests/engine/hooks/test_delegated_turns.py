"""The hooks of an agent that was given a task by another one."""

from dataclasses import replace

import anyio
import pytest

from denizen.domain.agent import Agent
from denizen.domain.hook import Hook, Hooks
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.prompt import PromptMessage
from denizen.domain.turn import TurnStatus
from denizen.domain.verdict import Decision
from denizen.engine.configuration.tool_policy import GatePolicy, ToolRule
from denizen.engine.hooks.runner import hook_run_id
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from tests.engine.delegation.delegation_fixture import (
    ADA,
    AGENTS,
    BOB,
    DelegationFixture,
    hand_on,
    last_result,
    open_agents,
    without_times,
)
from tests.engine.engine_fixture import NAME, ToolsetFixture
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio

DIGEST = Principal(PrincipalKind.SCHEDULE, "digest", "digest")


def hook(text: str, skip_if: str = "") -> Hook:
    return Hook("look", {"q": text}, skip_if)


def agents(bob: Hooks) -> tuple[Agent, ...]:
    return (ADA, replace(AGENTS[1], hooks=bob))


@pytest.mark.proves("T26")
async def test_an_agent_is_told_in_a_stock_text_that_a_hook_skipped_its_task() -> None:
    ada, bob = ScriptedModel(hand_on("Look for news"), ScriptedReply("No news.")), ScriptedModel()
    async with open_agents(ada, bob, agents=agents(Hooks((hook("news", "found"),)))) as engine:
        done = await engine.say("Any news?")
        [turn] = await engine.list_turns(BOB)

    assert done.reply == "No news." and bob.requests == []
    assert turn.status is TurnStatus.SKIPPED
    assert without_times(last_result(ada)) == "bob had nothing to do: the task was skipped."
    assert not last_result(ada).is_error


async def test_a_task_has_the_hooks_of_its_agent_and_the_trigger_s_are_around_the_first_turn_only() -> None:
    ada, bob = ScriptedModel(hand_on("Look"), ScriptedReply("Done.")), ScriptedModel(ScriptedReply("330 m"))
    tools = ToolsetFixture()
    async with open_agents(
        ada, bob, tools, agents=agents(Hooks((hook("before"),), (hook("after {{response}}"),)))
    ) as engine:
        of_trigger = {DIGEST.key: Hooks((hook("trigger before"),), (hook("trigger after"),))}
        await engine.runtime.swap(replace(engine.runtime.current, number=2, trigger_hooks=of_trigger))
        await engine.say("Look", principal=DIGEST)
        await finish_all(engine)

    ran = [each.args["q"] for each in tools.calls]
    assert ran[:2] == ["trigger before", "before"]
    assert set(ran[2:]) == {"after 330 m", "trigger after"} and len(ran) == 4
    assert "before" not in str([shown(each) for each in bob.requests[0].messages]), "it is no schedule's own turn"
    assert "found trigger before" in str([shown(each) for each in ada.requests[0].messages])


async def test_the_rules_for_the_agent_that_delegates_hold_for_hooks_around_the_task() -> None:
    tools = ToolsetFixture()
    rules = (ToolRule("look", Decision.DENY, reason="not for ada", agents=frozenset({NAME})),)
    async with open_agents(
        ScriptedModel(hand_on("Look"), ScriptedReply("Done.")),
        ScriptedModel(ScriptedReply("330 m")),
        tools,
        agents=agents(Hooks((hook("before"),), (hook("after"),))),
        policy=GatePolicy(rules=rules),
    ) as engine:
        await engine.say("Look")
        await finish_all(engine)
        [turn] = await engine.list_turns(BOB)
        async with engine.store.work(write=False) as work:
            calls = await work.turns.list_calls(turn.id)

    assert tools.calls == []
    assert [each.outcome.verdict.reason for each in calls] == ["not for ada", "not for ada"]


async def finish_all(engine: DelegationFixture) -> None:
    """Waits for the hooks after all turns, those of the task first."""
    with anyio.fail_after(HANG_LIMIT_S):
        for turn in [*await engine.list_turns(BOB), *await engine.list_turns(NAME)]:
            if turn.options.get("hooked"):
                await engine.durable.wait(hook_run_id(turn.id))


def shown(message: PromptMessage) -> str:
    return str(message.parts)
