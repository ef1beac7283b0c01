"""The words of a search that select passages: rare ones by themselves, common ones two by two."""

from __future__ import annotations

import pytest

from denizen.adapters.store.word_search import MAX_SELECTED, WordChoice, choose_words

TOTAL = 1_000_000


def test_rare_words_select_the_rarest_first_and_common_ones_do_not() -> None:
    assert choose_words({"the": 900_000, "relay": 1000, "port": 500}, TOTAL) == WordChoice(["port", "relay"], {})


def test_words_that_are_all_common_select_two_by_two() -> None:
    chosen = choose_words({"value": 30_000, "type": 20_000, "file": 40_000}, TOTAL)
    assert chosen == WordChoice([], {"value": ["type"]})


def test_a_word_that_is_neither_rare_nor_common_helps_beside_rare_ones() -> None:
    chosen = choose_words({"port": 500, "value": 20_000, "type": 10_000}, TOTAL)
    assert chosen == WordChoice(["port"], {"value": ["type"]})


@pytest.mark.parametrize("counts", [{"the": 900_000, "of": 800_000}, {"of": 800_000}])
def test_of_the_commonest_words_the_rarest_selects(counts: dict[str, int]) -> None:
    assert choose_words(counts, TOTAL) == WordChoice(["of"], {})


def test_no_word_of_a_small_library_is_common() -> None:
    most = MAX_SELECTED // 2
    assert choose_words({"a": most, "b": most}, most) == WordChoice(["a", "b"], {})


def test_without_words_nothing_is_chosen() -> None:
    assert choose_words({}, 0) == WordChoice([], {})
