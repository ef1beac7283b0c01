"""Rankings by words and by meaning, and whether a text is about a question."""

from __future__ import annotations

import pytest

from denizen.domain.ranking import RANKED, Match, covers_question, fuse_matches, rank_by_words, telling_words

NEAR = [Match("near", 0.8), Match("next", 0.6), Match("words", 0.4)]


def fuse(coverage: float, near: list[Match] = NEAR) -> list[str]:
    by_words = [Match("words", 9.0, coverage), Match("others", 6.0, coverage / 2)]
    return fuse_matches(by_words, near, least=0.3)


def test_words_alone_decide_where_a_text_has_all_that_is_asked_for() -> None:
    assert fuse(1.0)[:2] == ["words", "others"]
    assert sorted(fuse(1.0)) == ["near", "next", "others", "words"]


def test_a_meaning_beats_few_words_by_how_near_it_is() -> None:
    few = [Match("best", 9.0, 0.3), Match("weak", 1.0, 0.1)]
    assert fuse_matches(few, [Match("near", 0.8), Match("weak", 0.35)], least=0.3) == ["best", "near", "weak"]
    assert fuse_matches([Match("a", 9.0, 0.3), Match("b", 8.0, 0.3)], [Match("b", 0.8)], least=0.3) == ["b", "a"]
    assert fuse_matches([Match("a", 9.0, 1.0), Match("b", 8.0, 1.0)], [Match("b", 0.8)], least=0.3) == ["a", "b"]
    weak = [Match("a", 9.0, 0.3)]
    assert fuse_matches(weak, [Match("b", 0.8)], least=0.3) == ["a", "b"]
    assert fuse_matches(weak, [Match("b", 0.8)], least=0.3, words_share=0.1) == ["b", "a"]


def test_of_a_full_ranking_the_last_place_counts_nothing() -> None:
    near = [Match(str(place), 0.9 - place / 1000) for place in range(RANKED)]
    words = [Match("w", 9.0, 0.2), Match("x", 0.1, 0.2)]
    assert fuse_matches(words, near, least=0.3)[:2] == ["w", "0"]
    assert fuse_matches(words, near, least=0.3)[-1] == str(RANKED - 1)
    assert fuse_matches(words, near[:-1], least=0.3)[1:3] == ["0", "1"]


def test_one_ranking_alone_keeps_its_order() -> None:
    assert fuse_matches([], NEAR, least=0.3) == ["near", "next", "words"]
    assert fuse_matches([Match("a", 2.0), Match("b", 1.0)], [], least=0.3) == ["a", "b"]
    assert fuse_matches([], [], least=0.3) == []


def test_short_texts_are_ranked_by_words_of_any_script() -> None:
    texts = {"zh": "会员费每年五十欧元", "ru": "Книги выдают по средам", "de": "Der Mitgliedsbeitrag ist fällig"}
    assert rank_by_words("会员费", texts) == ["zh"]
    assert rank_by_words("где взять книгу", texts) == ["ru"]
    assert rank_by_words("Beitrag", texts) == ["de"]
    assert telling_words("会费 how much") == ["会费"]
    assert covers_question("图书馆的会员费", "会员费是") and not covers_question("图书馆关门", "会员费是")


ROOMS = "The Juniper room seats 6 people.\nRooms are booked with Odile, at least two days ahead."
LOANS = "# Membership\nA year's membership costs 24 euros.\nA lost card is replaced for 3 euros."


@pytest.mark.parametrize(
    "question",
    ["How much does a new card cost when I lost mine?", "What do you charge for lost cards?", "membership costs"],
)
def test_a_text_with_half_of_the_telling_words_in_any_number_is_about_the_question(question: str) -> None:
    assert covers_question(LOANS, question)


def test_a_word_of_the_text_may_go_on_where_the_question_s_ends() -> None:
    assert covers_question(ROOMS, "Whom do I ask to book a room?")
    assert not covers_question(ROOMS, "Whom do I ask about a job?"), "a shorter word would begin too many"


@pytest.mark.parametrize(
    "question", ["What is the password of the guest wifi?", "How much does it cost to rent a bicycle?", "What is it?"]
)
def test_a_text_with_less_of_them_is_not_and_words_of_every_question_count_for_nothing(question: str) -> None:
    assert not covers_question(LOANS, question)
