"""Graphs of workflows: what is wrong with them, and the order in which their nodes run."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.json import Json, JsonObject
from denizen.domain.workflow import GraphWalk, Workflow
from denizen.domain.workflow_checks import find_nesting_problems, read_workflow
from denizen.domain.workflow_nodes import NODE_TYPES, NodeGroup, list_node_types
from denizen.domain.workflow_run import WorkflowStart, find_guild
from denizen.domain.workflow_values import (
    check_tests,
    fill,
    fill_post,
    fill_text,
    list_mentioned,
    read_clock,
    read_days,
    read_duration,
)


def make(nodes: dict[str, Any], name: str = "flow", **top: Any) -> Workflow:
    reading = read_workflow(name, {"nodes": nodes, **top})
    assert reading.workflow is not None, reading.problems
    return reading.workflow


def find_problems(nodes: Json, **top: Any) -> list[tuple[str, str, str]]:
    reading = read_workflow("flow", {"nodes": nodes, **top})
    assert reading.workflow is None
    return [(".".join(map(str, each.path)), each.message, each.fix) for each in reading.problems]


def _event(conditions: Json) -> JsonObject:
    return {"a": {"type": "on_event", "on": "discord.message", "filter": conditions}}


_MANUAL_C = {"type": "manual", "then": "c"}
_LOG_Z = {"type": "log", "text": "{{b.z}}"}


def _log(text: str, given: JsonObject | None = None) -> JsonObject:
    return {"a": {"type": "manual", "input": given or {}, "then": "b"}, "b": {"type": "log", "text": text}}


def _test(test: JsonObject) -> JsonObject:
    return {"a": {"type": "manual", "then": "b"}, "b": {"type": "if", "test": {"value": "{{event.n}}", **test}}}


@pytest.mark.proves("V31-nodes")
def test_there_are_over_thirty_types_of_nodes_in_five_groups():
    assert len(NODE_TYPES) > 30
    assert [each.value for each in NodeGroup] == ["trigger", "condition", "action", "transform", "control"]
    assert all(len(list_node_types(group)) > 5 for group in NodeGroup)
    triggers = {each.name for each in list_node_types(NodeGroup.TRIGGER)}
    assert triggers == {"on_event", "on_command", "on_reaction", "on_webhook", "on_schedule", "manual"}


@pytest.mark.parametrize(
    ("nodes", "path", "message"),
    [
        ({}, "nodes", "needs nodes"),
        ({"a": {"type": "mannual"}}, "nodes.a.type", "no type 'mannual'"),
        ({"a": {"type": "manual", "zzz": 1}}, "nodes.a.zzz", "no setting 'zzz'"),
        ({"a": {"type": "manual", "else": "b"}, "b": {"type": "join"}}, "nodes.a.else", "does not lead on by `else`"),
        ({"a": {"type": "manual", "then": "x"}}, "nodes.a.then", "no node 'x'"),
        ({"a": {"type": "log", "text": "x"}}, "nodes", "nothing starts"),
        ({"a": {"type": "manual"}, "b": {"type": "join"}}, "nodes.b", "no way leads"),
        ({"a": {"type": "manual", "then": "a"}}, "nodes.a.then", "is a trigger"),
        ({"event": {"type": "manual"}}, "nodes.event", "means something else"),
        ({"a": {"type": "manual", "then": "b"}, "b": {"type": "log"}}, "nodes.b.text", "missing"),
        ({"a": {"type": "manual", "then": "b"}, "b": {"type": "wait", "seconds": "3q"}}, "nodes.b.seconds", "seconds"),
        (
            {"a": {"type": "manual", "then": "b"}, "b": {"type": "if", "test": {"value": 1, "equls": 1}}},
            "nodes.b.test.equls",
            "no test",
        ),
        (
            {"a": {"type": "manual", "then": "b"}, "b": {"type": "log", "text": "{{c.text}}"}},
            "nodes.b.text",
            "names nothing",
        ),
        (
            {
                "a": {"type": "manual", "then": ["b", "c"]},
                "b": {"type": "log", "text": "{{c.text}}"},
                "c": {"type": "log", "text": "x"},
            },
            "nodes.b.text",
            "does not run before",
        ),
        ({"a": {"type": "manual", "then": "b"}, "b": {"type": "log", "text": "{{item}}"}}, "nodes.b.text", "in loops"),
        (_event({"user.is_bot": {"not_anny": [True]}}), "nodes.a.filter.user.is_bot.not_anny", "no condition"),
        (_event({"user": {"is_bot": False}}), "nodes.a.filter.user.is_bot", "no condition"),
        (_event({"user.is_bot": None}), "nodes.a.filter.user.is_bot", "not a value"),
        (_event({"user.is_bot": {}}), "nodes.a.filter.user.is_bot", "says nothing"),
        (_event({"user.is_bot": []}), "nodes.a.filter.user.is_bot", "not a value"),
        (_event({"user.id": {"one_of": []}}), "nodes.a.filter.user.id.one_of", "not a value"),
        (_event({"user.id": {"at_least": "x"}}), "nodes.a.filter.user.id.at_least", "not a number"),
        (_event({"user.id": {"contains": ""}}), "nodes.a.filter.user.id.contains", "not a text"),
        (_event({"user.id": {"exists": "no"}}), "nodes.a.filter.user.id.exists", "not true or false"),
        (_event({"user.id": "{{run.id}}"}), "nodes.a.filter.user.id", "not a value"),
        (_log("{{event.name"), "nodes.b.text", "`{{event.name`: this place is not closed"),
        (_log("a {{run.id}} {{ two words }}"), "nodes.b.text", "this place is not closed"),
        (_log("{{}}"), "nodes.b.text", "this place is not closed"),
        (_log("{{run.name}}"), "nodes.b.text", "'run' has no 'name'"),
        (_log("{{error.message}}"), "nodes.b.text", "'error' has no 'message'"),
        (_log("{{b.text}}"), "nodes.b.text", "does not run before"),
        (_log("{{input.nmae}}", {"name": "x"}), "nodes.b.text", "'input' has no 'nmae'"),
        (_log("x", {"name": "{{run.id}}"}), "nodes.a.input.name", "are taken as they are"),
        (
            {**_log("{{c.txet}}"), "c": {"type": "template", "text": "x", "then": "b"}, "d": _MANUAL_C},
            "nodes.b.text",
            "'c' has no 'txet'",
        ),
        (
            {**_log("x"), "b": {"type": "set", "values": {"q": ["x", "{{event"]}, "then": "c"}, "c": _LOG_Z},
            "nodes.b.values.q.1",
            "not closed",
        ),
        (
            {**_log("x"), "b": {"type": "set", "values": {"q": 1}, "then": "c"}, "c": _LOG_Z},
            "nodes.c.text",
            "'b' has no 'z'",
        ),
        (_test({"equals": None}), "nodes.b.test.equals", "not a value"),
        (_test({"exists": "false"}), "nodes.b.test.exists", "not true or false"),
        (_test({"one_of": []}), "nodes.b.test.one_of", "not a list"),
        (_test({"contains": ""}), "nodes.b.test.contains", "not a text"),
        (_test({"matches": "{{event.x}}"}), "nodes.b.test.matches", "not a text without places"),
        (_test({"at_least": "many"}), "nodes.b.test.at_least", "not a number"),
        (
            {
                "a": {"type": "manual", "then": ["loop", "x"]},
                "loop": {"type": "for_each", "items": [1], "each": "x"},
                "x": {"type": "join"},
            },
            "nodes.a.then",
            "runs for each item",
        ),
    ],
)
def test_each_fault_is_told_with_its_place_and_a_remedy(nodes: Json, path: str, message: str):
    found = find_problems(nodes)
    assert any(path == where and message in what and fix for where, what, fix in found), found


@pytest.mark.proves("V31")
def test_a_circle_is_told_with_its_nodes():
    nodes = {
        "a": {"type": "manual", "then": "b"},
        "b": {"type": "join", "then": "c"},
        "c": {"type": "join", "then": "b"},
    }
    assert find_problems(nodes)[0][1] == "these nodes lead in a circle: b -> c -> b."


def test_a_graph_of_too_many_ways_is_refused_before_it_is_walked():
    nodes: JsonObject = {"n0": {"type": "manual", "then": [f"n{each}" for each in range(1, 80)]}}
    for number in range(1, 80):
        nodes[f"n{number}"] = {"type": "join", "then": [f"n{each}" for each in range(number + 1, 80)]}
    assert [each[1] for each in find_problems(nodes)] == ["a workflow has 2000 ways between nodes at most."]


def test_an_unknown_key_of_the_file_is_told():
    assert find_problems({"a": {"type": "manual"}}, descripton="x")[0][:2] == ("descripton", "this key is not known.")


def test_a_workflow_that_leads_back_to_itself_is_refused():
    def nested(name: str, other: str) -> Workflow:
        return make({"a": {"type": "manual", "then": "b"}, "b": {"type": "sub_workflow", "workflow": other}}, name)

    both = {"one": nested("one", "two"), "two": nested("two", "one")}
    assert [name for name, _ in find_nesting_problems(both)] == ["one", "two"]
    assert [name for name, each in find_nesting_problems({"one": nested("one", "x")}) if "no workflow" in each.message]
    plain = {"one": nested("one", "two"), "two": make({"a": {"type": "manual"}}, "two")}
    assert not list(find_nesting_problems(plain))


def test_switching_a_workflow_off_keeps_its_digest():
    nodes = {"a": {"type": "manual"}}
    assert make(nodes).digest == make(nodes, enabled=False, description="x").digest
    assert make(nodes).digest != make({"b": {"type": "manual"}}).digest


BRANCHES = make(
    {
        "start": {"type": "manual", "then": ["check", "side"]},
        "check": {"type": "if", "test": {"value": 1, "equals": 1}, "then": "yes", "else": "no"},
        "yes": {"type": "join", "then": "end"},
        "no": {"type": "join", "then": "end"},
        "side": {"type": "wait", "seconds": 5, "then": "end"},
        "end": {"type": "join"},
    }
)


def test_a_node_runs_when_all_ways_to_it_are_known_and_one_is_taken():
    walk = GraphWalk(BRANCHES, BRANCHES.list_level(), ["start"])
    assert walk.list_ready() == ["start"]
    walk.finish("start", "then")
    assert walk.list_ready() == ["check", "side"]  # what waits comes last
    walk.finish("check", "else")
    assert walk.list_ready() == ["no", "side"]
    walk.finish("no", "then")
    assert walk.list_ready() == ["side"]
    walk.finish("side", "then")
    assert walk.list_ready() == ["end"]
    walk.finish("end", "then")
    assert walk.list_ready() == []


def test_a_join_may_go_on_with_the_first_way_that_is_taken():
    flow = make(
        {
            "start": {"type": "manual", "then": ["a", "b"]},
            "a": {"type": "join", "then": "end"},
            "b": {"type": "wait", "seconds": 5, "then": "end"},
            "end": {"type": "join", "wait_for": "any"},
        }
    )
    walk = GraphWalk(flow, flow.list_level(), ["start"])
    walk.finish("start", "then")
    walk.finish("a", "then")
    assert walk.list_ready() == ["end", "b"]
    walk.finish("end", "then")
    assert walk.leave_other_ways("end") == ["b"]
    assert walk.list_ready() == []


def test_what_is_on_the_other_ways_to_a_join_is_left_out_with_what_follows_from_it_alone():
    flow = make(
        {
            "start": {"type": "manual", "then": ["a", "b", "c"]},
            "a": {"type": "wait", "seconds": 5, "then": "end"},
            "b": {"type": "approval", "question": "?", "then": "more", "else": "no"},
            "more": {"type": "join", "then": "end"},
            "no": {"type": "join"},
            "c": {"type": "wait", "seconds": 9, "then": "after"},
            "after": {"type": "join"},
            "end": {"type": "join", "wait_for": "any", "then": "last"},
            "last": {"type": "join"},
        }
    )
    walk = GraphWalk(flow, flow.list_level(), ["start"])
    for node in ("start", "a", "end"):
        walk.finish(node, "then")
    assert sorted(walk.leave_other_ways("end")) == ["b", "more"]
    assert walk.list_ready() == ["last", "c"]


def test_the_nodes_of_a_loop_are_a_level_of_their_own():
    flow = make(
        {
            "start": {"type": "manual", "then": "outer"},
            "outer": {"type": "for_each", "items": [1], "each": "inner", "then": "end"},
            "inner": {"type": "for_each", "items": [1], "each": "x", "then": "y"},
            "x": {"type": "join"},
            "y": {"type": "join"},
            "end": {"type": "join"},
        }
    )
    assert flow.list_level() == {"start", "outer", "end"}
    assert flow.list_level("outer") == {"inner", "y"}
    assert flow.list_level("inner") == {"x"}


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=25), st.data())
def test_every_run_comes_to_an_end_and_runs_no_node_twice(pairs: list[tuple[int, int]], data: st.DataObject):
    """Whatever the graph and whichever ways are taken."""
    ways = {number: sorted({b for a, b in pairs if a == number and b > number}) for number in range(10)}
    reached, waiting = set[int](), [0]
    while waiting:
        each = waiting.pop()
        if each not in reached:
            reached.add(each)
            waiting += ways[each]
    nodes: dict[str, JsonObject] = {"n0": {"type": "manual", "then": [f"n{b}" for b in ways[0]]}}
    for number in sorted(reached - {0}):
        half = len(ways[number]) // 2
        nodes[f"n{number}"] = {
            "type": "if",
            "test": {"value": 1, "equals": 1},
            "then": [f"n{b}" for b in ways[number][:half]],
            "else": [f"n{b}" for b in ways[number][half:]],
        }
    flow = make(nodes)
    walk, ran = GraphWalk(flow, flow.list_level(), ["n0"]), list[str]()
    while ready := walk.list_ready():
        node = data.draw(st.sampled_from(ready))
        ran.append(node)
        walk.finish(node, "then" if node == "n0" else data.draw(st.sampled_from(["then", "else"])))
    assert len(ran) == len(set(ran)) <= len(nodes)


def test_places_are_filled_and_what_is_filled_in_has_none():
    scope: JsonObject = {"event": {"user": {"name": "{{run.id}}"}, "n": 3}, "a": {"items": [1, 2]}}
    assert fill("Hi {{event.user.name}}, {{ event.n }} {{event.x}}!", scope) == "Hi {{run.id}}, 3 !"
    assert fill(r"\{{event.n}} is {{event.n}}", scope) == "{{event.n}} is 3"
    assert fill({"x": ["{{a.items}}", "{{event.n}}", "{{a.items.1}}"]}, scope) == {"x": [[1, 2], 3, 2]}


def test_places_may_name_all_that_a_node_puts_out_or_tells_of_its_failure():
    make(
        {
            "a": {"type": "manual", "input": {"x": 1}, "then": "b"},
            "b": {"type": "fetch", "url": "{{input.x}}{{input.text}}", "then": "c", "on_error": "d"},
            "c": {"type": "set", "values": {"t": "{{b.text}}", "r": {"s": 1}}, "then": "e"},
            "d": {"type": "log", "text": "{{b.error}} {{b.code}} {{error}} {{ run.id }} } }} {"},
            "e": {"type": "log", "text": "{{c.r.s}} {{c}} {{a.x}} {{event.what.ever}}"},
        }
    )


def test_nothing_foreign_is_markup_in_a_post_whichever_way_it_went():
    scope: JsonObject = {"event": {"name": "*Ana* {{run.id}}", "@type": "x"}, "run": {"id": "1"}}
    scope["greet"] = {"text": fill_text("**Hi** {{event.name}}", scope)}
    scope["lines"] = {"items": [fill("_{{event.name}}_", scope), "<@1>"]}
    assert fill_post("# {{greet.text}}!", scope) == r"# **Hi** \*Ana\* {{run.id}}!"
    assert fill_post("{{lines.items.0}}, {{lines.items.1}}", scope) == "_\\*Ana\\* {{run.id}}_, \\<@\u200b1\\>"
    assert fill_post("{{greet.text}}", {"greet": {"text": "**Hi**"}}) == r"\*\*Hi\*\*"


def test_a_mention_of_the_platform_stays_one_in_a_text_of_a_text():
    scope: JsonObject = {"event": {"user": {"mention": "<@7>", "name": "<@8>"}, "@type": "discord.member.join"}}
    scope["greet"] = {"text": fill_text("Hi {{event.user.mention}} {{event.user.name}}", scope)}
    assert fill_post("{{greet.text}}", scope) == "Hi <@7> \\<@\u200b8\\>"
    assert list_mentioned("{{event.user.mention}}{{event.user.name}}", scope) == ["7"]


@pytest.mark.parametrize(
    ("test", "holds"),
    [
        ({"value": "{{event.n}}", "equals": "3"}, True),
        ({"value": "{{event.n}}", "at_least": 4}, False),
        ({"value": "{{event.n}}", "at_least": 2, "at_most": 3}, True),
        ({"value": "{{event.t}}", "contains": "b"}, True),
        ({"value": "{{event.t}}", "matches": "a*"}, True),
        ({"value": "{{event.t}}", "one_of": ["x", "abc"]}, True),
        ({"value": "{{event.x}}", "exists": True}, False),
        ({"value": "{{event.x}}", "exists": False}, True),
        ({"value": "{{event.yes}}", "equals": True}, True),
        ({"value": "{{event.t}}", "not_equals": "abc"}, False),
        ({"value": "text", "at_least": 1}, False),
        ([{"value": 1, "equals": 1}, {"value": 1, "equals": 2}], False),
        ({"value": "{{event.x}}", "not_equals": "abc"}, False),
        ({"value": "{{event.x}} ", "not_equals": "abc"}, False),
        ({"value": "a{{event.x}}", "equals": "a"}, False),
        ({"value": "{{event.x}}", "equals": "{{event.y}}"}, False),
        ({"value": "{{event.x}}", "one_of": "{{event.y}}"}, False),
        ({"value": "{{event.x}}", "equals": ""}, False),
        ({"value": "{{event.x}}", "matches": "*"}, False),
        ({"value": "{{event.t}}", "not_equals": "{{event.x}}"}, False),
        ({"value": "{{event.t}}", "contains": "{{event.empty}}"}, False),
        ({"value": "{{event.empty}}", "equals": ""}, True),
        ({"value": "{{event.empty}}", "exists": True}, False),
        ({"value": "{{event.x}}", "exists": False, "not_equals": "abc"}, False),
        ([], False),
    ],
)
def test_tests_compare_values(test: Json, holds: bool):
    scope: JsonObject = {"event": {"n": 3, "t": "abc", "yes": True, "empty": ""}}
    assert check_tests(test, scope, is_any=False) is holds


@pytest.mark.parametrize(
    ("source", "kind", "found"),
    [
        ("/discord/42", "discord.member.join", ("discord", "42")),
        ("/webhooks/42", "discord.member.join", None),
        ("/workflows", "denizen.emitted.x", None),
        ("/discord/42", "denizen.emitted.x", None),
    ],
)
def test_only_what_a_platform_tells_names_its_community(source: str, kind: str, found: tuple[str, str] | None):
    scope: JsonObject = {"event": {"@source": source, "@type": kind, "guild": {"id": "1"}}}
    assert find_guild(WorkflowStart(name="a", digest="", trigger="t", scope=scope)) == found


def test_times_and_durations_are_read():
    assert [read_duration(each) for each in (5, "10m", "1.5h", "2d", "x", True)] == [5, 600, 5400, 172_800, None, None]
    assert [read_clock(each) for each in ("09:30", "24:00", "9:5", "12:60")] == [570, 1440, None, None]
    assert read_days("mon-fri") == {0, 1, 2, 3, 4}
    assert read_days("sat-mon,wed") == {5, 6, 0, 2}
    assert read_days("") == set(range(7))
    assert read_days("someday") is None
