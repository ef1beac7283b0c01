"""Plans as small models write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from denizen.domain.tool import ToolSpec
from denizen.engine.loop.planning import describe, parse_plan, plan_schema

CALL = ("weather", {"place": "Rome"})
SPEC = ToolSpec(
    "weather",
    "Weather of a place.\nMore.",
    {"type": "object", "properties": {"place": {"type": "string"}, "days": {"type": "integer"}}, "required": ["place"]},
)


@pytest.mark.proves("L4", "LW9")
@pytest.mark.parametrize(
    "text",
    [
        '{"calls": [{"tool": "weather", "args": {"place": "Rome"}}]}',
        '```json\n{"calls": [{"tool": "weather", "args": {"place": "Rome"}}]}\n```',
        'I will look. {"calls": [{"tool": "weather", "args": {"place": "Rome"}}]} Done.',
        '{"useTool": true, "tool": "weather", "args": {"place": "Rome"}, "reason": "asked"}',
        '{"useTool": true, "tool": "weather", "args": {"place": "Rome"}}',
        '{"name": "weather", "arguments": {"place": "Rome"}}',
        '[{"tool": "weather", "args": {"place": "Rome"}}]',
        'As {you} wish: {"tool": "weather", "args": {"place": "Rome"}}}',
    ],
)
def test_a_plan_is_read_in_any_common_form_with_or_without_a_reason(text: str) -> None:
    assert parse_plan(text) == [CALL]


@pytest.mark.proves("L4")
@pytest.mark.parametrize(
    "text", ["", "no json", "{", '{"calls": []}', '{"useTool": false, "tool": "weather"}', '{"tool": "none"}', "[1, 2]"]
)
def test_what_names_no_tool_is_an_empty_plan(text: str) -> None:
    assert parse_plan(text) == []


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    parse_plan(text)
    parse_plan('{"calls": [' + text)


def test_the_schema_admits_the_right_plan_and_refuses_unknown_tools_and_wrong_arguments() -> None:
    validator = Draft202012Validator(plan_schema([SPEC]))
    assert validator.is_valid({"tool": "weather", "args": {"place": "Rome"}})
    assert validator.is_valid({"tool": "none"})
    assert not validator.is_valid({"tool": "rm", "args": {}})
    assert not validator.is_valid({"tool": "weather", "args": {}})
    assert not validator.is_valid({})


def test_a_tool_is_described_on_one_line() -> None:
    assert describe(SPEC) == "- weather(place: string, days?: integer): Weather of a place."
