"""An answer that goes on to speak for others is cut (inventory C26, C27, E6)."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.impersonation import ImpersonationFilter

NAMES = ("Ana", "Bob (he/him)", "a.b*c", "Ada Bot")
WORDS = st.sampled_from(["Ana", "Bob (he/him)", "ada", "<", ">", ":", "\n", " ", "hi", "A", "note", "axbxc:", "Ana:"])
TEXTS = st.lists(WORDS, max_size=12).map("".join)


def filter_text(text: str, sizes: tuple[int, ...] = (), own: str = "ada") -> tuple[str, bool]:
    guard = ImpersonationFilter(own, NAMES)
    shown, start = "", 0
    for size in sizes:
        shown += guard.feed(text[start : start + size])
        start += size
    shown += guard.feed(text[start:]) + guard.finish()
    return shown, guard.is_hit


@pytest.mark.proves("C26", "E6", "E6-names")
@pytest.mark.parametrize(
    "name", ["Ana:", "<Ana>:", "Ana>:", "<Ana:", "Bob (he/him):", "<Bob (he/him)>:", "a.b*c:", "ada:", "<ada>:"]
)
def test_a_line_that_begins_with_a_name_and_a_colon_ends_the_answer_before_it(name: str) -> None:
    assert filter_text(f"Hello.\n{name} and I say this.\nMore.") == ("Hello.\n", True)


@pytest.mark.proves("E6-names")
@pytest.mark.parametrize("line", ["Anna: x", "axbxc: x", "Bob: x", "Ana, listen: x", "Hi Ana: x", " Ana: x", "Ana : x"])
def test_names_are_taken_literally_and_at_the_beginning_of_a_line_only(line: str) -> None:
    text = f"Hello.\n{line}"
    assert filter_text(text) == (text, False)


@pytest.mark.proves("C24", "C27", "E6")
@pytest.mark.parametrize("echo", ["ada: ", "<ada>: ", "ada:", "\n ada:\n"])
def test_the_agents_own_name_at_the_very_beginning_is_an_echo_and_goes(echo: str) -> None:
    assert filter_text(f"{echo}Hello.") == ("Hello.", False)


@pytest.mark.proves("C27", "E6")
@pytest.mark.parametrize("text", ["Ana: that is my view.", "\n\nAna: yes", "Ana", "ad", "", "\n"])
def test_nothing_else_at_the_beginning_is_touched(text: str) -> None:
    assert filter_text(text) == (text, False)


@pytest.mark.proves("E6")
@given(TEXTS, st.lists(st.integers(1, 4), max_size=20).map(tuple))
def test_how_the_stream_is_cut_into_pieces_does_not_matter(text: str, sizes: tuple[int, ...]) -> None:
    assert filter_text(text, sizes) == filter_text(text)


@given(TEXTS)
def test_the_agents_own_text_without_a_name_at_a_line_start_is_never_cut(text: str) -> None:
    shown, is_hit = filter_text(text)
    names = "|".join(map(re.escape, ("ada", *NAMES)))
    if not re.search(rf"^<?(?:{names})>?:", text.lstrip(), re.MULTILINE):
        assert (shown, is_hit) == (text, False)
    assert shown in text
    assert is_hit or not re.search(rf"\n<?(?:{names})>?:", shown.lstrip())


@given(st.text(st.characters(codec="utf-8"), max_size=40))
def test_any_text_without_a_known_name_comes_through_whole(text: str) -> None:
    if "Ana" not in text and "ada" not in text:
        assert filter_text(text, tuple([1] * len(text))) == (text, False)


def test_only_what_may_still_become_a_name_is_held_back() -> None:
    guard = ImpersonationFilter("ada", NAMES)
    assert guard.feed("Hello") == "Hello"
    assert guard.feed(" there.\nAn") == " there.\n"
    assert guard.feed("d so") == "And so"
    assert guard.feed("\n<Ana>") == "\n"
    assert guard.finish() == "<Ana>"
