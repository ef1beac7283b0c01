"""The words of a search that select passages: rare ones by themselves, common ones two by two."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from denizen.adapters.store.word_cache import CountCache, StemCache
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


def count(found: dict[str, int], asked: list[str]) -> Callable[[Sequence[str]], Mapping[str, int]]:
    """Counts as a database does, and notes which words it was asked for."""

    def ask(words: Sequence[str]) -> Mapping[str, int]:
        asked.extend(words)
        return {word: found[word] for word in words}

    return ask


def test_common_words_are_counted_once_and_rare_ones_each_time() -> None:
    cache, asked = CountCache(), list[str]()
    counts = {"the": 90_000, "relay": 3}
    for _ in range(2):
        assert cache.get(["the", "relay"], 100_000, count(counts, asked)) == counts
    assert asked == ["the", "relay", "relay"]


def test_words_are_counted_anew_when_the_table_has_grown_or_was_indexed_again() -> None:
    cache, asked = CountCache(), list[str]()
    for total, there in ((100_000, 90_000), (104_000, 93_000), (106_000, 95_000)):
        found = cache.get(["the"], total, count({"the": there}, asked))
    assert asked == ["the", "the"]
    assert found == {"the": 95_000}
    cache.clear()
    assert cache.get(["the"], 106_000, count({"the": 5}, asked)) == {"the": 5}


def test_a_stem_is_looked_up_once() -> None:
    cache, asked = StemCache(), list[str]()

    def find(words: Sequence[str]) -> Mapping[str, str]:
        asked.extend(words)
        return {word: word[:3] for word in words}

    assert cache.get(["sailing", "sailing", "sails"], find) == {"sailing": "sai", "sails": "sai"}
    assert cache.get(["sails", "tea"], find) == {"sails": "sai", "tea": "tea"}
    assert asked == ["sailing", "sails", "tea"]
