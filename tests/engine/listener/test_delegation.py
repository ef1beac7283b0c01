"""Tasks that agents give to each other on a platform: what people there see, and what they are asked."""

from __future__ import annotations

import pytest

from denizen.domain.agent import Agent, HistorySettings, ToolAccess
from denizen.domain.approval import ApprovalChoice
from denizen.domain.attention import AccountPolicy, ReplyStyle
from denizen.domain.ids import AgentName
from denizen.domain.message import Role
from denizen.domain.tool import ToolCall, ToolResult
from denizen.domain.verdict import Decision
from denizen.engine.configuration.tool_policy import GatePolicy, ToolRule
from denizen.ports.model import ModelRequest
from denizen.ports.toolset import CallScope
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply, call
from tests.engine.delegation.delegation_fixture import hand_on
from tests.engine.engine_fixture import ToolsetFixture, wait_for_approvals
from tests.engine.listener.test_approvals import press
from tests.engine.platform_fixture import ADA, open_platform

pytestmark = pytest.mark.anyio

BOB = AgentName("bob")
AGENTS = {
    ADA: Agent(ADA, history=HistorySettings(recent_messages=0), tool_access=ToolAccess(delegates_to=(BOB,))),
    BOB: Agent(BOB, history=HistorySettings(recent_messages=0)),
}
POLICY = AccountPolicy(style=ReplyStyle(preview=False))


def script(*, is_async: bool = False) -> ScriptedModel:
    """ada gives bob a task, and bob writes something."""

    def answer(request: ModelRequest) -> ScriptedReply:
        is_bob = "Write milk down" in str(request.messages[0])
        has_result = any(message.role is Role.TOOL for message in request.messages)
        if is_bob:
            return ScriptedReply("It is written.") if has_result else ScriptedReply(calls=[call("write", q="milk")])
        if has_result:
            return ScriptedReply("Bob has done it, or will.")
        return hand_on("Write milk down", is_async=is_async)

    return ScriptedModel(otherwise=answer)


async def test_the_card_of_a_delegated_call_is_where_the_task_was_asked_for_and_the_asker_decides() -> None:
    gate = GatePolicy(rules=(ToolRule("write", Decision.ASK, reason="the owner wants to know"),))
    async with open_platform(model=script(), gate=gate, agents=AGENTS, account_policy=POLICY) as fixture:
        question = fixture.world.platform.say(fixture.world.general, "ana", "@ada milk, please")
        [approval] = await wait_for_approvals(fixture.store)
        await fixture.until(lambda: bool(fixture.ada.sent))
        [card] = fixture.ada.sent
        assert card.reply_to == question.id
        assert "refused" not in await fixture.listener.on_press(press(fixture, approval, ApprovalChoice.ONCE))
        assert (await fixture.said())[-1] == "Bob has done it, or will."
        assert not await fixture.said(BOB), "the answer to a task that is waited for is for ada alone"
        assert [each.args["q"] for each in fixture.tools.calls] == ["milk"]


async def test_the_result_of_a_background_task_is_said_where_it_was_asked_for_by_the_account_that_was_asked() -> None:
    async with open_platform(model=script(is_async=True), agents=AGENTS, account_policy=POLICY) as fixture:
        question = fixture.world.platform.say(fixture.world.general, "ana", "@ada milk, please")
        said = await fixture.said()
        [result] = [sent for sent in fixture.ada.sent if "is done" in sent.content.text]
        assert result.reply_to == question.id
        assert result.content.text.endswith("which I gave to bob, is done:\nIt is written.")
        assert sorted(said) == sorted(["Bob has done it, or will.", result.content.text])
        assert not await fixture.said(BOB)


async def test_a_delegated_agent_acts_where_the_task_was_asked_for_with_the_account_that_was_asked() -> None:
    scopes: list[CallScope] = []

    async def run(_: ToolCall, scope: CallScope) -> ToolResult:
        scopes.append(scope)
        return ToolResult("ok")

    async with open_platform(
        model=script(), agents=AGENTS, account_policy=POLICY, tools=ToolsetFixture(run=run)
    ) as fixture:
        fixture.world.platform.say(fixture.world.general, "ana", "@ada milk, please")
        await fixture.said()
    [scope] = scopes
    assert (scope.agent, scope.account, scope.place.channel) == (BOB, ADA, fixture.world.general.id)
    assert scope.principal.name == "Ana"
    assert scope.guild == fixture.world.general.guild
