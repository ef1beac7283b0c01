"""A message on a platform that a hook has an agent pass over."""

import anyio
import pytest

from denizen.domain.agent import Agent, HistorySettings
from denizen.domain.attention import AccountPolicy
from denizen.domain.hook import Hook, Hooks
from denizen.domain.tool import ToolCall, ToolResult
from denizen.ports.toolset import CallScope
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from tests.engine.engine_fixture import ToolsetFixture
from tests.engine.platform_fixture import ADA, open_platform

pytestmark = pytest.mark.anyio


HOOKS = Hooks((Hook("look", {"q": "news"}, "^0 "),))


@pytest.mark.proves("T26")
@pytest.mark.usefixtures("immediate_previews")
async def test_nothing_is_seen_of_a_turn_that_a_hook_skips_and_all_of_one_that_it_does_not() -> None:
    reached, go_on = anyio.Event(), anyio.Event()
    output = "0 new"

    async def look(made: ToolCall, scope: CallScope) -> ToolResult:
        reached.set()
        await go_on.wait()
        return ToolResult(output)

    model = ScriptedModel(otherwise=ScriptedReply("Three new."))
    async with open_platform(
        model=model,
        tools=ToolsetFixture(run=look),
        account_policy=AccountPolicy(),
        agents={ADA: Agent(ADA, history=HistorySettings(recent_messages=0), hooks=HOOKS)},
    ) as fixture:
        world = fixture.world
        asked = world.platform.say(world.general, "ana", "@ada news?")
        await reached.wait()
        await anyio.wait_all_tasks_blocked()
        assert fixture.ada.typed == []
        go_on.set()
        await fixture.settled()
        await fixture.until(lambda: not fixture.ada.typing_in)
        assert fixture.ada.sent == [] and fixture.ada.typed == [] and model.requests == []
        assert world.platform.reactions.get(asked.id, []) == []
        assert not {"post", "react"} & set(fixture.ada.asked)

        output = "3 new"
        world.platform.say(world.general, "ana", "@ada news now?")
        assert await fixture.said() == ["Three new."]
        assert fixture.ada.typed and not fixture.ada.typing_in
