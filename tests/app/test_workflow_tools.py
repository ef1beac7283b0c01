"""The tools with which the agent of an owner makes, changes, runs and reviews workflows."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest

from denizen.app.build import Denizen, open_denizen
from denizen.app.configuration import HomeConfiguration
from denizen.app.reload import Reloader
from denizen.app.toolsets import build_skill_services
from denizen.app.workflow_configuration import HomeWorkflows
from denizen.builtin_skills import load_builtin
from denizen.domain.ids import CallId, TurnId
from denizen.domain.json import Json
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.tool import ToolCall, ToolResult
from denizen.ports.toolset import CallScope
from denizen.skill import SkillToolset
from tests.app.home_folder import LAB, Home
from tests.app.test_workflow_pages import GREETING
from tests.skill_fixture import run, scope

pytestmark = pytest.mark.anyio

OWNER = replace(scope(), principal=Principal(PrincipalKind.PLATFORM_USER, "discord:1", "Ana", frozenset({"owner"})))


@dataclass
class Tools:
    """The tools of a home folder."""

    denizen: Denizen
    toolset: SkillToolset

    async def call(self, tool: str, args: Mapping[str, Json], by: CallScope = OWNER) -> ToolResult:
        return await run(self.toolset, tool, dict(args), by)

    async def tell(self, tool: str, **args: Json) -> str:
        done = await self.call(tool, args)
        assert not done.is_error, done.text
        return done.text


@asynccontextmanager
async def open_tools(home: Home, *, is_served: bool = True) -> AsyncGenerator[Tools]:
    home.write(LAB)
    async with open_denizen(home.path) as denizen:
        skills = denizen.generation_deps.skills
        if is_served:
            files = HomeConfiguration(denizen, Reloader(denizen))
            skills.workflows.connect(denizen.workflows, HomeWorkflows(home.path, denizen.runtime, files))
        services = build_skill_services(denizen.settings, skills, {})
        yield Tools(denizen, SkillToolset(load_builtin("workflows"), services))


@pytest.mark.proves("V-skill-workflows")
async def test_an_owner_makes_lists_reads_changes_switches_runs_reviews_and_deletes_workflows(home: Home) -> None:
    async with open_tools(home) as tools:
        assert await tools.tell("list_workflows") == "There are none."
        await tools.tell("create_workflow", name="greet", text=GREETING)
        file = home.path / "workflows/greet.yaml"
        assert file.read_text() == await tools.tell("read_workflow", name="greet") == GREETING
        assert await tools.tell("list_workflows") == "greet (manual; on): Greets"
        await tools.tell("change_workflow", name="greet", old="Hello,", new="Good day,")
        assert file.read_text() == GREETING.replace("Hello,", "Good day,")
        key = (await tools.tell("run_workflow", name="greet", given={"name": "Ben"})).split()[2]
        async for _ in tools.denizen.turns.watch(TurnId(key)):
            pass
        listed = await tools.tell("list_workflow_runs", name="greet")
        assert f"{key} of greet" in listed and "done" in listed
        shown = await tools.tell("show_workflow_run", run=key)
        assert "say (reply) done in" in shown and "Good day, Ben!" in shown
        assert "last run done" in await tools.tell("list_workflows")
        await tools.tell("switch_workflow", name="greet", enabled=False)
        assert "greet (manual; off" in await tools.tell("list_workflows")
        assert "is off" in (await tools.call("run_workflow", {"name": "greet"})).text
        await tools.tell("switch_workflow", name="greet", enabled=True)
        await tools.tell("delete_workflow", name="greet")
        assert not file.exists() and await tools.tell("list_workflows") == "There are none."
        assert key in await tools.tell("list_workflow_runs")


async def test_those_who_approve_a_change_are_shown_the_difference_and_nothing_is_written_before(home: Home) -> None:
    async with open_tools(home) as tools:
        toolset, file = tools.toolset, home.path / "workflows/greet.yaml"

        def plan(tool: str, **args: Json) -> ToolCall:
            return ToolCall(CallId("c"), tool, {"name": "greet", **args})

        created = await toolset.preview(plan("create_workflow", text=GREETING), OWNER)
        assert "+++ workflows/greet.yaml" in created and not file.exists()
        assert all(f"+{line}" in created.splitlines() for line in GREETING.splitlines())
        await tools.tell("create_workflow", name="greet", text=GREETING)
        change = plan("change_workflow", old="Hello,", new="Good day,")
        shown = (await toolset.preview(change, OWNER)).splitlines()
        assert not any(line.startswith(" ") for line in shown) and len(shown) == 5
        assert "Hello," in shown[-2] and "Good day," in shown[-1]
        assert "-description: Greets" in await toolset.preview(plan("delete_workflow"), OWNER)
        assert "+enabled: false" in await toolset.preview(plan("switch_workflow", enabled=False), OWNER)
        assert file.read_text() == GREETING
        for call in (plan("change_workflow", old="nothing like it", new="x"), plan("create_workflow", text=GREETING)):
            assert await toolset.find_refusal(call, OWNER), "nobody is asked about what would be refused"
        assert await toolset.find_refusal(change, OWNER) == ""


async def test_what_is_wrong_with_a_workflow_is_told_by_line_and_not_written(home: Home) -> None:
    async with open_tools(home) as tools:
        wrong = await tools.call(
            "create_workflow", {"name": "greet", "text": GREETING.replace("then: say", "then: sya")}
        )
        assert wrong.is_error and "greet.yaml:3" in wrong.text and "say" in wrong.text
        await tools.tell("create_workflow", name="greet", text=GREETING)
        for tool, args, told in (
            ("create_workflow", {"name": "greet", "text": GREETING}, "already"),
            ("change_workflow", {"name": "greet", "old": "say", "new": "tell"}, "is there 3 times"),
            ("change_workflow", {"name": "greet", "old": "nothing like it", "new": "x"}, "is there 0 times"),
            ("change_workflow", {"name": "greet", "old": "type: log", "new": "type: lgo"}, "lgo"),
            ("read_workflow", {"name": "gret"}, "Did you mean 'greet'?"),
            ("show_workflow_run", {"run": "turn_other"}, "no run"),
        ):
            refused = await tools.call(tool, args)
            assert refused.is_error and told in refused.text, refused.text
        assert (home.path / "workflows/greet.yaml").read_text() == GREETING


async def test_nobody_but_an_owner_uses_them_and_without_a_server_nobody_does(home: Home) -> None:
    other = replace(scope(), principal=Principal(PrincipalKind.PLATFORM_USER, "discord:2", "Ben", frozenset({"admin"})))
    schedule = replace(scope(), principal=Principal(PrincipalKind.SCHEDULE, "news", "news"))
    calls: tuple[tuple[str, Mapping[str, Json]], ...] = (
        ("create_workflow", {"name": "greet", "text": GREETING}),
        ("list_workflows", {}),
        ("run_workflow", {"name": "greet"}),
        ("list_workflow_runs", {}),
    )
    async with open_tools(home) as tools:
        for by in (other, schedule):
            for tool, args in calls:
                refused = await tools.call(tool, args, by)
                assert refused.is_error and "only an owner may use workflows" in refused.text
    async with open_tools(home, is_served=False) as tools:
        refused = await tools.call("list_workflows", {})
        assert refused.is_error and "no workflows here" in refused.text
    assert not (home.path / "workflows").exists()
