"""What a skill is and what each call of its tools is given (V-skill-interface)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from denizen.adapters.caldav import HttpCalDavCalendars
from denizen.domain.tool import Taint, Tier, ToolCall, ToolResult, ToolSpec
from denizen.domain.verdict import Decision
from denizen.engine.tools.toolbox import NestedCalls
from denizen.ports.toolset import CallScope
from denizen.skill import AccountServices, Skill, SkillToolset, ToolContext
from denizen.skill.manifest import SkillPermission, restrict_services
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply, call
from tests.clock import ManualClock
from tests.engine.engine_fixture import ToolsetFixture
from tests.engine.platform_fixture import open_platform
from tests.skill_fixture import PLACE, ServicesFixture, run, scope

pytestmark = pytest.mark.anyio

skill = Skill("sample", description="For tests.")


@skill.tool(tier=Tier.HARMLESS)
async def tell(context: ToolContext) -> str:
    """Tells what it knows of its call."""
    inner = await context.call_tool("other", {"x": 1})
    return f"{context.conversation} {context.principal.key} {context.guild} {inner.text}"


@pytest.mark.proves("V-skill-interface")
async def test_a_call_knows_conversation_principal_and_guild_and_can_call_other_tools(tmp_path: Path) -> None:
    around = ServicesFixture(tmp_path)
    where = replace(scope(), guild="g1")
    result = await run(SkillToolset(skill, around.services()), "tell", {}, where)
    assert result.text == f"{PLACE.conversation_id} platform_user:7 g1 other ran"
    assert around.inner_calls == [(where, "other", {"x": 1})]
    assert (skill.name, skill.description, [tool.name for tool in skill.tools]) == ("sample", "For tests.", ["tell"])


@pytest.mark.proves("V-skill-interface")
async def test_in_a_turn_on_a_platform_a_call_knows_the_same_and_what_it_calls_passes_the_gate(tmp_path: Path) -> None:
    async def run_other(asked: ToolCall, _: CallScope) -> ToolResult:
        return ToolResult(f"other ran with {asked.args['x']}")

    other = ToolsetFixture([ToolSpec("other", "Runs.", {"type": "object"}, tier=Tier.HARMLESS)], run=run_other)
    model = ScriptedModel(ScriptedReply(calls=[call("tell")]), ScriptedReply("Done."))
    async with open_platform(model=model, tools=other) as fixture:
        around = ServicesFixture(tmp_path).services()
        nested = NestedCalls(fixture.runtime, fixture.turns._services.gate)
        tools = SkillToolset(skill, replace(around, call_tool=nested))
        await fixture.runtime.swap(replace(fixture.runtime.current, toolsets=(other, tools)))
        room = fixture.world.general
        fixture.world.platform.say(room, "ana", "@ada tell me")
        assert await fixture.said() == ["Done."]
        async with fixture.store.work(write=False) as work:
            [turn] = await work.turns.list_turns()
            calls = {record.tool_call.tool: record.outcome for record in await work.turns.list_calls(turn.id)}
    told = f"{turn.conversation_id} platform_user:discord:ana {room.guild} other ran with 1"
    assert calls["tell"].result.text == told and room.guild
    assert calls["other"].verdict.decision is Decision.APPROVE


async def test_tiers_are_raised_to_the_floor_and_what_is_read_is_added(tmp_path: Path) -> None:
    toolset = SkillToolset(
        skill, ServicesFixture(tmp_path).services(), floor=Tier.SENSITIVE, reads=frozenset({Taint.WEB})
    )
    (spec,) = await toolset.list_tools()
    assert (spec.tier, spec.flow.reads) == (Tier.SENSITIVE, {Taint.WEB})


async def test_without_permissions_a_context_holds_no_way_out(tmp_path: Path) -> None:
    services = restrict_services(ServicesFixture(tmp_path).services(), "sample", frozenset())
    assert (
        services.download,
        services.run_program,
        services.ask_model,
        services.owner.skill_editor,
        services.owner.instance,
    ) == ((None,) * 5)
    result = await run(SkillToolset(skill, services), "tell", {})
    assert "needs `tools` under permissions" in result.text
    allowed = restrict_services(ServicesFixture(tmp_path).services(), "sample", {SkillPermission.TOOLS})
    assert "other ran" in (await run(SkillToolset(skill, allowed), "tell", {})).text


async def test_no_permission_gives_a_skill_the_accounts_of_its_owner(tmp_path: Path) -> None:
    accounts = AccountServices(open_calendars=partial(HttpCalDavCalendars, clock=ManualClock()))
    services = replace(ServicesFixture(tmp_path).services(), accounts=accounts)
    assert restrict_services(services, "sample", frozenset(SkillPermission)).accounts == AccountServices()
