"""The workflows that ship with Denizen, each run from its trigger to its end on a platform in memory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from denizen.app.settings.yaml_document import ConfigDocument, parse_document
from denizen.app.workflow_configuration import find_example, list_examples
from denizen.domain.approval import ApprovalChoice, AskerReach
from denizen.domain.ids import fresh
from denizen.domain.json import Json
from denizen.domain.tool import Tier, ToolCall, ToolResult, ToolSpec
from denizen.domain.turn import TurnStatus
from denizen.domain.workflow import Workflow
from denizen.domain.workflow_checks import read_workflow
from denizen.engine.workflows.catalog import RunOrder
from denizen.ports.toolset import CallScope
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from tests.engine.engine_fixture import ToolsetFixture, wait_for_approvals
from tests.engine.platform_fixture import World, open_platform
from tests.engine.workflows.workflow_fixture import OPERATOR, finish, open_workflows, paths

pytestmark = pytest.mark.anyio

TOOLS = "send_direct_message add_role tasks fetch_url timeout_member delegate"
FEED = '{"items": [{"title": "Harbour opens", "url": "https://blog.example/1"}, {"title": "Storm", "url": "x"}]}'
ISSUE = {"action": "opened", "issue": {"number": 7, "title": "It sinks", "body": "At once.", "html_url": "https://x/7"}}
RELEASE = {
    "action": "published",
    "repository": {"name": "boat"},
    "release": {"tag_name": "v2", "body": "New sails.", "html_url": "https://x/v2"},
}
ANA: Mapping[str, Json] = {"id": "7", "name": "Ana", "mention": "<@7>", "is_bot": False}
INVITATION = {"message": {"id": "1", "text": "Come to discord.gg/abc"}, "user": ANA, "guild": {"name": "Harbour"}}


@dataclass
class Example:
    """A run: what its trigger is given, what the model says, whether people agree, and what has to come of it."""

    name: str
    trigger: str
    given: Mapping[str, Json]
    ran: str
    says: str = "So be it."
    choice: ApprovalChoice | None = None
    called: Mapping[str, Mapping[str, Json]] = field(default_factory=dict[str, Mapping[str, Json]])
    posted: tuple[str, ...] = ()
    reply: str = ""
    failing: str = ""


RUNS = [
    Example(
        "welcome",
        "joined",
        {"@type": "discord.member.join", "user": ANA, "guild": {"name": "Harbour"}},
        "joined is_person once greet explain",
        called={"send_direct_message": {"member": "7"}},
        posted=("Welcome to Harbour, <@7>!",),
    ),
    Example(
        "welcome",
        "joined",
        {"@type": "discord.member.join", "user": ANA, "guild": {"name": "Harbour"}},
        "joined is_person once greet explain closed",
        posted=("Welcome to Harbour, <@7>!",),
        failing="send_direct_message",
    ),
    Example("welcome", "joined", {"user": {**ANA, "is_bot": True}}, "joined is_person"),
    Example(
        "reaction-roles",
        "reacted",
        {"user": ANA, "reaction": {"emoji": "🎮", "is_on": True}},
        "reacted which games",
        called={"add_role": {"member": "7", "role": "323456789012345678"}},
    ),
    Example("reaction-roles", "reacted", {"user": ANA, "reaction": {"emoji": "🦀"}}, "reacted which unknown"),
    Example(
        "triage-issues",
        "issue",
        ISSUE,
        "issue kind word sort_by bug task",
        says="It is a bug.",
        called={"tasks": {"action": "create", "project": "Support", "title": "#7 It sinks"}},
        posted=("A bug was reported: It sinks",),
    ),
    Example(
        "triage-issues", "issue", ISSUE, "issue kind word sort_by question", says="question", posted=("Who can answer",)
    ),
    Example(
        "feed-digest",
        "now",
        {},
        "now page parsed newest lines list digest post",
        says="The harbour opens.",
        called={"fetch_url": {"url": "https://blog.example/feed.json"}},
        posted=("The harbour opens.",),
    ),
    Example(
        "stand-up",
        "morning",
        {},
        "morning day ask two_hours read answers summary",
        called={"delegate": {"agent": "reader"}},
        posted=("Stand-up, ", "done"),
    ),
    Example(
        "moderation-escalation", "said", INVITATION, "said invites seldom warn", called={"send_direct_message": {}}
    ),
    Example(
        "release-notes",
        "released",
        RELEASE,
        "released draft agree post",
        says="New sails for boat.",
        choice=ApprovalChoice.ONCE,
        posted=("New sails for boat.",),
    ),
    Example("release-notes", "released", RELEASE, "released draft agree note", choice=ApprovalChoice.DENY),
    Example(
        "on-call",
        "alert",
        {"severity": "high", "host": "db1", "summary": "disk full"},
        "alert severe once hours night taken task",
        choice=ApprovalChoice.ONCE,
        called={"tasks": {"project": "Operations", "title": "db1: disk full"}},
    ),
    Example(
        "on-call",
        "alert",
        {"severity": "high", "host": "db1", "summary": "disk full"},
        "alert severe once hours night taken second",
        choice=ApprovalChoice.DENY,
        called={"send_direct_message": {"member": "223456789012345678"}},
    ),
    Example("on-call", "alert", {"severity": "low", "host": "a", "summary": "x"}, "alert severe note"),
    Example(
        "nightly-check",
        "by_hand",
        {},
        "by_hand pages each_page[0]/look each_page[1]/look each_page failed any_failed all_well",
        called={"fetch_url": {"url": "https://docs.example.com/"}},
    ),
    Example(
        "nightly-check",
        "by_hand",
        {},
        "by_hand pages each_page[0]/look each_page[0]/broken each_page[1]/look each_page[1]/broken each_page failed "
        "any_failed lines text report",
        posted=("2 pages do not answer:\n- https://www.example.com/\n- https://docs.example.com/",),
        failing="fetch_url",
    ),
    Example(
        "poll",
        "asked",
        {"text": "Chess?"},
        "asked has_text post said a_day remind",
        posted=("**Poll:** Chess?", "The poll is still open: Chess?"),
        reply="The poll stands in the channel.",
    ),
    Example("poll", "asked", {"text": ""}, "asked has_text how", reply="Write the question behind it"),
]


def load(name: str, channel: str) -> dict[str, Workflow]:
    """An example, whose channels are that one."""
    text = re.sub(r'channel: "\d+"', f'channel: "{channel}"', find_example(name).text)
    document = parse_document(text, Path(f"{name}.yaml"))
    assert isinstance(document, ConfigDocument)
    found = read_workflow(name, document.tree)
    assert found.workflow is not None, found.problems
    return {name: found.workflow}


def make_tools(failing: str) -> ToolsetFixture:
    specs = [ToolSpec(name, name, {"type": "object"}, tier=Tier.LIMITED) for name in TOOLS.split()]

    async def run(call: ToolCall, scope: CallScope) -> ToolResult:
        del scope
        if call.tool == failing:
            return ToolResult("It does not answer.", is_error=True)
        return ToolResult(FEED if call.tool == "fetch_url" else "done")

    return ToolsetFixture(specs=specs, run=run)


@pytest.mark.parametrize("example", RUNS, ids=lambda each: f"{each.name}-{each.ran.split()[-1]}")
async def test_each_example_does_what_it_says(example: Example) -> None:
    world = World()
    tools, model = make_tools(example.failing), ScriptedModel(otherwise=ScriptedReply(example.says))
    flow = load(example.name, world.general.id)
    async with open_platform(world, model, tools=tools, workflows=flow) as server:
        order = RunOrder(key=fresh("run"), by=OPERATOR, reach=AskerReach.WAITS)
        turn = await open_workflows(server).start(example.name, example.given, order, trigger=example.trigger)
        if example.choice is not None:
            [approval] = await wait_for_approvals(server.store)
            await server.turns.approvals.decide(approval.id, OPERATOR, example.choice)
        found = await finish(server, turn.id)
        assert found.failure == ""
        assert found.status is TurnStatus.DONE
        assert sorted(paths(found)) == sorted(example.ran.split())
        said = await server.said()
        assert len(said) == len(example.posted), said
        assert all(wanted in each for wanted, each in zip(example.posted, said, strict=True)), said
        assert example.reply in found.reply
        for name, args in example.called.items():
            [*_, call] = [each for each in tools.calls if each.tool == name]
            assert args.items() <= call.args.items()


def test_every_example_is_run_here() -> None:
    assert {each.name for each in RUNS} == {each.name for each in list_examples()}
