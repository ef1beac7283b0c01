"""What an answer cites is found, and shown as configured."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.agent import CitationFormat
from denizen.domain.citation import Citation, Doubt, Ref
from denizen.domain.cited_text import UNKNOWN, UNPROVED, Mark, Unmarked, find_marks, show

LINK = "https://github.com/ada/guide/blob/c0ffee/a.md?plain=1#L3-L9"


def refs(text: str) -> list[str]:
    return [str(ref) for mark in find_marks(text) for ref in mark.refs]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("So it is [docs/a.md:3-9].", ["docs/a.md:3-9"]),
        ("So it is [docs/a.md:3].", ["docs/a.md:3"]),
        ("[docs/a.md#L3-L9]", ["docs/a.md:3-9"]),
        ("[docs/a.md:L3\u2013L9]", ["docs/a.md:3-9"]),
        ("[docs/a.md, lines 3-9]", ["docs/a.md:3-9"]),
        ("[`docs/a.md:3-9`]", ["docs/a.md:3-9"]),
        ("[./docs/a.md:9-3]", ["docs/a.md:9"]),
        ("[docs/a.md]", ["docs/a.md"]),
        ("[docs/a.md:3](https://made.up/link) and more", ["docs/a.md:3"]),
        ("[docs/a.md:1-2; docs/b c.md:4] [own/x.txt:1, shared/y.md:2]",
         ["docs/a.md:1-2", "docs/b c.md:4", "own/x.txt:1", "shared/y.md:2"]),
        ("[1], [link](https://example.org/a.md), [x], [a.md:3], [see docs/a.md], [docs/../a.md:1], [/etc/a.md:1]", []),
        ("```\n[docs/a.md:1]\n```\n[docs/b.md:1]", ["docs/b.md:1"]),
        ("````\n[docs/a.md:1]\n```\n", []),
    ],
)  # fmt: skip
def test_places_are_found_however_they_are_written(text: str, found: list[str]) -> None:
    assert refs(text) == found


def told(text: str, style: CitationFormat, doubt: Doubt | None = None, link: str = "") -> str:
    def find(mark: Mark, ref: Ref) -> Citation:
        return Citation(ref, link=link, doubt=doubt if ref.path == "docs/b.md" else None)

    return show(text, find_marks(text), find, style)


TEXT = "One thing [docs/a.md:3-9]. Another [docs/b.md:1]. The first again [docs/a.md:3-9]."


@pytest.mark.proves("S-config-citation-format")
def test_citations_are_shown_inline_as_footnotes_or_not_at_all() -> None:
    assert told(TEXT, CitationFormat.INLINE) == TEXT
    assert told("So it is [docs/a.md:3].", CitationFormat.INLINE, link=LINK) == f"So it is [docs/a.md:3](<{LINK}>)."
    assert told(TEXT, CitationFormat.FOOTNOTE) == (
        "One thing [1]. Another [2]. The first again [1].\n\n[1] [docs/a.md:3-9]\n[2] [docs/b.md:1]"
    )
    assert told(TEXT, CitationFormat.NONE) == "One thing. Another. The first again."


@pytest.mark.parametrize("style", CitationFormat)
def test_what_is_not_proved_is_taken_out_and_marked_in_any_style(style: CitationFormat) -> None:
    shown = told(TEXT, style, Doubt.NOT_READ)
    assert f"Another {UNPROVED}." in shown
    assert "docs/b.md" not in shown


def test_of_several_places_in_one_the_proved_ones_stay() -> None:
    text = "So it is [docs/a.md:1; docs/b.md:2]."
    assert told(text, CitationFormat.INLINE, Doubt.NO_FILE) == "So it is [docs/a.md:1]."


def test_words_in_quotation_marks_right_before_it_belong_to_a_citation() -> None:
    def quoted(text: str) -> list[str]:
        return [mark.quoted for mark in find_marks(text)]

    assert quoted('It says "we open at nine each day" [docs/a.md:1].') == ["we open at nine each day"]
    assert quoted("\u201ewe open at nine each day\u201c [docs/a.md:1]") == ["we open at nine each day"]
    assert quoted('"we open" [docs/a.md:1] "and we close at ten in the evening" [docs/b.md:1]') == [
        "", "and we close at ten in the evening",
    ]  # fmt: skip
    assert quoted('"we open at nine each day". That was long ago, and is not so any more. [docs/a.md:1]') == [""]


@pytest.mark.parametrize("style", [CitationFormat.INLINE, CitationFormat.FOOTNOTE])
def test_what_stands_behind_a_proved_place_does_not_become_its_link(style: CitationFormat) -> None:
    for evil in ("(https://evil.example/(x))", "(http://e)(http://evil.example)", "[x]: http://evil.example"):
        shown = told(f"So it is [docs/a.md:1]{evil}", style)
        assert "](https://evil" not in shown and "](http://evil" not in shown and "][" not in shown


@given(st.lists(st.sampled_from(["[[", "[", "unknown", "]]", "]", "un", "known", "text ", "[[unknown]]"])))
def test_a_stream_shows_everything_but_the_mark_for_what_is_unknown(pieces: list[str]) -> None:
    unmarked = Unmarked()
    shown = "".join(map(unmarked.feed, pieces)) + unmarked.finish()
    assert UNKNOWN not in shown
    if UNKNOWN not in "".join(pieces):
        assert shown == "".join(pieces)


@given(st.text(alphabet="[]()`docs/a.md:;, 0123456789\n\"'L#-", max_size=300))
def test_any_text_keeps_what_is_no_citation(text: str) -> None:
    marks = find_marks(text)
    assert all(0 <= mark.start < mark.end <= len(text) for mark in marks)
    assert show(text, [], lambda _mark, ref: Citation(ref), CitationFormat.INLINE) == text
    kept = [text[a.end : b.start] for a, b in pairwise(marks)]
    shown = show(text, marks, lambda _mark, ref: Citation(ref), CitationFormat.NONE)
    assert all(piece in shown for piece in kept)
