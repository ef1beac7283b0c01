"""Arguments against the tool's schema: repaired where safe, else an error that teaches."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.json import JsonObject
from denizen.domain.tool import ToolSpec
from denizen.engine.tools.arguments import ArgumentsError, check_arguments
from denizen.ports.model import RAW_ARGS

SPEC = ToolSpec(
    "weather",
    "Weather of a place.",
    {
        "type": "object",
        "properties": {
            "place": {"type": "string"},
            "days": {"type": "integer", "minimum": 1},
            "units": {"enum": ["metric", "imperial"]},
            "exact": {"type": "boolean"},
        },
        "required": ["place"],
        "additionalProperties": False,
    },
)


@pytest.mark.proves("T14")
@pytest.mark.parametrize(
    ("args", "wrong"),
    [
        ({}, "'place' is a required property"),
        ({"place": 3}, "place: 3 is not of type 'string'"),
        ({"place": "Rome", "city": "x"}, "'city' was unexpected"),
        ({"place": "Rome", "units": "kelvin"}, "units: 'kelvin' is not one of"),
        ({"place": "Rome", "days": 0}, "days: 0 is less than the minimum"),
    ],
)
def test_a_wrong_argument_is_named_together_with_what_is_expected(args: JsonObject, wrong: str) -> None:
    with pytest.raises(ArgumentsError) as caught:
        check_arguments(SPEC, args)
    assert wrong in str(caught.value)
    assert "Expected: place (string, required), days (integer), units (one of metric, imperial)" in str(caught.value)


@pytest.mark.proves("S12")
def test_an_object_written_as_a_string_is_parsed() -> None:
    assert check_arguments(SPEC, {RAW_ARGS: '{"place": "Rome"}'}) == {"place": "Rome"}


@pytest.mark.proves("S12")
def test_no_arguments_at_all_are_an_empty_object() -> None:
    assert check_arguments(ToolSpec("now", "", {"type": "object", "properties": {}}), {RAW_ARGS: " "}) == {}


@pytest.mark.parametrize("raw", ['{"place": ', "[1]", "Rome", '"x"'])
def test_what_is_no_json_object_goes_back_to_the_model(raw: str) -> None:
    with pytest.raises(ArgumentsError, match=r"Expected: place \(string, required\)"):
        check_arguments(SPEC, {RAW_ARGS: raw})


def test_numbers_and_booleans_in_quotes_are_repaired_and_words_are_not() -> None:
    assert check_arguments(SPEC, {"place": "42", "days": "3", "exact": "true"}) == {
        "place": "42",
        "days": 3,
        "exact": True,
    }
    with pytest.raises(ArgumentsError):
        check_arguments(SPEC, {"place": "Rome", "days": "three"})


def test_null_for_an_optional_argument_means_not_given() -> None:
    assert check_arguments(SPEC, {"place": "Rome", "days": None}) == {"place": "Rome"}
    with pytest.raises(ArgumentsError):
        check_arguments(SPEC, {"place": None})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["place", "days", "units", "exact", "other"]), json_values))
def test_any_arguments_end_in_a_valid_object_or_in_words(args: dict[str, object]) -> None:
    wire: JsonObject = json.loads(json.dumps(args))
    try:
        checked = check_arguments(SPEC, wire)
    except ArgumentsError as problem:
        assert "weather" in str(problem)
    else:
        assert isinstance(checked["place"], str)


@pytest.mark.proves("LW11")
def test_a_schema_of_an_older_draft_is_read_by_that_draft():
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "definitions": {"pair": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}},
        "properties": {"pair": {"$ref": "#/definitions/pair"}, "anything": True},
        "required": ["pair"],
    }
    old = ToolSpec("old", "", schema)
    assert check_arguments(old, {"pair": ["a", 1], "anything": "x"}) == {"pair": ["a", 1], "anything": "x"}
    with pytest.raises(ArgumentsError, match=r"pair\[1\]: 'b' is not of type 'integer'.*anything \(any\)"):
        check_arguments(old, {"pair": ["a", "b"]})


def test_a_schema_that_leads_elsewhere_or_to_itself_fails_its_calls_and_nothing_else():
    far = ToolSpec("far", "", {"type": "object", "properties": {"x": {"$ref": "http://127.0.0.1:9/schema.json"}}})
    round_and_round = ToolSpec("round", "", {"type": "object", "$ref": "#"})
    with pytest.raises(ArgumentsError, match=r"'far' cannot be called: its schema refers to 'http://127"):
        check_arguments(far, {"x": 1})
    with pytest.raises(ArgumentsError, match=r"'round' cannot be called: its schema has no end"):
        check_arguments(round_and_round, {})


def test_no_schema_of_a_server_holds_everybody_up() -> None:
    evil = {"type": "string", "pattern": "^(a+)+$"}
    slow = {"q": evil, "a": {"type": "object", "patternProperties": {"^(a+)+$": {}}, "additionalProperties": False}}
    spec = replace(SPEC, parameters={"type": "object", "properties": slow}, source="mcp:there")
    long = "a" * 60 + "!"
    assert check_arguments(spec, {"q": long, "a": {long: 1}}) == {"q": long, "a": {long: 1}}
    with pytest.raises(ArgumentsError, match="q: 5 is not of type 'string'"):
        check_arguments(spec, {"q": 5})

    levels = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(60)}
    spec = replace(SPEC, parameters={"type": "object", "$defs": {**levels, "d60": {}}, "$ref": "#/$defs/d0"})
    with pytest.raises(ArgumentsError, match="no end"):
        check_arguments(replace(spec, source="mcp:there"), {})
    assert check_arguments(replace(SPEC, source="mcp:there"), {"place": "Rome"}) == {"place": "Rome"}


def test_regular_expressions_of_our_own_and_of_the_owner_are_followed() -> None:
    spec = replace(SPEC, parameters={"type": "object", "properties": {"q": {"pattern": "^[a-z]+$"}}}, source="custom")
    with pytest.raises(ArgumentsError, match="does not match"):
        check_arguments(spec, {"q": "--all"})
