"""Comparing values: the same rule wherever people write a condition."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.cloud_event import CloudEvent
from denizen.domain.comparison import contains, equality_key, exists, find_number, fits, is_equal, is_within, matches
from denizen.domain.event_listener import FieldCondition
from denizen.domain.json import Json, JsonObject
from denizen.domain.workflow import WorkflowNode
from denizen.domain.workflow_checks import read_workflow
from denizen.domain.workflow_compute import NodeInput, compute, fill_settings

ID, NEXT_ID = "1234567890123456788", "1234567890123456789"
"""As floats they would be the same."""
PAIRS: list[tuple[Json, Json, bool]] = [
    (5, "5", True),
    (5.0, "5", True),
    (5, 5.0, True),
    ("05", 5, False),
    ("5.0", "5", False),
    (" 5", 5, False),
    (1.5, "1.5", True),
    (True, "true", True),
    (True, 1, False),
    (False, 0, False),
    ("", 0, False),
    (ID, NEXT_ID, False),
    (int(ID), NEXT_ID, False),
    (int(ID), ID, True),
    ([1, {"a": "2"}], ["1", {"a": 2}], True),
    (["1"], "1", False),
    ("a", "A", False),
]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.parametrize(("one", "other", "same"), PAIRS)
def test_values_are_equal_when_they_are_written_alike(one: Json, other: Json, same: bool):
    assert is_equal(one, other) is is_equal(other, one) is same


@pytest.mark.parametrize(("value", "wanted", "same"), [each for each in PAIRS if not isinstance(each[1], list)])
def test_if_switch_filter_and_transforms_agree(value: Json, wanted: str | float, same: bool):
    """The same two values everywhere that people compare some."""
    event = CloudEvent(id="1", source="s", type="t", time=datetime(2026, 1, 1, tzinfo=UTC), data={"v": value})
    found = [FieldCondition(path="v", one_of=(wanted,)).holds(event)]
    found.append(not FieldCondition(path="v", not_any=(wanted,)).holds(event))
    scope: JsonObject = {"event": {"v": value}, "run": {}}
    test: JsonObject = {"value": "{{event.v}}", "equals": wanted}
    found.append(run({"type": "if", "test": test}, scope).port == "then")
    kept = run({"type": "filter", "items": [value], "test": {"value": "{{item}}", "equals": wanted}}, scope)
    found.append(kept.outputs["count"] == 1)
    found.append(run({"type": "unique", "items": [value, wanted]}, scope).outputs["count"] == 1)
    if isinstance(wanted, str) and wanted:
        switched = run({"type": "switch", "value": "{{event.v}}", "cases": {wanted: "end"}}, scope)
        found.append(switched.port == f"case:{wanted}")
    assert found == [same] * len(found)


def run(row: JsonObject, scope: JsonObject):
    nodes: JsonObject = {"a": {"type": "manual", "then": ["b", "end"]}, "b": row, "end": {"type": "join"}}
    reading = read_workflow("flow", {"nodes": nodes})
    assert reading.workflow is not None, reading.problems
    node: WorkflowNode = reading.workflow.nodes["b"]
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return compute(node, NodeInput(settings=fill_settings(node, scope), scope=scope, now=now))


@given(VALUES, VALUES)
def test_equality_is_the_same_both_ways_and_holds_for_each_value_itself(one: Json, other: Json):
    assert is_equal(one, other) is is_equal(other, one)
    assert is_equal(one, one) is (one is not None)
    assert (equality_key(one) == equality_key(other)) or not is_equal(one, other)


def test_a_missing_field_meets_exists_false_alone():
    event = CloudEvent(id="1", source="s", type="t", time=datetime(2026, 1, 1, tzinfo=UTC), data={"a": "", "b": "x"})
    never: list[dict[str, object]] = [
        {"one_of": ("*",)},
        {"not_any": ("x",)},
        {"contains": "x"},
        {"at_least": 1},
        {"exists": True},
        {"exists": False, "not_any": ("x",)},
        {},
    ]
    assert not any(FieldCondition(path="zzz", **each).holds(event) for each in never)  # type: ignore[arg-type]
    assert FieldCondition(path="zzz", exists=False).holds(event)
    assert FieldCondition(path="a", exists=False).holds(event)
    assert FieldCondition(path="b", not_any=("y",)).holds(event)
    assert not FieldCondition(path="b").holds(event)


def test_only_the_star_means_something_in_a_pattern():
    assert fits("dependabot[bot]", "dependabot[bot]")
    assert fits("dependabot[bot]", "*[bot]")
    assert not fits("dependabotb", "dependabot[bot]")
    assert not fits("Whyx", "Why?")
    assert matches("abc", "a*c")
    assert matches("ac", "a*c")
    assert not matches("a", "a*a")
    assert matches("x-1-y-2-z", "x*1*2*z")
    assert not matches("x-2-y-1-z", "x*1*2*z")
    assert matches(7, "*")
    assert not matches(None, "*")
    assert not matches("a" * 100_000, "*a" * 50_000 + "b")


def test_numbers_are_found_in_texts_and_never_overflow():
    assert [find_number(each) for each in ("5", "-1.5", "1e3", 7, True, "x", "", None, "1_000", "nan")] == [
        5,
        -1.5,
        1000,
        7,
        *[None] * 6,
    ]
    assert find_number("9" * 400) is None
    assert find_number("1e999") is None
    assert is_within(10**400, at_least=1.5)
    assert not is_within(float("nan"), at_least=1)
    assert not is_within(5, at_least="many")


def test_a_part_is_never_nothing():
    assert contains("abc", "b")
    assert contains("a5", 5)
    assert contains([1, 2], "2")
    assert contains({"a": 1}, "a")
    assert not contains("abc", "")
    assert not contains("abc", None)
    assert not contains(None, "")
    assert [exists(each) for each in ("", None, 0, False, [])] == [False, False, True, True, True]
