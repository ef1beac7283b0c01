"""Texts that know which parts of them the author of a workflow wrote."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.authored_text import (
    AuthoredText,
    TextPiece,
    author,
    author_all,
    escape_markup,
    forget_author,
    is_authored,
    join_texts,
    list_parts,
    write_post,
)
from denizen.domain.cloud_event import find_value
from denizen.domain.json import Json, JsonObject

PIECES = st.lists(st.builds(TextPiece, st.text(max_size=6), st.booleans()), max_size=6)


@given(PIECES)
def test_it_is_the_text_of_its_parts_and_json_like_any_other(parts: list[TextPiece]):
    text = AuthoredText.of(parts)
    assert text == "".join(each.text for each in parts)
    assert json.loads(json.dumps(text)) == text
    assert type(forget_author(text)) is str
    assert is_authored(text) is all(each.is_authored for each in parts if each.text)


@given(st.text(max_size=30))
def test_what_the_author_wrote_is_posted_as_it_is(text: str):
    assert write_post(author(text)) == text
    assert write_post(join_texts(text, ["", ""])) == text


def test_whatever_is_done_to_a_text_makes_it_foreign():
    for changed in (author("*a*").strip(), author("*a*")[:], author("*a*") + "", str(author("*a*")), "*a*"):
        assert write_post(changed) == r"\*a\*"
    [one] = list_parts("a")
    assert not one.is_authored


def test_all_texts_of_a_value_can_be_made_the_authors_and_plain_again():
    value: JsonObject = {"a": ["b", 1, {"c": "d"}]}
    made = author_all(value)
    assert made == value
    assert write_post(join_texts("", [find_text(made)])) == "b"
    assert isinstance(find_text(made), AuthoredText)
    assert type(find_text(forget_author(made))) is str


def find_text(value: Json) -> str:
    found = find_value(value, "a.0")
    assert isinstance(found, str)
    return found


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("**a** _b_ ~~c~~ `d` ||e||", r"\*\*a\*\* \_b\_ \~\~c\~\~ \`d\` \|\|e\|\|"),
        ("# a", r"\# a"),
        ("> a", r"\> a"),
        ("[a](https://b.example/c_d)", r"\[a\](https://b.example/c_d)"),
        ("https://b.example/a_b~c#d", "https://b.example/a_b~c#d"),
        ("https://b.example/@everyone", "https://b.example/%40everyone"),
        ("https://b.example/<@1>", "https://b.example/\\<@\u200b1\\>"),
        ("@everyone", "@\u200beveryone"),
        ("<#5>", r"\<\#5\>"),
        ("a\\*b", r"a\\\*b"),
    ],
)
def test_nothing_in_a_foreign_text_is_markup(text: str, shown: str):
    assert escape_markup(text) == shown


def test_a_foreign_text_begins_no_line_unless_it_has_a_line_for_itself():
    said = TextPiece("one\n- two", is_authored=False)
    quote, end = TextPiece("> ", is_authored=True), TextPiece("\nEnd.", is_authored=True)
    assert write_post(AuthoredText.of([quote, said, end])) == "> one - two\nEnd."
    assert write_post(AuthoredText.of([said, end])) == "one\n- two\nEnd."
    assert write_post(AuthoredText.of([TextPiece("A:\n", is_authored=True), said])) == "A:\none\n- two"
    assert write_post("one\ntwo") == "one\ntwo"
