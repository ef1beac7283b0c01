"""Documents cut into passages: under their headings, with lines that are those of the file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.passage import MAX_CHARS, MAX_PASSAGES, MAX_TITLE_CHARS, passage_key, split_passages

GUIDE = """---
title: Harbour
---
# Harbour

We open at nine.

## Boats

```sh
# no heading
boat --hire
```

### Small

Two people.

Prices
------

- one
- two
"""


def list_passages(path: str, text: str) -> list[tuple[str, int, int]]:
    return [(each.title, each.first_line, each.last_line) for each in split_passages(path, text)]


def test_each_heading_of_markdown_begins_a_passage_that_knows_those_above() -> None:
    assert list_passages("guide.md", GUIDE) == [
        ("", 1, 3),
        ("Harbour", 4, 6),
        ("Harbour > Boats", 8, 13),
        ("Harbour > Boats > Small", 15, 17),
        ("Harbour > Prices", 19, 23),
    ]


def test_headings_of_rst_go_by_the_order_of_their_underlines() -> None:
    text = "Top\n***\n\none\n\nInner\n=====\n\ntwo\n\nNext\n****\n\nthree\n"
    assert list_passages("a.rst", text) == [("Top", 1, 4), ("Top > Inner", 6, 9), ("Next", 11, 14)]


def test_a_heading_without_text_goes_with_what_follows() -> None:
    assert list_passages("a.md", "# A\n\n## B\n\ntext\n") == [("A > B", 1, 5)]


@pytest.mark.parametrize("text", ["a: 1\n---\nb: 2\n", "# not one\n", "```\n# no\n"])
def test_other_files_have_no_headings(text: str) -> None:
    assert {title for title, _, _ in list_passages("a.yaml", text)} == {""}


def test_a_table_and_a_rule_are_no_headings() -> None:
    text = "| a | b |\n|---|---|\n| 1 | 2 |\n\n- item\n---\n\ntext\n"
    assert {title for title, _, _ in list_passages("a.md", text)} == {""}


def test_long_sections_are_cut_behind_paragraphs() -> None:
    paragraph = "word " * 100
    found = split_passages("a.md", f"# Long\n\n{paragraph}\n\n{paragraph}\n\n{paragraph}\n\n{paragraph}\n")
    assert [(each.first_line, each.last_line) for each in found] == [(1, 5), (7, 9)]
    assert all(each.headings == ("Long",) for each in found)


def test_a_line_that_is_too_long_is_several_passages_of_that_line() -> None:
    found = split_passages("data.json", "{\n" + "x" * (3 * MAX_CHARS + 5) + "\n}\n")
    assert [(each.first_line, each.last_line) for each in found] == [(1, 1), (2, 2), (2, 2), (2, 2), (2, 3)]
    assert sum(each.text.count("x") for each in found) == 3 * MAX_CHARS + 5


def test_a_document_has_so_many_passages_at_most() -> None:
    assert len(split_passages("a.txt", ("x" * MAX_CHARS + "\n\n") * (MAX_PASSAGES + 9))) == MAX_PASSAGES
    assert split_passages("a.md", "") == split_passages("a.md", "\n \n") == []


def test_the_key_is_that_of_the_words_in_their_source() -> None:
    (first,) = split_passages("a.md", "# T\n\ntext\n")
    (moved,) = split_passages("b.md", "\n\n# T\n\ntext\n")
    (other,) = split_passages("a.md", "# U\n\ntext\n")
    assert passage_key("s", first) == passage_key("s", moved)
    assert len({passage_key("s", first), passage_key("s", other), passage_key("t", first)}) == 3


LINES = st.lists(
    st.sampled_from(
        ["", " ", "# A", "## B", "```", "~~~~", "---", "===", "word", "- x", "| a |", "y" * 700, "z" * 3000]
    )
)


@given(LINES, st.sampled_from(["a.md", "a.rst", "a.txt", "a.json"]))
def test_every_line_that_says_something_is_in_a_passage_and_none_twice(lines: list[str], path: str) -> None:
    found = split_passages(path, "\n".join(lines))
    assert "".join(each.text for each in found).split() != [] or not "".join(lines).strip()
    said = "".join("".join(each.text.split()) for each in found)
    assert sorted(said) == sorted("".join("".join(lines).split()))
    assert all(0 < len(each.text) <= MAX_CHARS for each in found)
    assert all(1 <= each.first_line <= each.last_line <= len(lines) for each in found)
    starts = [each.last_line for each in found]
    assert starts == sorted(starts)
    assert [each.number for each in found] == list(range(len(found)))


def test_a_long_heading_stands_above_its_passages_in_a_few_words_and_costs_no_more_than_its_length() -> None:
    """Looked for with one pass: a heading of blanks and marks once took time that grew with its square."""
    text = "# " + "word " * 2000 + "\n\n" + "# a" + " #" * 200_000 + "b\n\ntext\n"
    found = split_passages("a.md", text)
    assert all(len(title) <= MAX_TITLE_CHARS for each in found for title in each.headings)
    assert found[-1].text.endswith("text")
