"""How an answer becomes messages: where it is cut, what stays whole, and that nothing is lost."""

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from denizen.domain.markup import list_fences
from denizen.domain.split import MIN_LIMIT, split_text

WORD = "lorem"
ALPHABET = "ab .!\n\t`~*_|#->[]()<>@:/1é\u0301\u200d👍🏽🇩🇪。"


def words(count: int, word: str = WORD) -> str:
    return " ".join([word] * count)


def strip_spaces(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize("text", ["hello", "a\nb", "  - indented\n  - list", "```py\nx = 1\n```", "x" * 2000])
def test_a_text_that_fits_is_one_piece_as_it_is(text: str) -> None:
    assert split_text(text) == [text]


@pytest.mark.parametrize("text", ["", " ", "\n\n \t\n", "```", "\n```py\n\n"])
def test_a_text_without_content_has_no_pieces(text: str) -> None:
    assert split_text(text) == []


@pytest.mark.parametrize("limit", [MIN_LIMIT - 1, 0, -1])
def test_a_limit_too_small_for_fences_is_refused(limit: int) -> None:
    with pytest.raises(ValueError, match=str(limit)):
        split_text("text", limit=limit)


@pytest.mark.proves("V11", "X-split", "SW11", "LW7")
def test_a_long_answer_is_cut_at_2000_code_points_and_nothing_of_it_is_lost() -> None:
    text = "\n\n".join(f"Paragraph {n} says 👍 that {words(60)}." for n in range(40))
    pieces = split_text(text)
    assert len(pieces) > 1
    assert max(map(len, pieces)) <= 2000
    assert "\n\n".join(pieces) == text


@pytest.mark.proves("T39", "C21")
@pytest.mark.parametrize(
    ("text", "first"),
    [
        (f"{words(6)}\n\n{words(4)}\n{words(30)}", words(6)),  # a blank line past the middle
        (f"{words(6)}\n{words(4)}. {words(30)}", words(6)),  # a line end past the middle
        (f"{words(1)}\n{words(6)}. {words(30)}", f"{words(1)}\n{words(6)}."),  # a line end before it: a sentence
        (f"{words(1)}\n{words(30)}", f"{words(1)}\n{words(9)}"),  # a space
        (f"{words(1)} {'x' * 100}", words(1)),  # the only space, however early
        (f"{words(1)}\n{'x' * 100}", words(1)),  # the only line end, however early
        ("x" * 100, "x" * 60),  # hard
        ("文" * 40 + "。" + "文" * 60, "文" * 40 + "。"),
    ],
)
def test_a_cut_is_at_a_line_end_past_the_middle_else_a_sentence_else_a_space_else_hard(text: str, first: str) -> None:
    pieces = split_text(text, limit=60)
    assert pieces[0] == first
    assert strip_spaces("".join(pieces)) == strip_spaces(text)


@pytest.mark.proves("C21")
def test_runs_of_blank_lines_collapse_outside_of_code_unless_they_are_kept() -> None:
    text = "one\n\n \n\n\ntwo\n\n```\na\n\n\n\nb\n```\n\n\n\nthree"
    assert split_text(text) == ["one\n\ntwo\n\n```\na\n\n\n\nb\n```\n\nthree"]
    assert split_text(text, collapse_blank_lines=False) == [text]


def test_a_line_keeps_its_indentation_behind_a_cut() -> None:
    text = f"- {words(7)}\n  - {words(4)}\n    - {words(4)}"
    assert split_text(text, limit=50) == [f"- {words(7)}", f"  - {words(4)}", f"    - {words(4)}"]


def test_a_line_of_a_list_stays_whole_where_it_fits() -> None:
    text = "Short.\n" + "\n".join(f"- {words(9)}, {n}" for n in range(20))
    pieces = split_text(text, limit=62)
    assert pieces[0] == "Short."
    assert [line for piece in pieces for line in piece.split("\n")] == text.split("\n")


def test_a_heading_is_not_left_alone_at_the_end_of_a_piece() -> None:
    text = f"{words(7)}\n\n## Title\n\n{words(8)}"
    assert split_text(text, limit=60) == [words(7), f"## Title\n\n{words(8)}"]


@pytest.mark.parametrize(
    "whole",
    [
        "[the text](https://example.org/a(b)c?d=e)",
        "[a long text with `code` in it](<https://x.org/a b>)",
        '![image](https://example.org/cat.png "a cat, asleep")',
        "https://example.org/a-very-long/path.html?x=1",
        "<https://example.org/no-preview/of/this>",
        "<@123456789012345678>",
        "<@&123456789012345678>",
        "<:party_parrot_dancing_on_a_table:123456789>",
        "</command with a sub command:12345678901234>",
        "`a span of inline code, with spaces`",
        "``a span with a ` tick, and spaces``",
        "**bold words that stand together now**",
        "||a spoiler that must not be seen||",
    ],
)
@pytest.mark.parametrize("before", range(0, 56, 5))
def test_what_loses_its_meaning_when_cut_stays_whole(whole: str, before: int) -> None:
    text = f"{'x' * before} ({whole}), {words(20)}"
    pieces = split_text(text, limit=60)
    assert any(whole in piece for piece in pieces)
    assert strip_spaces("".join(pieces)) == strip_spaces(text)


@pytest.mark.parametrize(
    "cluster", ["👩\u200d👩\u200d👧\u200d👦", "👍🏽", "🇩🇪", "e\u0301\u0323", "\u1112\u1161\u11ab", "❤️"]
)
def test_a_hard_cut_spares_what_people_see_as_one_character(cluster: str) -> None:
    for before in range(40, 50):
        pieces = split_text("x" * before + cluster * 30, limit=50)
        assert "".join(pieces) == "x" * before + cluster * 30
        assert all(
            not piece.lstrip("x") or piece.lstrip("x").count(cluster) * len(cluster) == len(piece.lstrip("x"))
            for piece in pieces
        )


def test_an_indentation_or_a_mark_behind_it_does_not_break_a_link() -> None:
    link = f"[x](https://example.org/{'y' * 35})"
    assert len(link) == 60
    assert split_text(f"   {link} {words(5)}", limit=60)[0] == link
    assert split_text(f"xx{link}\u0301\u0301{'x' * 60}", limit=62)[0] == "xx"


def test_a_link_longer_than_a_piece_is_cut_all_the_same() -> None:
    text = f"see https://example.org/{'y' * 200} there"
    pieces = split_text(text, limit=50)
    assert max(map(len, pieces)) <= 50
    assert strip_spaces("".join(pieces)) == strip_spaces(text)


@pytest.mark.proves("CW9", "X-split")
def test_a_block_of_code_that_fits_into_one_piece_is_moved_rather_than_cut() -> None:
    code = "```py\n" + "\n".join(f"print({n})" for n in range(10)) + "\n```"
    text = f"{words(30)}\n{code}\n{words(30)}"
    pieces = split_text(text, limit=220)
    assert pieces == [words(30), f"{code}\n{words(20)}", words(10)]


@pytest.mark.proves("CW9", "X-split")
@pytest.mark.parametrize(
    ("opener", "closer", "again"),
    [
        ("```python", "```", "```python"),
        ("```", "```", "```"),
        ("~~~rust", "~~~", "~~~rust"),
        ("`````md", "`````", "`````md"),
        ("   ```js", "   ```", "   ```js"),
        ("> ```sh", "> ```", "> ```sh"),
        ("- ```sh", "  ```", "  ```sh"),
    ],
)
def test_a_long_block_is_closed_at_the_cut_and_opened_again_with_its_language(
    opener: str, closer: str, again: str
) -> None:
    lines = [f"    line({n})" for n in range(40)]
    text = "\n".join(["Here it is:", opener, *lines, closer])
    pieces = split_text(text, limit=120)
    assert pieces[0].startswith(f"Here it is:\n{opener}\n    line(0)\n")
    assert all(piece.startswith(f"{again}\n    line(") for piece in pieces[1:])
    assert all(piece.endswith(f")\n{closer}") for piece in pieces)
    assert re.findall(r"    line\(\d+\)", "\n".join(pieces)) == lines


def test_a_long_block_begins_in_a_piece_of_which_less_than_half_is_taken() -> None:
    code = "\n".join(f"line({n})" for n in range(100))
    early = split_text(f"{words(15)}\n```\n{code}\n```", limit=200)
    assert early[0].startswith(f"{words(15)}\n```\nline(0)\n") and early[0].endswith("\n```")
    late = split_text(f"{words(20)}\n```\n{code}\n```", limit=200)
    assert late[0] == words(20) and late[1].startswith("```\nline(0)\n")
    titled = split_text(f"{words(15)}\n## Code\n```\n{'x' * 150}\ny\n{code}\n```", limit=200)
    assert titled[0] == words(15) and titled[1].startswith("## Code\n```\nxxx")


def test_the_rest_of_a_block_is_followed_by_text_and_not_cut_at_its_blank_lines() -> None:
    text = "```\n" + "\n\n".join(f"line({n})" for n in range(17)) + f"\n```\n{'y' * 60}\n{'z' * 60}"
    pieces = split_text(text, limit=100)
    assert all(piece.count("```") in (0, 2) for piece in pieces)
    assert "\n".join(pieces).endswith(f"\n```\n{'y' * 60}\n{'z' * 60}")


def test_blank_code_and_indentation_wider_than_a_piece_leave_no_blank_blocks() -> None:
    assert split_text("```py\n" + "\n" * 100 + "x = 1\n```", limit=60) == ["```py\nx = 1\n```"]
    assert split_text("```py\na\n" + " " * 200 + "x = 1\n```", limit=60) == ["```py\na\n```", "```py\nx = 1\n```"]


def test_a_fence_that_would_fill_a_piece_is_cut_like_prose() -> None:
    text = f"```{'x' * 70}\n{words(20)}\n```"
    pieces = split_text(text, limit=60)
    assert max(map(len, pieces)) <= 60
    assert strip_spaces("".join(pieces)) == strip_spaces(text)


def test_line_ends_of_other_systems_are_line_ends() -> None:
    assert split_text("a\r\n\r\n\r\nb\rc") == ["a\n\nb\nc"]


def test_a_line_of_code_longer_than_a_piece_is_cut_within_fences() -> None:
    text = f"```py\n{words(30)}\n{'x' * 200}\n```"
    pieces = split_text(text, limit=80)
    assert all(piece.startswith("```py\n") and piece.endswith("\n```") and len(piece) <= 80 for piece in pieces)
    assert strip_spaces("".join(piece[6:-4] for piece in pieces)) == strip_spaces(text[6:-4])


def test_a_block_of_code_is_closed_when_the_text_leaves_it_open() -> None:
    assert split_text("Look:\n```py\nx = 1\n") == ["Look:\n```py\nx = 1\n```"]
    assert split_text("Look:\n```py\n") == ["Look:"]
    pieces = split_text("```py\n" + "x = 1\n" * 50, limit=100)
    assert all(piece.startswith("```py\nx = 1\n") and piece.endswith("x = 1\n```") for piece in pieces)


def test_a_fence_at_the_end_of_a_line_of_code_closes_the_block() -> None:
    assert split_text(f"```py\nx = 1```\n{words(17)}", limit=60) == [f"```py\nx = 1```\n{words(7)}", words(10)]


def test_a_block_is_not_opened_again_for_its_last_blank_lines() -> None:
    text = "```\n" + "x = 1\n" * 12 + "\n" * 90 + "```\nThe end."
    pieces = split_text(text, limit=90)
    assert pieces == ["```\n" + "x = 1\n" * 12 + "```", "The end."]


@settings(max_examples=150)
@given(st.text(ALPHABET, max_size=400), st.integers(MIN_LIMIT, 120), st.booleans())
def test_any_text_gives_pieces_that_fit_and_are_not_blank(text: str, limit: int, collapse: bool) -> None:
    pieces = split_text(text, limit=limit, collapse_blank_lines=collapse)
    assert all(piece.strip() and len(piece) <= limit for piece in pieces)


@settings(max_examples=100)
@given(st.text(ALPHABET.replace("`", "").replace("~", ""), max_size=400), st.integers(MIN_LIMIT, 120))
def test_without_code_only_whitespace_at_cuts_is_lost(text: str, limit: int) -> None:
    assert strip_spaces("".join(split_text(text, limit=limit))) == strip_spaces(text)


ATOMS = st.sampled_from(
    ["[a b](https://x.org/y)", "https://x.org/path?q=1", "<@123456789>", "<a:wave:99>", "`in line`", "**so bold**"]
)
PLAIN = st.text("abc .,\n", min_size=1, max_size=60)
CODE = st.lists(st.text("xyz ()=", max_size=30).map(lambda line: f"#{line}"), max_size=20)
BLOCKS = st.one_of(
    PLAIN.map(lambda text: ("text", text)),
    ATOMS.map(lambda atom: ("atom", atom)),
    st.tuples(st.sampled_from(["py", "rust", ""]), CODE).map(lambda block: ("code", block)),
)


@settings(max_examples=120)
@given(st.lists(BLOCKS, max_size=12), st.integers(MIN_LIMIT, 150))
def test_every_piece_of_a_document_renders_alone_and_together_they_say_the_same(
    blocks: list[tuple[str, str | tuple[str, list[str]]]], limit: int
) -> None:
    text, atoms, code = "", list[str](), list[tuple[str, str]]()
    for _, block in blocks:
        if isinstance(block, tuple):
            language, lines = block
            text += "\n".join(["", f"```{language}", *lines, "```", ""])
            code += [(language, strip_spaces(line)) for line in lines]
        else:
            text += f"{block} "
            atoms += [block] if _ == "atom" else []
    pieces = split_text(text, limit=limit)
    assert all(len(piece) <= limit for piece in pieces)
    assert all(fence.is_closed for piece in pieces for fence in list_fences(piece))
    assert all(sum(piece.count(atom) for piece in pieces) >= atoms.count(atom) for atom in atoms)
    shown = [
        (fence.opener[3:], strip_spaces(line))
        for piece in pieces
        for fence in list_fences(piece)
        for line in piece[fence.body_start : fence.body_end].splitlines()
    ]
    assert shown == code
    said = "".join(line for piece in pieces for line in piece.splitlines() if not line.startswith("```"))
    meant = "".join(line for line in text.splitlines() if not line.startswith("```"))
    assert strip_spaces(said) == strip_spaces(meant)


@pytest.mark.parametrize(
    "unit",
    [
        "word ",
        "[",
        "](",
        "`",
        "`` ` ",
        "**a",
        "||",
        "> ",
        "\n- x",
        "```\n",
        "~~~~\n",
        "<@1>",
        "http://",
        "# a\n",
        "é\u0301",
        "🇩",
        "[a](b",
        "[[a]",
        "\n \n",
        " ",
        "\\",
        "- ```\n",
        "_ _",
        "x" * 70 + "\n",
        "a.) ",
    ],
)
def test_long_and_hostile_texts_are_split_too(unit: str) -> None:
    pieces = split_text(unit * (120_000 // len(unit)))
    assert all(piece.strip() and len(piece) <= 2000 for piece in pieces)


def test_pieces_of_prose_are_filled_at_least_half() -> None:
    pieces = split_text("\n\n".join(words(n % 40 + 1) + "." for n in range(300)))
    assert all(len(one) + len(two) > 2000 for one, two in pairwise(pieces))
