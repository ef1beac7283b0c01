"""Each type of nodes does what it says, puts out what it names, and stands for a tool that takes what it is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from denizen.builtin_skills import load_builtin
from denizen.domain.agent import Agent, HistorySettings, ToolAccess
from denizen.domain.approval import ApprovalChoice
from denizen.domain.ids import AgentName
from denizen.domain.json import Json
from denizen.domain.question import QuestionStatus
from denizen.domain.tool import DataFlow, Tier, ToolCall, ToolResult, ToolSpec
from denizen.domain.turn import TurnStatus
from denizen.domain.workflow_nodes import NODE_TYPES
from denizen.domain.workflow_run import NodeRun
from denizen.ports.toolset import CallScope
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from tests.engine.engine_fixture import ToolsetFixture, wait_for_approvals
from tests.engine.platform_fixture import ADA, World, open_platform
from tests.engine.workflows.workflow_fixture import OPERATOR, finish, make, run, start
from tests.timing import poll

pytestmark = [pytest.mark.anyio, pytest.mark.proves("V31-nodes")]

BOB = AgentName("bob")
ROWS: Json = [{"n": 2, "who": "Ana"}, {"n": 10, "who": "Ben"}, {"n": 1, "who": "Ana"}]
ANA, BEN, ANA_AGAIN = ROWS
COMPUTING: Mapping[str, Sequence[tuple[dict[str, Any], str, dict[str, Json]]]] = {
    "if": [
        ({"test": {"value": "{{input.n}}", "at_least": 7}}, "then", {"result": True}),
        ({"test": [{"value": "a", "equals": "a"}, {"value": "a", "equals": "b"}]}, "else", {"result": False}),
    ],
    "switch": [
        ({"value": "{{input.word}}", "cases": {"tea": "end", "milk": "end"}}, "case:tea", {"case": "tea"}),
        ({"value": "water", "cases": {"tea": "end"}}, "else", {"case": ""}),
    ],
    "cooldown": [({"seconds": "1h", "key": "{{input.word}}"}, "then", {"result": True, "wait_s": 0})],
    "permission": [
        ({"roles": ["admin"]}, "then", {"result": True}),  # as an owner may what admins may
        ({"roles": ["123"]}, "else", {"result": False}),
    ],
    "in_hours": [  # it is noon on a Sunday
        ({"start": "09:00", "end": "17:30"}, "then", {"result": True}),
        ({"start": "09:00", "end": "17:30", "days": "mon-fri"}, "else", {"result": False}),
        ({"start": "20:00", "end": "06:00", "zone": "Asia/Tokyo"}, "then", {"result": True}),
    ],
    "match": [
        (
            {"text": "order 12", "pattern": r"(?P<no>\d+)"},
            "then",
            {"result": True, "match": "12", "groups": {"1": "12", "no": "12"}},
        ),
        ({"text": "order", "pattern": r"\d+"}, "else", {"result": False, "match": "", "groups": {}}),
    ],
    "reply": [({"text": "Hello {{input.word}}"}, "then", {"text": "Hello tea"})],
    "log": [({"text": "Noted."}, "then", {"text": "Noted."})],
    "set": [({"values": {"who": "Ana", "n": "{{input.n}}"}}, "then", {"who": "Ana", "n": 7})],
    "template": [({"text": "{{input.n}} of {{input.word}}"}, "then", {"text": "7 of tea"})],
    "parse_json": [({"text": '[1, "a"]'}, "then", {"value": [1, "a"]})],
    "extract": [
        (
            {"text": "#12 and #34", "pattern": r"#(\d)\d"},
            "then",
            {"match": "#12", "groups": {"1": "1"}, "items": ["#12", "#34"], "count": 2},
        )
    ],
    "filter": [
        (
            {"items": "{{input.rows}}", "test": {"value": "{{item.n}}", "at_most": 2}},
            "then",
            {"items": [ANA, ANA_AGAIN], "count": 2},
        )
    ],
    "map": [({"items": "{{input.rows}}", "to": "{{item.n}}"}, "then", {"items": [2, 10, 1], "count": 3})],
    "sort": [
        ({"items": "{{input.rows}}", "by": "n"}, "then", {"items": [ANA_AGAIN, ANA, BEN], "count": 3}),
        ({"items": ["b", "A"], "descending": True}, "then", {"items": ["b", "A"], "count": 2}),
    ],
    "unique": [({"items": "{{input.rows}}", "by": "who"}, "then", {"items": [ANA, BEN], "count": 2})],
    "slice": [
        ({"items": "{{input.rows}}", "start": 1}, "then", {"items": [BEN, ANA_AGAIN], "count": 2}),
        ({"items": "{{input.rows}}", "start": -2, "most": 1}, "then", {"items": [BEN], "count": 1}),
    ],
    "count": [({"items": "{{input.rows}}"}, "then", {"count": 3}), ({"items": "tea"}, "then", {"count": 3})],
    "split_text": [({"text": "a, b,,c", "separator": ","}, "then", {"items": ["a", "b", "c"], "count": 3})],
    "join_text": [({"items": ["a", "b"], "separator": "; "}, "then", {"text": "a; b"})],
    "format_date": [
        (
            {"time": "2026-07-01T07:00:00Z", "zone": "Europe/Berlin"},
            "then",
            {"text": "2026-07-01 09:00", "time": "2026-07-01T09:00:00+02:00"},
        ),
        ({"format": "%A"}, "then", {"text": "Sunday", "time": "2026-11-01T12:00:00+00:00"}),
    ],
    "pick": [
        ({"from": "{{input.rows}}", "path": "1.who"}, "then", {"value": "Ben", "found": True}),
        ({"from": "{{input.rows}}", "path": "9.who", "default": "?"}, "then", {"value": "?", "found": False}),
    ],
    "parallel": [({}, "then", {})],
    "join": [({}, "then", {})],
    "for_each": [
        (
            {"items": "{{input.rows}}", "each": "end", "collect": "{{item.who}}"},
            "then",
            {"items": ["Ana", "Ben", "Ana"], "count": 3},
        )
    ],
}
"""By type: the settings of a node, the way by which it is left, and what it puts out."""
STANDING_FOR_TOOLS: Mapping[str, tuple[dict[str, Any], str, dict[str, Json]]] = {
    "call_tool": (
        {"tool": "fetch_url", "args": {"url": "https://a.example"}},
        "fetch_url",
        {"url": "https://a.example"},
    ),
    "direct_message": (
        {"member": "{{input.user.id}}", "text": "Hello"},
        "send_direct_message",
        {"member": "7", "text": "Hello"},
    ),
    "add_role": ({"member": "7", "role": "Sailor"}, "add_role", {"member": "7", "role": "Sailor"}),
    "remove_role": (
        {"member": "7", "role": "Sailor", "reason": "gone"},
        "remove_role",
        {"member": "7", "role": "Sailor", "reason": "gone"},
    ),
    "react": (
        {"message": "11", "emoji": "👍", "channel": "22"},
        "react",
        {"message": "11", "emoji": "👍", "channel": "22"},
    ),
    "open_thread": (
        {"name": "Moorings", "channel": "22", "text": "Here."},
        "create_thread",
        {"name": "Moorings", "channel": "22", "text": "Here.", "private": False},
    ),
    "fetch": ({"url": "https://b.example"}, "fetch_url", {"url": "https://b.example"}),
    "create_task": (
        {"project": "Site", "title": "Fix it"},
        "tasks",
        {"action": "create", "project": "Site", "title": "Fix it"},
    ),
}
"""By type: the settings of a node, the tool, and what that is given."""
TRIGGERS = {"on_event", "on_webhook", "on_schedule", "on_command", "on_reaction", "manual"}
SKILLS = ("discord", "members", "web", "projects")


def find_tools() -> list[ToolSpec]:
    """The tools as the built-in skills declare them, but that nobody is asked."""
    names = {tool for _, tool, _ in STANDING_FOR_TOOLS.values()}
    specs = [spec for skill in SKILLS for spec in load_builtin(skill).specs() if spec.name in names]
    assert {spec.name for spec in specs} == names
    return [replace(spec, tier=Tier.LIMITED, flow=DataFlow()) for spec in specs]


async def do(call: ToolCall, scope: CallScope) -> ToolResult:
    return ToolResult("Done.")


def check_outputs(ran: NodeRun) -> None:
    """A node puts out what its type names, which is what the checks let later nodes read."""
    named = NODE_TYPES[ran.type].outputs.keys()
    assert named == {"NAME"} or ran.outputs.keys() >= named, ran.type


async def test_nodes_that_compute() -> None:
    nodes: dict[str, Any] = {"start": {"type": "manual", "input": {"rows": ROWS, "n": 7, "word": "tea"}, "then": []}}
    wanted: dict[str, tuple[str, Mapping[str, Json]]] = {}
    for kind, cases in COMPUTING.items():
        for number, (settings, port, outputs) in enumerate(cases):
            key = f"{kind}_{number}"
            ways = {"each": f"{key}_in"} if kind == "for_each" else {}
            if kind == "switch":
                ways = {"cases": dict.fromkeys(settings["cases"], f"{key}_in")}
            nodes |= {key: {"type": kind, **settings, **ways}, f"{key}_in": {"type": "join"}}
            nodes["start"]["then"].append(key)
            wanted[key] = port, outputs
            if not ways:
                del nodes[f"{key}_in"]
    async with open_platform(workflows=make(nodes)) as server:
        found = await run(server)
    assert (found.status, found.failure) == (TurnStatus.DONE, "")
    assert found.reply == "Hello tea"
    ran = {each.path: each for each in found.nodes if each.path in wanted}
    assert {path: (each.port, each.outputs) for path, each in ran.items()} == wanted
    for each in ran.values():
        check_outputs(each)


async def test_nodes_that_stand_for_a_tool_call_it_with_what_it_takes() -> None:
    nodes: dict[str, Any] = {"start": {"type": "manual", "input": {"user": {"id": "7"}}, "then": []}}
    for kind, (settings, _, _) in STANDING_FOR_TOOLS.items():
        nodes |= {kind: {"type": kind, **settings}}
        nodes["start"]["then"].append(kind)
    tools = ToolsetFixture(specs=find_tools(), run=do)
    async with open_platform(tools=tools, workflows=make(nodes)) as server:
        found = await run(server)
    assert (found.status, found.failure) == (TurnStatus.DONE, "")
    called = [(each.tool, {name: value for name, value in each.args.items() if value != ""}) for each in tools.calls]
    assert called == [(tool, args) for _, tool, args in STANDING_FOR_TOOLS.values()]
    for each in found.nodes:
        check_outputs(each)


async def test_nodes_that_post_emit_ask_wait_and_lead_elsewhere() -> None:
    world = World()
    inner = make(
        {
            "begin": {"type": "manual", "input": {"who": "nobody"}, "then": "stop"},
            "stop": {"type": "stop", "text": "Seen by {{input.who}}.", "output": {"n": 3}},
        },
        "inner",
    )
    nodes = {
        "start": {"type": "manual", "then": ["post", "emit", "model", "agent", "hold", "yes", "owner", "nest"]},
        "post": {"type": "send_message", "channel": world.general.id, "text": "Ahoy."},
        "emit": {"type": "emit_event", "name": "order.paid"},
        "model": {"type": "ask_model", "prompt": "Which number?", "json": True},
        "agent": {"type": "ask_agent", "agent": "bob", "task": "Look"},
        "hold": {"type": "wait", "seconds": "10m"},
        "yes": {"type": "approval", "question": "May I?"},
        "owner": {"type": "ask_owner", "question": "Who?"},
        "nest": {"type": "sub_workflow", "workflow": "inner", "input": {"who": "Ana"}},
        "say": {"type": "reply", "text": "{{emit.type}}"},
    }
    nodes["emit"]["then"] = "say"
    agents = {
        ADA: Agent(ADA, history=HistorySettings(recent_messages=0), tool_access=ToolAccess(delegates_to=(BOB,))),
        BOB: Agent(BOB),
    }
    model = ScriptedModel(otherwise=lambda asked: ScriptedReply("7" if "Which" in str(asked.messages) else "Found."))
    async with open_platform(world, model, agents=agents, workflows=make(nodes) | inner) as server:
        turn = await start(server)
        [approval] = await wait_for_approvals(server.store)
        await server.turns.approvals.decide(approval.id, OPERATOR, ApprovalChoice.ONCE)
        [asked] = await poll(partial(server.turns.questions.list_questions, status=QuestionStatus.OPEN))
        await server.turns.questions.answer(asked.id, OPERATOR, "Ana.")
        found = await finish(server, turn.id)
        assert await server.said() == ["Ahoy."]
    assert (found.status, found.failure, found.reply) == (TurnStatus.DONE, "", "denizen.emitted.order.paid")
    ran = {each.path: each for each in found.nodes}
    for each in ran.values():
        check_outputs(each)
    assert ran["model"].outputs["value"] == 7
    assert ran["agent"].outputs["text"] == "Found."
    assert (ran["yes"].outputs["approved"], ran["owner"].outputs["text"]) == (True, "Ana.")
    assert ran["nest"].outputs == {"reply": "Seen by Ana.", "output": {"n": 3}}
    assert {each.type for each in ran.values()} | {*COMPUTING, *STANDING_FOR_TOOLS, *TRIGGERS} == NODE_TYPES.keys()
