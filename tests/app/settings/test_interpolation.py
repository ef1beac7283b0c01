"""`${NAME}` in string values."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.app.settings.interpolation import (
    InterpolatedText,
    escape,
    expand,
    expand_tree,
    is_malformed,
    whole_reference,
)

NAMES = st.from_regex(r"[A-Z_][A-Z0-9_]{0,8}", fullmatch=True)
TEXTS = st.text(max_size=20)


@pytest.mark.proves("T-config-env")
@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("${SET}", "value"),
        ("a ${SET} b ${SET}", "a value b value"),
        ("${UNSET:-default}", "default"),
        ("${EMPTY:-default}", "default"),
        ("${SET:-default}", "value"),
        ("${UNSET:-}", ""),
        ("${UNSET}", ""),
        ("$${SET}", "${SET}"),
        ("$$${SET}", "$${SET}"),
        ("$SET and {SET}", "$SET and {SET}"),
    ],
)
def test_references_are_replaced_as_in_a_shell(template: str, value: str):
    assert expand(template, {"SET": "value", "EMPTY": ""}) == value


@pytest.mark.parametrize("template", ["${", "${A", "${A-b}", "${1A}", "${}", "a ${b c}"])
def test_what_begins_a_reference_and_is_none_is_noticed(template: str):
    assert is_malformed(template)


@given(TEXTS)
def test_an_escaped_text_expands_to_itself(text: str):
    assert expand(escape(text), {}) == text
    assert not is_malformed(escape(text))


@given(NAMES, TEXTS.filter(bool), TEXTS, TEXTS)
def test_a_value_is_taken_as_it_is_and_never_expanded_again(name: str, value: str, before: str, after: str):
    template = f"{escape(before)}${{{name}}}{escape(after)}"
    if not before.endswith("$"):
        assert expand(template, {name: value}) == before + value + after


@given(NAMES, TEXTS.filter(lambda text: "}" not in text))
def test_the_default_stands_for_an_unset_variable(name: str, default: str):
    assert expand(f"${{{name}:-{default}}}", {}) == default


@given(NAMES)
def test_an_interpolated_text_is_its_value_and_shows_its_template(name: str):
    text = expand(f"${{{name}}}", {name: "planted-value"})
    assert text == "planted-value"
    assert "planted" not in repr([text])
    for again in (copy.deepcopy(text), pickle.loads(pickle.dumps(text))):
        assert isinstance(again, InterpolatedText)
        assert (again, repr(again)) == (text, repr(text))


def test_only_one_whole_reference_counts_as_whole():
    found = whole_reference("${A:-b}")
    assert found is not None
    assert (found.name, found.default) == ("A", "b")
    assert [whole_reference(text) for text in ("x${A}", "${A}${B}", "$${A}", "A")] == [None] * 4


def test_a_tree_is_expanded_below_its_keys_and_says_what_was_missing():
    tree = {"${KEY}": ["${A}", {"b": "${B:-x}", "n": 5}], "bad": "${"}
    found = expand_tree(tree, {"KEY": "k"})
    assert found.tree == {"${KEY}": ["", {"b": "x", "n": 5}], "bad": "${"}
    assert found.names == {"A", "B"}
    assert found.missing == ((("${KEY}", 0), "A"),)
    assert found.malformed == (("bad",),)
