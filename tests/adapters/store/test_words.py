"""The words of a search that are looked for: rare ones first, common ones only when there are no others."""

from __future__ import annotations

import pytest

from denizen.adapters.store.documents import COMMON, FEW, MAX_RANKED, choose_words

TOTAL = 1_000_000


def test_rare_words_come_first_and_common_ones_are_left_out() -> None:
    assert choose_words({"the": 0.9, "relay": 0.001, "port": 0.0005}, TOTAL) == ["port", "relay"]


def test_of_common_words_only_the_rarest_is_looked_for() -> None:
    assert choose_words({"the": 0.9, "of": 0.8}, TOTAL) == ["of"]


def test_no_more_passages_are_ranked_than_the_limit_allows() -> None:
    share = 0.6 * MAX_RANKED / TOTAL
    assert choose_words({"a": share, "b": share}, TOTAL) == ["a"]


@pytest.mark.parametrize(("share", "found"), [(1.0, ["a", "b"]), (COMMON, ["a", "b"])])
def test_no_word_of_a_small_library_is_common(share: float, found: list[str]) -> None:
    assert choose_words({"a": share, "b": share}, FEW) == found


def test_without_words_nothing_is_looked_for() -> None:
    assert choose_words({}, 0) == []
