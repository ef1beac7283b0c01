"""Texts are ranked by the words that they share with a question."""

from __future__ import annotations

from denizen.domain.bm25 import TitledText, rank_by_bm25, weigh_word

WEIGHTS = {"tea": 1.0, "ferret": 4.0}
FORMS = {"tea": "tea", "teas": "tea", "ferret": "ferret"}


def rank(*texts: str, title: str = "", **options: float) -> list[str]:
    titled = {text: TitledText(text.split()) for text in texts}
    if title:
        titled[title] = TitledText(title.split(), title.split()[:1])
    return [match.key for match in rank_by_bm25(WEIGHTS, FORMS, titled, **options)]


def test_a_word_that_few_have_weighs_more_and_one_that_all_have_next_to_nothing() -> None:
    assert weigh_word(1, 1000) > weigh_word(500, 1000) > weigh_word(1000, 1000) > 0
    assert rank("tea tea tea", "ferret x x") == ["ferret x x", "tea tea tea"]


def test_forms_of_a_word_count_together_and_texts_without_any_are_left_out() -> None:
    assert rank("tea x", "tea teas", "coffee") == ["tea teas", "tea x"]


def test_a_long_text_is_held_back_unless_length_weighs_nothing() -> None:
    short, long = "tea x", "tea x x x x x x"
    assert rank(long, short) == [short, long]
    assert rank(long, short, length_weight=0) == [long, short]


def test_a_word_of_the_title_counts_for_more() -> None:
    assert rank("x tea y", title="tea x y") == ["tea x y", "x tea y"]


def test_of_equals_the_first_comes_first_however_the_words_are_ordered() -> None:
    for texts in (["tea ferret", "ferret tea"], ["ferret tea", "tea ferret"]):
        assert rank(*texts) == texts


def test_without_texts_nothing_is_ranked() -> None:
    assert rank() == []
