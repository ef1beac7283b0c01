"""What search takes for a word, and what an excerpt shows."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.words import MAX_MARKS, SEARCHED_CHARS, WORD_CHARS, make_excerpt, split_words

anything = st.text(st.characters(codec=None), max_size=200)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hello, World! don't 3D-print foo_bar", ["hello", "world", "don", "t", "3d", "print", "foo", "bar"]),
        ("Über CAFÉ naïve Straße", ["uber", "cafe", "naive", "strasse"]),
        ("ﬁne ① Ⅷ ½", ["fine", "1", "viii", "1", "2"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("日本語です。東京", ["日本語です", "東京"]),
        ("가나 다라", ["가나", "다라"]),
        ("nul\x00l half\ud83d", ["nul", "l", "half"]),
        ("* \" ' () 🙂 \n", []),
        ("", []),
    ],
)
def test_words_are_runs_of_letters_and_digits_without_case_and_accents(text: str, words: list[str]) -> None:
    assert split_words(text) == words


@given(anything)
def test_splitting_words_again_changes_nothing(text: str) -> None:
    words = split_words(text)
    assert split_words(" ".join(words)) == words
    assert all(word and not word.isspace() and "\x00" not in word for word in words)


def test_long_words_and_long_texts_are_cut_the_same_way_for_text_and_question() -> None:
    assert split_words("x" * 500) == split_words("X" * 600) == ["x" * WORD_CHARS]
    assert split_words("é" * 500) == ["e" * WORD_CHARS]
    assert "end" not in split_words("a " * SEARCHED_CHARS + "end")


@given(anything, st.lists(st.text(max_size=8), max_size=3))
def test_an_excerpt_is_one_short_line_of_any_text(text: str, words: list[str]) -> None:
    excerpt = make_excerpt(text, words, limit_chars=40)
    assert len(excerpt) <= 42
    assert not {"\n", "\r", "\t"} & set(excerpt)


def test_an_excerpt_shows_the_first_of_the_words_with_what_is_around_it() -> None:
    text = "hay " * 100 + "the Café is open " + "straw " * 100
    assert "the Café is open" in make_excerpt(text, ["cafe"], limit_chars=60)
    assert make_excerpt(text, ["cafe"], limit_chars=60).startswith("…")
    assert make_excerpt(text, ["cafe"], limit_chars=60).endswith("…")


def test_an_excerpt_finds_another_form_of_a_word_when_the_word_itself_is_not_there() -> None:
    text = "hay " * 100 + "it was deployed today " + "straw " * 100
    assert "deployed" in make_excerpt(text, ["deploying"], limit_chars=60)


def test_an_excerpt_without_any_of_the_words_is_the_beginning() -> None:
    assert make_excerpt("one two " * 50, ["zebra"], limit_chars=20) == "one two one two one…"
    assert make_excerpt("short", ["zebra"]) == "short"


def test_very_many_marks_on_one_letter_count_as_a_few() -> None:
    """Ordering them takes time that grows with the square of their number."""
    assert split_words("e" + "\u0316\u0301" * 50_000 + " b") == ["e"]
    assert split_words("e" + "\u0316\u0301" * 500 + " b")[1:] == ["b"]
    assert split_words("\u1e69") == split_words("s\u0323\u0307") == ["s"]


def test_very_many_characters_that_consist_of_marks_count_as_a_few() -> None:
    for mountain in ("\u0f73\uff9e", "\u0f73", "\u0f81\u0f75\u0f72"):
        (word,) = split_words("e" + mountain * 500)
        assert len(word) <= 1 + MAX_MARKS
        assert split_words("e" + mountain * 500 + " b") == [word, "b"]
        assert split_words("e" + mountain * 40_000) == [word]


marked = st.text(
    st.sampled_from("aeZ \u00fc\u1e69\uac01\uff9e\u304b\u0f73\u0f40\u0301\u0323\u05b0\ufb01\ud83d"), max_size=15
)


@given(anything.map(lambda text: text[: MAX_MARKS // 4]) | marked)
def test_marks_that_are_few_count_as_the_standard_has_them(text: str) -> None:
    """Normalised as a whole."""
    plain = re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFKD", text))
    folded = unicodedata.normalize("NFC", plain).casefold()
    parts = [c if c.isalnum() or (unicodedata.category(c)[0] == "M" and c > "\x7f") else " " for c in folded]
    assert split_words(text) == "".join(parts).split()
