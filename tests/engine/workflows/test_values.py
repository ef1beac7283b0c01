"""Values that cannot be kept or are too large: the node fails, once and with a clear word, and so does its run."""

from __future__ import annotations

from typing import Any

import pytest

from denizen.domain.errors import InvalidInput, LimitExceeded
from denizen.domain.tool import ToolCall, ToolResult
from denizen.domain.turn import TurnStatus
from denizen.domain.workflow_run import MAX_RUN_CHARS, MAX_STORED_CHARS
from denizen.engine.workflows.patterns import find_groups
from denizen.ports.toolset import CallScope
from tests.engine.engine_fixture import ToolsetFixture
from tests.engine.platform_fixture import open_platform
from tests.engine.workflows.workflow_fixture import OPERATOR, make, node, open_workflows, outputs, run

pytestmark = pytest.mark.anyio

PARSE = make(
    {
        "start": {"type": "manual", "then": "parse"},
        "parse": {"type": "parse_json", "text": "{{input.text}}", "then": "say"},
        "say": {"type": "reply", "text": "{{parse.value}}"},
    }
)
BIG = "x" * 90_000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("NaN", "nan is no number"),
        ('{"a": [1, -Infinity]}', "-inf is no number"),
        ("1e999", "inf is no number"),
        ("9" * 400, "300 digits"),
        ("9" * 5000, "this is no JSON"),
        (r'"\ud800"', "half a character"),
        ("[" * 900 + "]" * 900, "within each other"),
    ],
)
async def test_a_value_that_cannot_be_kept_fails_its_node(text: str, said: str) -> None:
    async with open_platform(workflows=PARSE) as server:
        found = await run(server, text=text)
        assert found.status is TurnStatus.FAILED
        assert "The node 'parse'" in found.failure
        assert said.lower() in found.failure.lower()


async def test_a_zero_character_and_large_numbers_pass() -> None:
    async with open_platform(workflows=PARSE) as server:
        found = await run(server, text=r'["a\u0000", 123456789012345678901234567890, 1e300]')
        assert found.status is TurnStatus.DONE, found.failure
        assert outputs(found)["parse"]["value"] == ["a\x00", 123456789012345678901234567890, 1e300]


async def test_inputs_by_hand_are_checked_before_the_run() -> None:
    async with open_platform(workflows=PARSE) as server:
        for given in (float("nan"), "x" * 1_000_001, "\ud800"):
            with pytest.raises((InvalidInput, LimitExceeded)):
                await run(server, text=given)


MULTIPLIERS: list[tuple[str, dict[str, Any]]] = [
    ("set", {"values": {f"v{number}": "{{input.big}}" for number in range(5000)}}),
    ("set", {"values": {f"v{number}": "a{{input.big}}" for number in range(5000)}}),
    ("template", {"text": "{{input.big}}" * 5000}),
    ("map", {"items": list(range(5000)), "to": "a{{input.big}}"}),
    ("map", {"items": list(range(5000)), "to": ["{{input.big}}"] * 5}),
    ("join_text", {"items": ["a", "b"] * 4000, "separator": BIG}),
    ("join_text", {"items": ["{{input.big}}"] * 5000}),
]


@pytest.mark.parametrize(("kind", "settings"), MULTIPLIERS)
async def test_what_multiplies_itself_ends_the_run_before_it_is_built(kind: str, settings: dict[str, Any]) -> None:
    """Each of these would have some hundreds of millions of characters."""
    flow = make({"start": {"type": "manual", "then": "grow"}, "grow": {"type": kind, **settings}})
    async with open_platform(workflows=flow) as server:
        found = await run(server, big=BIG)
        assert found.status is TurnStatus.FAILED
        assert "The node 'grow'" in found.failure
        assert "characters" in found.failure
        assert [each.path for each in found.nodes] == ["start", "grow"]


@pytest.mark.parametrize(("kind", "settings"), [MULTIPLIERS[0], MULTIPLIERS[3]])
async def test_a_dry_run_does_not_build_it_either(kind: str, settings: dict[str, Any]) -> None:
    flow = make({"start": {"type": "manual", "then": "grow"}, "grow": {"type": kind, **settings}})
    async with open_platform(workflows=flow) as server:
        [_, planned] = await open_workflows(server).plan("flow", {"big": BIG}, OPERATOR)
        assert "characters" in planned.error


@pytest.mark.parametrize(
    ("text", "pattern", "code"),
    [("a" * 200_001, "b", "pattern_text"), ("a" * 60_000, "(((((((((.*)))))))))", "workflow_output_long")],
)
async def test_a_search_is_bounded(text: str, pattern: str, code: str) -> None:
    with pytest.raises(LimitExceeded) as refused:
        await find_groups(pattern, text)
    assert refused.value.code == code


async def test_an_expression_that_backtracks_without_end_fails_its_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("denizen.engine.workflows.patterns.TIMEOUT_S", 0.01)
    with pytest.raises(LimitExceeded) as refused:
        await find_groups("(a|aa)+$", "a" * 5000 + "b")
    assert refused.value.code == "pattern_slow"


async def test_a_workflow_within_another_has_the_inputs_that_it_says_itself() -> None:
    inner = make(
        {
            "start": {"type": "manual", "input": {"a": "own", "b": "own"}, "then": "say"},
            "say": {"type": "reply", "text": "{{input.a}} {{input.b}}"},
        },
        "inner",
    )
    outer = make(
        {
            "start": {"type": "manual", "then": "nest"},
            "nest": {"type": "sub_workflow", "workflow": "inner", "input": {"b": "given"}, "then": "say"},
            "say": {"type": "reply", "text": "{{nest.reply}}"},
        }
    )
    async with open_platform(workflows=inner | outer) as server:
        assert (await run(server)).reply == "own given"


async def test_a_loop_stops_where_what_it_collects_is_too_large() -> None:
    flow = make(
        {
            "start": {"type": "manual", "then": "each"},
            "each": {"type": "for_each", "items": list(range(100)), "each": "act", "collect": "{{act.text}}"},
            "act": {"type": "call_tool", "tool": "look", "args": {"q": "a"}},
        }
    )

    async def fetch(call: ToolCall, scope: CallScope) -> ToolResult:
        del call, scope
        return ToolResult(BIG)

    tools = ToolsetFixture(run=fetch)
    async with open_platform(tools=tools, workflows=flow) as server:
        found = await run(server)
        assert found.status is TurnStatus.FAILED
        assert f"more than {MAX_STORED_CHARS} characters" in found.failure
        assert len(tools.calls) == 3


async def test_the_outputs_of_a_whole_run_are_bounded() -> None:
    """A loop that keeps none of them lets none of them lead on either."""
    flow = make(
        {
            "start": {"type": "manual", "then": "each"},
            "each": {"type": "for_each", "items": list(range(400)), "most": 400, "each": "grow", "collect": 1},
            "grow": {"type": "template", "text": "{{input.big}}", "on_error": "never"},
            "never": {"type": "join"},
        }
    )
    async with open_platform(workflows=flow) as server:
        found = await run(server, big=BIG)
        assert found.status is TurnStatus.FAILED
        assert f"more than {MAX_RUN_CHARS} characters" in found.failure
        assert len(found.nodes) < 120
        assert node(found, "each[0]/grow").outputs["text"] == BIG


async def test_a_filter_of_too_many_items_by_too_many_others_is_refused() -> None:
    flow = make(
        {
            "start": {"type": "manual", "then": "keep"},
            "keep": {
                "type": "filter",
                "items": "{{input.rows}}",
                "test": {"value": "{{input.rows}}", "contains": "{{item}}"},
            },
        }
    )
    async with open_platform(workflows=flow) as server:
        assert (await run(server, rows=list(range(500)))).status is TurnStatus.DONE
        assert "too many items" in (await run(server, rows=list(range(5000)))).failure
