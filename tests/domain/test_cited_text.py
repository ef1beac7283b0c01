"""What an answer cites is found, and shown as configured, in whatever pieces the answer comes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.agent import CitationFormat
from denizen.domain.citation import Citation, CitationFault, DocumentRef
from denizen.domain.cited_text import (
    MAX_CLAIM_CHARS,
    UNKNOWN,
    UNPROVED,
    CitationMark,
    CitationReader,
    CitationWriter,
    UnmarkedText,
)

LINK = "https://github.com/ada/guide/blob/c0ffee/a.md?plain=1#L3-L9"


def marks(text: str) -> list[CitationMark]:
    reader = CitationReader()
    return [each for each in [*reader.feed(text), *reader.finish()] if isinstance(each, CitationMark)]


def refs(text: str) -> list[str]:
    return [str(ref) for mark in marks(text) for ref in mark.refs]


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
        (
            "[docs/a.md:1-2; docs/b c.md:4] [own/x.txt:1, shared/y.md:2]",
            ["docs/a.md:1-2", "docs/b c.md:4", "own/x.txt:1", "shared/y.md:2"],
        ),
        ("[1], [link](https://example.org/a.md), [x], [docs/../a.md:1], and/or, src/main.py:3, a.md", []),
        ("https://example.org/docs/a.md:3 and https://x.example/docs/a.md#L3", []),
        ("(docs/a.md:3)", ["docs/a.md:3"]),
        ("As docs/a.md:3 says", ["docs/a.md:3"]),
        ("in `docs/a.md:3-4`.", ["docs/a.md:3-4"]),
        ("in `docs/a.md`, lines 3-4.", ["docs/a.md:3-4"]),
        ("in **docs/a.md** (line 3)", ["docs/a.md"]),
        ("\u3010docs/a.md:3\u3011 \uff08docs/b.md:1\uff09", ["docs/a.md:3", "docs/b.md:1"]),
        ("\u3010docs/a.md\u2020L3-L5\u3011", ["docs/a.md:3-5"]),
        ("[Source: docs/a.md:3] [see docs/a.md]", ["docs/a.md:3", "docs/a.md"]),
        ("[Quelle: docs/a.md, Zeile 3] [voir docs/b.md lignes 3-4]", ["docs/a.md:3", "docs/b.md:3-4"]),
        (
            "[docs/a.md lines 3-4] [docs/a.md:3,5] [docs/a.md:3; 7-9]",
            ["docs/a.md:3-4", "docs/a.md:3", "docs/a.md:5", "docs/a.md:3", "docs/a.md:7-9"],
        ),
        ("[the guide](docs/a.md#L3) [it](<docs/b%20c.md#L3-L4>)", ["docs/a.md:3", "docs/b c.md:3-4"]),
        ("Ten.[^1]\n\n[^1]: docs/a.md:3\n[2] docs/b.md:1", ["docs/a.md:3", "docs/b.md:1"]),
        ("[a.md:3] a.md:4", ["a.md:3", "a.md:4"]),
        ("\u6839\u636edocs/a.md:3\uff0c", ["docs/a.md:3"]),
        (
            "/knowledge/docs/guide/a.md:3 docs\\b.md:3 docs/a\\_b.md:1",
            ["docs/guide/a.md:3", "docs/b.md:3", "docs/a_b.md:1"],
        ),
        ("docs/my file.md:3 says", ["docs/my file.md:3"]),
        ("`cat docs/a.md` shows it, `grep -n x docs/b.md:3` too", ["docs/b.md:3"]),
        ("```sh\ncat docs/a.md | sed -n 3p\nx: [docs/a.yml] docs/b.md:3\n```\n[docs/b.md:1]", ["docs/b.md:1"]),
        (
            "```\n[docs/a.md:1]\ndocs/c.md:2: Ten euros.\n```\n[docs/b.md:1]",
            ["docs/a.md:1", "docs/c.md:2", "docs/b.md:1"],
        ),
        ("```x``` [docs/a.md:1]", ["docs/a.md:1"]),
        ("````\nsee it in docs/a.md:1\n```\n", []),
        ("1. So:\n\n    ```yaml\n    x: [docs/a.yml]\n    ```\n    [docs/b.md:1]", ["docs/b.md:1"]),
        ("> ```\n> x: [docs/a.yml]\n> ```\n> [docs/b.md:1]", ["docs/b.md:1"]),
        (">> -\n>>\t````\n>> [docs/a.yml]\n>> ```\n>> [docs/b.yml]", []),
        ("~~~\n[docs/a.md:1]\n~~~\n[docs/b.md:1]", ["docs/a.md:1", "docs/b.md:1"]),
    ],
)
def test_places_are_found_however_they_are_written(text: str, found: list[str]) -> None:
    assert refs(text) == found


@pytest.mark.parametrize(
    ("text", "is_mention"),
    [
        ("docs/a.md:3", False),
        ("(docs/a.md:3)", False),
        ("[docs/a.md]", False),
        ("[guide/a.md:3]", False),
        ("[a.md:3]", False),
        ("[it](docs/a.md#L3)", False),
        ("docs/a.md", True),
        ("`docs/a.md`", True),
        ("(docs/a.md)", True),
        ("[it](docs/a.md)", True),
        ("guide/a.md:3", True),
        ("(guide/a.md:3)", True),
        ("[guide/a.yml]", True),
        ("a.md:3", True),
        ("/etc/a.md:1", True),
    ],
)
def test_what_may_be_talk_of_other_files_is_a_mention(text: str, is_mention: bool) -> None:
    assert [mark.is_mention for mark in marks(f"It is in {text}.")] == [is_mention]


class Stream:
    """A text that comes piece by piece; places in `docs/b.md` are not proved where there is a doubt."""

    def __init__(self, style: CitationFormat, doubt: CitationFault | None = None, link: str = "") -> None:
        self._unmarked, self._reader, self._writer = UnmarkedText(), CitationReader(), CitationWriter(style)
        self._doubt, self._link = doubt, link

    def feed(self, text: str) -> str:
        return self._write(self._reader.feed(self._unmarked.feed(text)))

    def finish(self) -> str:
        rest = self._write(self._reader.feed(self._unmarked.finish())) + self._write(self._reader.finish())
        return rest + self._writer.finish()

    def _write(self, pieces: Sequence[str | CitationMark]) -> str:
        return "".join(
            self._writer.text(each) if isinstance(each, str) else self._writer.mark(list(map(self._find, each.refs)))
            for each in pieces
        )

    def _find(self, ref: DocumentRef) -> Citation:
        return Citation(ref, link=self._link, doubt=self._doubt if ref.path == "docs/b.md" else None)


def show_citations(
    text: str | Iterable[str], style: CitationFormat, doubt: CitationFault | None = None, link: str = ""
) -> str:
    stream = Stream(style, doubt, link)
    return "".join(map(stream.feed, [text] if isinstance(text, str) else text)) + stream.finish()


TEXT = "One thing [docs/a.md:3-9]. Another [docs/b.md:1]. The first again [docs/a.md:3-9]."


@pytest.mark.proves("S-config-citation-format")
def test_citations_are_shown_inline_as_footnotes_or_not_at_all() -> None:
    assert show_citations(TEXT, CitationFormat.INLINE) == TEXT
    assert (
        show_citations("So it is [docs/a.md:3].", CitationFormat.INLINE, link=LINK)
        == f"So it is [docs/a.md:3](<{LINK}>)."
    )
    assert show_citations(TEXT, CitationFormat.FOOTNOTE) == (
        "One thing [1]. Another [2]. The first again [1].\n\n[1] [docs/a.md:3-9]\n[2] [docs/b.md:1]"
    )
    assert show_citations(TEXT, CitationFormat.NONE) == "One thing. Another. The first again."


@pytest.mark.parametrize("style", CitationFormat)
def test_what_is_not_proved_is_taken_out_and_marked_in_any_style(style: CitationFormat) -> None:
    shown = show_citations(TEXT, style, CitationFault.NOT_READ)
    assert f"Another {UNPROVED}." in shown
    assert "docs/b.md" not in shown


def test_of_several_places_in_one_the_proved_ones_stay() -> None:
    text = "So it is [docs/a.md:1; docs/b.md:2]."
    assert show_citations(text, CitationFormat.INLINE, CitationFault.NO_FILE) == "So it is [docs/a.md:1]."


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("We open at nine. A berth is ten euros [docs/a.md:1].", ["A berth is ten euros"]),
        ("We open at nine. [docs/a.md:1] A berth is ten euros.", ["We open at nine."]),
        ("We open at 9 [docs/a.md:1] and close at 10 [docs/a.md:2].", ["We open at 9", "and close at 10"]),
        ("We open at nine [docs/a.md:1][docs/b.md:2], [docs/c.md:3].", ["We open at nine"] * 3),
        ("According to [docs/a.md:1], we open at nine. A berth", [", we open at nine."]),
        ("docs/a.md:1 says that we open.\nSo", ["says that we open."]),
        ("- x\n- We open [docs/a.md:1]\n", ["- We open"]),
        ("The [opening hours](docs/a.md#L1) are long.", ["are long. opening hours"]),
    ],
)
def test_a_place_has_to_prove_its_part_of_the_sentence(text: str, claims: list[str]) -> None:
    assert [mark.claim for mark in marks(text)] == claims


@pytest.mark.parametrize(
    "text",
    [
        "Total " + "12 euros " * 888 + ". Source: docs/a.md:3",
        "b" * 500 + '."' + " " * 450 + "Source: docs/a.md:3",
        "x " * 300 + '."' + " " * 450 + "[docs/a.md:3]",
        "x " * 300 + " " * 450 + "y docs/a.md:3",
    ],
)
def test_the_longest_claim_is_the_end_of_its_sentence_in_whatever_pieces_it_comes(text: str) -> None:
    def claims(size: int) -> list[str]:
        reader = CitationReader()
        pieces = [piece for at in range(0, len(text), size) for piece in reader.feed(text[at : at + size])]
        return [piece.claim for piece in (*pieces, *reader.finish()) if isinstance(piece, CitationMark)]

    [claim] = claims(len(text))
    assert MAX_CLAIM_CHARS - 1 <= len(claim) <= MAX_CLAIM_CHARS
    assert claims(20) == claims(7) == claims(1) == [claim]


def test_a_place_knows_what_else_its_sentence_cites() -> None:
    first, second, third = marks("A [docs/a.md:1] [docs/b.md:2] and c [docs/c.md:3]. D")
    assert list(map(str, first.also)) == ["docs/b.md:2"]
    assert list(map(str, second.also)) == ["docs/a.md:1"]
    assert list(map(str, third.also)) == ["docs/a.md:1", "docs/b.md:2"]


@pytest.mark.parametrize("style", CitationFormat)
@pytest.mark.parametrize("mark", ["[docs/a.md:1]", "[docs/b.md:1]", "[docs/b.md:1] [docs/a.md:1]"])
def test_what_stands_behind_a_mark_does_not_become_its_link(style: CitationFormat, mark: str) -> None:
    for evil in (
        "(https://evil.example/(x))",
        "(http://e)(http://evil.example)",
        '(http://evil "x")',
        "[x]: http://evil",
    ):
        shown = show_citations(f"So it is {mark}{evil}", style, CitationFault.NOT_READ)
        assert "](http" not in shown and "][" not in shown


def test_a_place_that_stands_in_a_link_is_found_too() -> None:
    assert refs("[so](docs) [here]([docs/a.md:1])") == ["docs/a.md:1"]


def test_without_citations_only_the_space_in_front_of_each_goes() -> None:
    assert show_citations("-  [docs/a.md:1][docs/a.md:2] so", CitationFormat.NONE) == "-  so"
    assert show_citations("a [docs/a.md:1] [docs/a.md:2] b", CitationFormat.NONE) == "a b"


@given(st.lists(st.sampled_from(["[[", "[", "unknown", "]]", "]", "un", "known", "text ", "[[unknown]]"])))
def test_the_mark_for_what_is_unknown_is_taken_out_in_whatever_pieces_it_comes(pieces: list[str]) -> None:
    unmarked = UnmarkedText()
    shown = "".join(map(unmarked.feed, pieces)) + unmarked.finish()
    assert shown == "".join(pieces).replace(UNKNOWN, "")
    assert unmarked.has_found == (UNKNOWN in "".join(pieces))


WORDS = [
    "[docs/a.md:1]",
    "[docs/b.md:2]",
    "[docs/a.md:1; docs/b.md:2]",
    "[`docs/a.md`]",
    "`[docs/a.md]`",
    "[foo]",
    "[x]",
    "(https://e.example/x)",
    "(http",
    "(x y)",
    "(",
    ")",
    "[",
    "]",
    "`",
    " ",
    " ",
    "\t",
    "\n",
    "\n\n",
    "\n- ",
    "\n```\n",
    "```",
    "~~~",
    "\n   ````\n",
    "\n    ```\n",
    "\n> ```",
    " word",
    " word.",
    '"words that somebody has said"',
    "\u201e",
    '"',
    UNKNOWN,
    "[[unk",
    ":3",
    "a" * 310,
    "a" * 595,
]


@given(st.lists(st.sampled_from(WORDS), max_size=25), st.data(), st.sampled_from(CitationFormat))
def test_a_stream_shows_what_stands_there_in_the_end(
    words: list[str], data: st.DataObject, style: CitationFormat
) -> None:
    text = "".join(words)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=30)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    whole = show_citations(text, style, CitationFault.NOT_READ, LINK)
    assert show_citations(pieces, style, CitationFault.NOT_READ, LINK) == whole
    assert show_citations(iter(text), style, CitationFault.NOT_READ, LINK) == whole
    assert whole == whole.strip()


def test_text_without_brackets_goes_out_word_by_word() -> None:
    stream = Stream(CitationFormat.INLINE)
    assert list(map(stream.feed, ["A berth", " is ", "ten (10)", " euros.\n", "\nBye"])) == [
        "A",
        " berth is",
        " ten (10)",
        " euros.",
        "",
    ]
    assert stream.finish() == "\n\nBye"


def test_what_may_become_a_mark_waits_from_its_bracket_on_until_it_is_one_with_its_link() -> None:
    stream = Stream(CitationFormat.INLINE, link=LINK)
    assert list(map(stream.feed, ["So it is [", "docs/a.md:3", "-9]", "(http", "://e)", "."])) == [
        "So it is",
        "",
        "",
        "",
        "",
        f" [docs/a.md:3-9](<{LINK}>).",
    ]
    assert list(map(stream.feed, [" A list [1, 2", "] and [3,\n", "4]. "])) == [" A list", " [1, 2] and [3,", "\n4]."]


@pytest.mark.parametrize(
    "text", ["[" * 4000, "[" + "a" * 4000, "[docs/a.md:1](" + "a" * 4000, "[a" * 2000, "\u201e" * 4000]
)
def test_what_becomes_no_mark_waits_for_a_bounded_length_only(text: str) -> None:
    stream = Stream(CitationFormat.INLINE)
    shown = 0
    for count, char in enumerate(text, 1):
        shown += len(stream.feed(char))
        assert count - shown < 650


@given(st.text(alphabet="[]()`docs/a.md:;, 0123456789\n\"'L#-", max_size=300))
def test_any_text_keeps_what_is_no_citation(text: str) -> None:
    reader = CitationReader()
    pieces = [*reader.feed(text), *reader.finish()]
    if not any(isinstance(each, CitationMark) for each in pieces):
        assert show_citations(text, CitationFormat.INLINE) == text.strip()
    shown = show_citations(text, CitationFormat.NONE)
    assert all(each.strip() in shown for each in pieces if isinstance(each, str))


@pytest.mark.parametrize(
    "unit",
    [
        *("[", "[a", "(a", "docs/a.md:3 ", "docs/", "`a ", "[docs/a.md:3]", "and/or ", "[a.b/c, ", "docs/a\n"),
        *("So it is. ", "docs/a.md,,,", "docs/a.md:1,2,3,4 ", "[see see ", "\n```\n", "[x](docs/a"),
        *("http://a/docs/a.md ", "a" * 120),
    ],
)
def test_the_work_grows_with_the_text_whatever_is_in_it(unit: str) -> None:
    def work(size: int) -> int:
        count = 0

        def note(_frame: FrameType, event: str, _arg: object) -> None:
            nonlocal count
            count += event in ("call", "c_call")

        text = unit * (size // len(unit))
        sys.setprofile(note)
        try:
            refs(text)
        finally:
            sys.setprofile(None)
        return count

    assert work(8000) < 8 * work(2000) + 1000
